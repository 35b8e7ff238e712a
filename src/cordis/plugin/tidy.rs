//! A config in order: without nulls, with defaults, and with a note of each key that is not known.

use serde_json::{Map, Value};

use super::config::UnknownKey;
use super::nearest;

/// Walks a config along its schema: drops nulls, fills in defaults, and returns the unknown keys. Where the schema allows
/// anything, the value stays as it is.
pub(super) fn tidy(config: &mut Value, schema: &Value) -> Vec<UnknownKey> {
    let mut tidy = Tidy { root: schema, unknown: Vec::new(), depth: 0 };
    tidy.value(config, schema, "");
    tidy.unknown
}

struct Tidy<'a> {
    root: &'a Value,
    unknown: Vec<UnknownKey>,
    depth: usize,
}

/// A schema whose default needs another of its own kind would be filled in for ever.
const DEEPEST: usize = 64;

impl Tidy<'_> {
    fn value(&mut self, value: &mut Value, schema: &Value, path: &str) {
        if self.depth == DEEPEST {
            return;
        }
        self.depth += 1;
        match value {
            Value::Object(map) => self.map(map, schema, path),
            Value::Array(items) => {
                let of_items = resolve(schema, self.root).and_then(|it| it.get("items"));
                for (at, item) in items.iter_mut().enumerate() {
                    if let Some(schema) = of_items {
                        self.value(item, schema, &join(path, &at.to_string()));
                    }
                }
            }
            _ => {}
        }
        self.depth -= 1;
    }

    fn map(&mut self, map: &mut Map<String, Value>, schema: &Value, path: &str) {
        let shapes = shapes(map, schema, self.root);
        if shapes.iter().all(|it| properties(it).is_none() && others(it).is_none()) {
            return;
        }
        map.retain(|_, value| !value.is_null());
        let is_open = shapes.iter().any(|it| it.get("additionalProperties") == Some(&true.into()));
        for (key, value) in map.iter_mut() {
            let named = shapes.iter().filter_map(|it| properties(it)?.get(key));
            let mut known = named.chain(shapes.iter().filter_map(|it| others(it))).peekable();
            if known.peek().is_none() && !is_open {
                let all = shapes.iter().filter_map(|it| properties(it)).flat_map(Map::keys);
                let near = nearest(key, all.map(String::as_str));
                self.unknown.push(UnknownKey { path: join(path, key), near });
            }
            if let Some(schema) = known.next() {
                self.value(value, schema, &join(path, key));
            }
        }
    }
}

/// The schemas that say what is in a map: its own, those that it has to fit too, and of several alternatives the one that
/// it looks like. Defaults are filled in on the way, because one of them may be what tells the alternatives apart.
fn shapes<'a>(map: &mut Map<String, Value>, schema: &'a Value, root: &'a Value) -> Vec<&'a Value> {
    let (mut shapes, mut waiting) = (Vec::new(), vec![schema]);
    // A schema that refers to itself and nothing else would go round for ever.
    while let Some(schema) = waiting.pop().filter(|_| shapes.len() < 64) {
        shapes.push(schema);
        for (key, schema) in properties(schema).into_iter().flatten() {
            let is_absent = map.get(key).is_none_or(Value::is_null);
            if let (true, Some(default)) = (is_absent, default(schema)) {
                map.insert(key.clone(), default);
            }
        }
        let target = schema.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|it| root.pointer(it.strip_prefix('#')?));
        let alternatives = ["anyOf", "oneOf"].into_iter().filter_map(|it| list(schema, it));
        let alike = |all: &'a Vec<Value>| all.iter().find(|it| is_like(map, it, root));
        waiting.extend(alternatives.filter_map(alike));
        waiting.extend(list(schema, "allOf").into_iter().flatten().rev());
        waiting.extend(target);
    }
    shapes
}

/// Whether a map may be meant to be of this shape: nothing that tells shapes apart says otherwise.
fn is_like(map: &Map<String, Value>, schema: &Value, root: &Value) -> bool {
    let Some(schema) = resolve(schema, root) else { return true };
    let is_map = schema.get("type").is_none_or(|it| it == "object" || it.is_array());
    let is_text = schema.get("enum").or(schema.get("const")).is_some();
    let differs = |(key, field): (&String, &Value)| match (map.get(key), field.get("const")) {
        (Some(found), Some(wanted)) => found != wanted,
        (None, Some(_)) => {
            list(schema, "required").is_some_and(|it| it.contains(&key.as_str().into()))
        }
        _ => false,
    };
    is_map && !is_text && !properties(schema).into_iter().flatten().any(differs)
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

/// The schema of keys that have no name of their own.
fn others(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|it| it.is_object())
}

fn list<'a>(schema: &'a Value, key: &str) -> Option<&'a Vec<Value>> {
    schema.get(key).and_then(Value::as_array)
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
