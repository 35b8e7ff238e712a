//! How much work it is to check a value against a schema, found out before it is done.
//!
//! Watch for: a few lines of schema can ask for more checks of one value than there is time for, because alternatives can
//! have alternatives of their own. Schemas come from scripts and servers, and the check runs where everything else does.
//! Only `$ref` can do that: without it a schema is no larger than its text.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// So many checks are done in good time,
const MOST: u64 = 2_000_000;
/// so many are looked ahead at,
const STEPS: usize = 200_000;
/// and so many may stand within each other.
const DEEPEST: usize = 300;
/// Schemas of schemas, which the checker has with it.
const WELL_KNOWN: &str = "json-schema.org/";

/// Whether a value can be checked against a schema in good time.
pub(crate) fn is_checkable(schema: &Value, value: &Value) -> bool {
    let mut effort = Effort {
        root: schema,
        refers: false,
        is_split: false,
        names: HashMap::new(),
        known: HashMap::new(),
        depth: 0,
    };
    effort.read(schema);
    !effort.refers || effort.of(schema, value) <= MOST
}

struct Effort<'a> {
    root: &'a Value,
    refers: bool,
    /// A part of it has an address of its own, so that what it refers to begins at itself.
    is_split: bool,
    names: HashMap<&'a str, &'a Value>,
    /// By the places of schema and value.
    known: HashMap<(*const Value, *const Value), u64>,
    depth: usize,
}

impl<'a> Effort<'a> {
    /// Notes what a schema refers to, and the parts of it that have names.
    fn read(&mut self, schema: &'a Value) {
        match schema {
            Value::Array(list) => list.iter().for_each(|it| self.read(it)),
            Value::Object(map) => {
                self.refers |=
                    ["$ref", "$dynamicRef", "$recursiveRef"].iter().any(|it| map.contains_key(*it));
                self.is_split |= map.get("$id").is_some_and(Value::is_string)
                    && !std::ptr::eq(schema, self.root);
                for word in ["$anchor", "$dynamicAnchor"] {
                    let name = map.get(word).and_then(Value::as_str);
                    self.names.extend(name.map(|it| (it, schema)));
                }
                map.values().for_each(|it| self.read(it));
            }
            _ => {}
        }
    }

    fn of(&mut self, schema: &'a Value, value: &'a Value) -> u64 {
        let Some(words) = schema.as_object() else { return 1 };
        let place = (std::ptr::from_ref(schema), std::ptr::from_ref(value));
        if let Some(known) = self.known.get(&place) {
            return *known;
        }
        if self.depth == DEEPEST || self.known.len() == STEPS {
            return u64::MAX;
        }
        // What comes back to itself is checked once.
        self.known.insert(place, 1);
        self.depth += 1;
        let parts = words.iter().map(|(word, part)| self.of_word(word, part, value));
        let effort = parts.fold(1, u64::saturating_add);
        self.depth -= 1;
        self.known.insert(place, effort);
        effort
    }

    fn of_word(&mut self, word: &str, part: &'a Value, value: &'a Value) -> u64 {
        match word {
            "$ref" | "$dynamicRef" | "$recursiveRef" => self.of_target(part, value),
            "allOf" | "anyOf" | "oneOf" => self.sum(part.as_array().into_iter().flatten(), value),
            "not" | "if" | "then" | "else" => self.of(part, value),
            "dependentSchemas" | "dependencies" => {
                self.sum(part.as_object().into_iter().flat_map(Map::values), value)
            }
            "properties" => {
                let named = part.as_object().into_iter().flatten();
                named.fold(0, |sum, (key, it)| match value.get(key) {
                    Some(value) => self.of(it, value).saturating_add(sum),
                    None => sum,
                })
            }
            "patternProperties" => {
                let each = part.as_object().into_iter().flat_map(Map::values);
                each.fold(0, |sum, it| self.within(it, value).saturating_add(sum))
            }
            "prefixItems" | "items" if part.is_array() => {
                let each = part.as_array().into_iter().flatten();
                each.fold(0, |sum, it| self.within(it, value).saturating_add(sum))
            }
            "items"
            | "contains"
            | "additionalItems"
            | "additionalProperties"
            | "unevaluatedItems"
            | "unevaluatedProperties" => self.within(part, value),
            _ => 0,
        }
    }

    fn sum(&mut self, schemas: impl Iterator<Item = &'a Value>, value: &'a Value) -> u64 {
        schemas.fold(0, |sum, it| self.of(it, value).saturating_add(sum))
    }

    /// All that stands in a value, against one schema.
    fn within(&mut self, schema: &'a Value, value: &'a Value) -> u64 {
        let each: Box<dyn Iterator<Item = &Value>> = match value {
            Value::Object(map) => Box::new(map.values()),
            Value::Array(list) => Box::new(list.iter()),
            _ => return 0,
        };
        each.fold(0, |sum, it| self.of(schema, it).saturating_add(sum))
    }

    fn of_target(&mut self, target: &Value, value: &'a Value) -> u64 {
        let target = target.as_str().unwrap_or_default();
        if target.contains(WELL_KNOWN) {
            return 1;
        }
        let name = target.strip_prefix('#').filter(|_| !self.is_split);
        let found = name.and_then(|it| {
            if it.is_empty() || it.starts_with('/') {
                self.root.pointer(&decoded(it))
            } else {
                self.names.get(it).copied()
            }
        });
        // What cannot be followed may be anything.
        found.map_or(u64::MAX, |it| self.of(it, value))
    }
}

/// A reference is part of an address, in which a character can be written as `%20`.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).and_then(|it| u8::from_str_radix(it, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(&part.as_bytes()[2..]);
            }
            None => bytes.extend([b"%", part.as_bytes()].concat()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::is_checkable;

    /// Each definition refers to the next one twice.
    fn twice(word: &str, depth: usize) -> Value {
        let next = |at: usize| json!({ "$ref": format!("#/$defs/d{}", at + 1) });
        let mut defs: serde_json::Map<_, _> = (0..depth)
            .map(|at| (format!("d{at}"), json!({ word: [next(at), next(at)] })))
            .collect();
        defs.insert(format!("d{depth}"), json!({ "type": "object" }));
        json!({ "$defs": defs, "$ref": "#/$defs/d0" })
    }

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!({}), |inner, _| json!({ "a": inner }))
    }

    #[test]
    fn what_grows_with_each_step_is_not_checked() {
        let again =
            json!({ "additionalProperties": { "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] } });
        let named = json!({ "$anchor": "x", "additionalProperties": { "anyOf": [{ "$ref": "#x" }, { "$ref": "#x" }] } });
        let own = json!({ "$defs": { "a": { "$id": "b" } }, "properties": { "a": { "$ref": "#/$defs/a" } } });

        for word in ["allOf", "anyOf", "oneOf"] {
            assert!(is_checkable(&twice(word, 10), &json!({})), "{word}");
            assert!(!is_checkable(&twice(word, 40), &json!({})), "{word}");
        }
        for schema in [again, named] {
            assert!(is_checkable(&schema, &nested(5)));
            assert!(!is_checkable(&schema, &nested(40)));
        }
        assert!(!is_checkable(&own, &json!({ "a": 1 })));
        assert!(!is_checkable(&json!({ "additionalProperties": { "$ref": "#" } }), &nested(1_000)));
    }

    #[test]
    fn what_people_write_is_checked() {
        let tree = json!({ "properties": { "left": { "$ref": "#" }, "right": { "$ref": "#" }, "all": { "items": { "$ref": "#" } } } });
        let itself = json!({ "$ref": "#" });
        let schema =
            json!({ "properties": { "s": { "$ref": "http://json-schema.org/draft-07/schema#" } } });
        let list = json!({ "$defs": { "a n<b>": { "type": "number" } }, "properties": { "all": { "items": { "$ref": "#/$defs/a%20n%3Cb>" } } } });
        let plain = json!({ "properties": { "all": { "items": { "type": "number" } } } });
        let leaf = json!({ "left": { "left": {}, "right": {} }, "all": [{ "all": [] }] });

        assert!(is_checkable(&tree, &leaf));
        assert!(is_checkable(&itself, &leaf));
        assert!(is_checkable(&schema, &json!({ "s": {} })));
        assert!(is_checkable(&list, &json!({ "all": vec![1; 50_000] })));
        assert!(is_checkable(&plain, &json!({ "all": vec![1; 1_000_000] })));
    }
}
