//! A config in order: without nulls, with defaults, and with a note of each key that is not known.

use serde_json::{Map, Value};

use super::config::UnknownKey;
use super::nearest;

/// Walks a config along its schema: drops nulls, fills in defaults, and returns the unknown keys. Where the schema allows
/// anything, the value stays as it is.
pub(super) fn tidy(config: &mut Value, schema: &Value) -> Vec<UnknownKey> {
    let mut tidy = Tidy { root: schema, unknown: Vec::new() };
    tidy.value(config, schema, "");
    tidy.unknown
}

struct Tidy<'a> {
    root: &'a Value,
    unknown: Vec<UnknownKey>,
}

impl Tidy<'_> {
    fn value(&mut self, value: &mut Value, schema: &Value, path: &str) {
        let Some(schema) = resolve(schema, self.root) else { return };
        match value {
            Value::Object(map) => self.map(map, schema, path),
            Value::Array(items) => {
                let Some(schema) = schema.get("items") else { return };
                for (at, item) in items.iter_mut().enumerate() {
                    self.value(item, schema, &join(path, &at.to_string()));
                }
            }
            _ => {}
        }
    }

    fn map(&mut self, map: &mut Map<String, Value>, schema: &Value, path: &str) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties").filter(|it| it.is_object());
        if properties.is_none() && others.is_none() {
            return;
        }
        map.retain(|_, value| !value.is_null());
        for (key, schema) in properties.into_iter().flatten() {
            if let (false, Some(default)) = (map.contains_key(key), default(schema)) {
                map.insert(key.clone(), default);
            }
        }
        for (key, value) in map.iter_mut() {
            let known = properties.and_then(|properties| properties.get(key)).or(others);
            match known {
                Some(schema) => self.value(value, schema, &join(path, key)),
                None if schema.get("additionalProperties") == Some(&Value::Bool(true)) => {}
                None => {
                    let known = properties.into_iter().flatten().map(|(key, _)| key.as_str());
                    self.unknown
                        .push(UnknownKey { path: join(path, key), near: nearest(key, known) });
                }
            }
        }
    }
}

/// The default of a property. A default of null is an absent value.
fn default(schema: &Value) -> Option<Value> {
    schema.get("default").filter(|default| !default.is_null()).cloned()
}

/// Follows `$ref`, and looks through the `null` that stands beside the type of an optional field. None if a value of
/// this schema is free in form.
pub(super) fn resolve<'a>(schema: &'a Value, root: &'a Value) -> Option<&'a Value> {
    let mut schema = schema;
    // A schema that refers to itself and nothing else would go round for ever.
    for _ in 0..8 {
        let map = schema.as_object()?;
        schema = match (
            map.get("$ref").and_then(Value::as_str),
            map.get("anyOf").and_then(Value::as_array),
        ) {
            (Some(place), _) => root.pointer(place.strip_prefix('#')?)?,
            (None, Some(any)) => {
                any.iter().find(|it| it.get("type").is_none_or(|it| it != "null"))?
            }
            (None, None) => return Some(schema),
        };
    }
    None
}

pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
