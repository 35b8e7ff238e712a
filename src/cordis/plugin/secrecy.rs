//! Where in a config a secret may stand, as far as its schema tells.
//!
//! Watch for: in doubt there is one. Of several shapes that a value may have, each counts.

use std::collections::HashSet;
use std::ptr;

use serde_json::Value;

use super::tidy::join;

/// Whether a secret may hide anywhere at or under a dotted path.
pub(super) fn is_secret(path: &str, root: &Value) -> bool {
    let steps: Vec<_> = path.split('.').filter(|it| !it.is_empty()).collect();
    Search { root, seen: HashSet::new() }.finds(root, &steps)
}

/// The texts in a config that its schema marks as secret. Whoever runs the plugin sees to it that nobody prints them.
pub fn secrets_in(config: &Value, schema: &Value) -> Vec<String> {
    let (mut secrets, mut waiting) = (Vec::new(), vec![(String::new(), config)]);
    while let Some((path, value)) = waiting.pop() {
        match value {
            Value::String(text) if is_secret(&path, schema) => secrets.push(text.clone()),
            Value::Array(items) => {
                waiting.extend(
                    items.iter().enumerate().map(|(at, it)| (join(&path, &at.to_string()), it)),
                );
            }
            Value::Object(map) => {
                waiting.extend(map.iter().map(|(key, it)| (join(&path, key), it)));
            }
            _ => {}
        }
    }
    secrets
}

struct Search<'a> {
    root: &'a Value,
    /// Schemas refer to themselves; each is looked at once for each rest of the path.
    seen: HashSet<(*const Value, usize)>,
}

impl Search<'_> {
    fn finds(&mut self, schema: &Value, steps: &[&str]) -> bool {
        if schema.get("writeOnly") == Some(&Value::Bool(true)) {
            return true;
        }
        if !self.seen.insert((ptr::from_ref(schema), steps.len())) {
            return false;
        }
        let target = schema.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|it| self.root.pointer(it.trim_start_matches('#')));
        let shapes =
            ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|it| schema.get(it)?.as_array());
        if target.into_iter().chain(shapes.flatten()).any(|it| self.finds(it, steps)) {
            return true;
        }
        let (step, rest) =
            steps.split_first().map_or((None, steps), |(step, rest)| (Some(*step), rest));
        let named = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let named = named.filter(|(key, _)| step.is_none_or(|it| it == *key)).map(|(_, it)| it);
        let like = schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
        let first = schema.get("prefixItems").and_then(Value::as_array).into_iter().flatten();
        let others = ["items", "additionalProperties"].into_iter().filter_map(|it| schema.get(it));
        let inside = named.chain(like.map(|(_, it)| it)).chain(first).chain(others);
        inside.into_iter().any(|it| self.finds(it, rest))
    }
}
