//! Tool calls out of fragments.
//!
//! Watch for: which call a fragment belongs to. Servers leave out the index, use one index for all calls, or send a
//! whole call without an id; [`Calls::place`] has the rule.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

/// What a call weighs before it says anything.
const WEIGHT: usize = 256;

/// The calls of one reply, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    /// The newest call of each index.
    newest: HashMap<u64, usize>,
}

#[derive(Debug, Default)]
struct Call {
    id: String,
    name: String,
    arguments: String,
    other: Map<String, Value>,
}

impl Calls {
    /// Takes a fragment; how much it adds. None if it is no object.
    pub(super) fn take(&mut self, fragment: Value) -> Option<usize> {
        let Value::Object(mut fragment) = fragment else { return None };
        let mut function = fragment.remove("function").unwrap_or_default();
        let index = fragment.remove("index").and_then(|it| it.as_u64());
        let id = fragment.remove("id").map(id_of).unwrap_or_default();
        let name = function["name"].as_str().unwrap_or_default();
        let (place, mut added) = self.place(index, &id, name);
        let call = &mut self.calls[place];
        if call.id.is_empty() {
            call.id = id;
        }
        if call.name != name {
            call.name.push_str(name);
        }
        added += name.len();
        if let Some(arguments) = function.get_mut("arguments") {
            let text = text_of(arguments.take());
            call.arguments.push_str(&text);
            added += text.len();
        }
        for (name, value) in fragment.into_iter().filter(|(_, value)| !value.is_null()) {
            added += name.len() + weight(&value);
            call.other.insert(name, value);
        }
        Some(added)
    }

    /// The calls as a reply in one piece has them. None if there are none.
    pub(super) fn whole(self) -> Option<Value> {
        let whole = |call: Call| {
            let mut fields = call.other;
            fields.insert("id".into(), call.id.into());
            let function = json!({ "name": call.name, "arguments": call.arguments });
            fields.insert("function".into(), function);
            Value::Object(fields)
        };
        (!self.calls.is_empty()).then(|| self.calls.into_iter().map(whole).collect())
    }

    /// The call that a fragment belongs to, and what it weighs if it begins here.
    ///
    /// A fragment goes on with the newest call of its index, or without an index with the newest of all, unless it says
    /// that it is another: by an id that differs or, where calls have no index, by any id; by a name where the call has
    /// its name and cannot be repeating it.
    fn place(&mut self, index: Option<u64>, id: &str, name: &str) -> (usize, usize) {
        let open = match index {
            Some(index) => self.newest.get(&index).copied(),
            None => self.calls.len().checked_sub(1),
        };
        let goes_on = |at: &usize| {
            let call = &self.calls[*at];
            let is_unnamed = name.is_empty() || call.name.is_empty();
            match index {
                Some(_) if id.is_empty() => {
                    is_unnamed || call.arguments.is_empty() || call.name == name
                }
                Some(_) => call.id == id || (call.id.is_empty() && call.arguments.is_empty()),
                None => is_unnamed && (id.is_empty() || (call.id == id && name.is_empty())),
            }
        };
        if let Some(place) = open.filter(goes_on) {
            return (place, 0);
        }
        let place = self.calls.len();
        self.calls.push(Call::default());
        index.map(|it| self.newest.insert(it, place));
        (place, WEIGHT)
    }
}

/// About how much memory a value holds.
pub(super) fn weight(value: &Value) -> usize {
    let inner = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields.iter().map(|(name, it)| name.len() + weight(it)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inner
}

fn id_of(id: Value) -> String {
    match id {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

fn text_of(arguments: Value) -> String {
    match arguments {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
