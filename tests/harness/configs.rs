//! The configs of all built-in plugins: every field with every kind of value, and how a refusal reads.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use nano_cordis::cordis::{Fault, ModuleKey, ModuleSource, PluginDef};
use nano_cordis::harness::builtins;

/// One value of each kind, and the borders of numbers.
fn values() -> Vec<Value> {
    vec![
        json!(true),
        json!(-1),
        json!(0),
        json!(1),
        json!(1.5),
        json!(1e300),
        json!(5_000_000_000_u64),
        json!(u64::MAX),
        json!(""),
        json!("x y"),
        json!("\u{1b}[31m"),
        json!([]),
        json!([1]),
        json!([null]),
        json!(["x", {}]),
        json!([[]]),
        json!({}),
        json!({ "x": 1 }),
    ]
}

/// Words of schemas, of serde and of Rust; a user has seen none of them.
const JARGON: &[&str] = &[
    "oneOf",
    "anyOf",
    "keyword",
    "schema",
    "valid under",
    "invalid",
    "expected",
    "struct",
    "sequence",
    "variant",
    "enum",
    "u8",
    "u16",
    "u32",
    "u64",
    "i64",
    "usize",
    "f64",
    "nonzero",
    "integer",
    "boolean",
    "string",
    "array",
    "object",
    "null,",
    "serde",
    "JSON",
    "regex",
    "property",
    "instance",
];

fn built_in(name: &str) -> PluginDef {
    builtins().load(&ModuleKey(name.into())).unwrap()
}

/// Configs that fit, by plugin: what a field is put into.
fn good(name: &str) -> Value {
    match name {
        "llm-openai" => json!({ "baseUrl": "http://localhost/v1", "model": "m" }),
        "approval" => json!({ "tools": [] }),
        "llm-fake" => json!({ "script": [{ "content": "hi" }] }),
        _ => json!({}),
    }
}

/// The dotted paths of all fields of a schema, list items as `0`.
fn fields(schema: &Value, root: &Value, at: &str, found: &mut BTreeSet<String>) {
    let target = schema.get("$ref").and_then(Value::as_str);
    if let Some(target) = target.and_then(|it| root.pointer(it.trim_start_matches('#'))) {
        return fields(target, root, at, found);
    }
    let inside = |key: &str| if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
    for (key, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        found.insert(inside(key));
        fields(schema, root, &inside(key), found);
    }
    if let Some(items) = schema.get("items").filter(|it| it.is_object()) {
        found.insert(inside("0"));
        fields(items, root, &inside("0"), found);
    }
}

/// The config with this value at a dotted path.
fn with(mut config: Value, path: &str, value: &Value) -> Value {
    let mut place = &mut config;
    for step in path.split('.') {
        let index = step.parse::<usize>().ok();
        if index.is_some() != place.is_array() {
            *place = if index.is_some() { json!([]) } else { json!({}) };
        }
        place = match (place, index) {
            (Value::Array(items), Some(index)) => {
                items.resize(items.len().max(index + 1), Value::Null);
                &mut items[index]
            }
            (Value::Object(map), _) => map.entry(step).or_insert(Value::Null),
            (place, _) => {
                *place = json!({ step: null });
                &mut place[step]
            }
        };
    }
    *place = value.clone();
    config
}

/// What is wrong with the way in which a fault is told.
fn complaint(fault: &Fault, path: &str) -> Option<&'static str> {
    let is_there = fault.path == path
        || fault.path.starts_with(&format!("{path}."))
        || path.starts_with(&format!("{}.", fault.path));
    let words = &fault.problem;
    match () {
        () if !is_there => Some("another place"),
        () if JARGON.iter().any(|it| words.contains(it)) => Some("jargon"),
        () if words.contains('\n') || words.len() > 200 => Some("not one short line"),
        () if words.contains('\u{1b}') => Some("an escape sequence"),
        () if words.starts_with("must ") && !words.contains(", not ") => Some("what was found?"),
        () => None,
    }
}

#[test]
fn every_wrong_value_in_every_config_is_told_by_its_path_in_plain_words() {
    let mut told = Vec::new();
    for name in builtins().names() {
        let def = built_in(name);
        let Some(schema) = def.schema() else { continue };
        let mut paths = BTreeSet::new();
        fields(schema, schema, "", &mut paths);
        for path in &paths {
            for value in values() {
                let Err(refused) = def.check(&with(good(name), path, &value)) else { continue };
                let bad = refused.faults.iter().filter_map(|it| Some((complaint(it, path)?, it)));
                told.extend(bad.map(|(why, it)| format!("{name}: {path} = {value}: {why}: {it}")));
            }
        }
    }

    assert_eq!(told, Vec::<String>::new());
}

/// The faults of one config, as a user reads them.
fn told(name: &str, path: &str, value: &Value) -> Vec<String> {
    let refused = built_in(name).check(&with(good(name), path, value)).map(drop).unwrap_err();
    refused.faults.iter().map(ToString::to_string).collect()
}

#[test]
fn faults_read_as_a_user_would_put_them() {
    for (name, path, value, expected) in [
        (
            "llm-fake",
            "repeat",
            json!("x"),
            "repeat: must be one of `turn`, `last`, `error`, not \"x\"",
        ),
        ("llm-fake", "repeat", json!(3), "repeat: must be one of `turn`, `last`, `error`, not 3"),
        (
            "llm-openai",
            "reasoning",
            json!("always"),
            "reasoning: must be one of `auto`, `send`, `drop`, not \"always\"",
        ),
        (
            "llm-openai",
            "emptyContent",
            json!("none"),
            "emptyContent: must be one of `\"\"`, `null`, not \"none\"",
        ),
        ("llm-openai", "maxTokens", json!(0), "maxTokens: must be at least 1, not 0"),
        (
            "agent-loop",
            "maxSteps",
            json!(5_000_000_000_u64),
            "maxSteps: must be a whole number from 1 to 4294967295, not 5000000000",
        ),
        ("llm-fake", "script", json!([]), "script: must have at least 1 item, not []"),
        ("llm-fake", "script", json!("hi"), "script: must be a list, not \"hi\""),
        ("llm-fake", "script.0", json!("hi"), "script.0: must be a map, not \"hi\""),
        (
            "llm-fake",
            "script.0.tool_calls",
            json!([{ "id": "a" }]),
            "script.0.tool_calls.0.function: is required",
        ),
        (
            "llm-fake",
            "script.0.tool_calls",
            json!([{ "function": { "name": 3, "arguments": "" } }]),
            "script.0.tool_calls.0.function.name: must be a text, not 3",
        ),
        ("approval", "tools", json!("bash"), "tools: must be a list, not \"bash\""),
        ("approval", "tools", json!(false), "tools: must be a list, not false"),
        ("approval", "tolls", json!([]), "tolls: unknown key; did you mean `tools`?"),
    ] {
        assert_eq!(told(name, path, &value), [expected]);
    }
}
