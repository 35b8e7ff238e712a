//! `--schema`: a JSON Schema of `cordis.yml`, with which editors complete and check it.
//!
//! Part of `run`.
//! Watch for: it is made from the plugins that are compiled in, so it knows what this program knows. What the program
//! would accept it must accept, too: a key without a value, a placeholder in the place of a number, `x-` keys.

use serde_json::{Map, Value, json};

use crate::cordis::{Builtins, ModuleKey, ModuleSource, PluginDef};

/// What stands in the place of a value that is read from the environment.
const PLACEHOLDER: &str = r"\$\{";

/// The schema, as it is printed.
pub(super) fn text(builtins: &Builtins) -> String {
    let schema = of(builtins);
    let text = serde_json::to_string_pretty(&schema).expect("it is plain JSON");
    format!("{text}\n")
}

fn of(builtins: &Builtins) -> Value {
    let plugins: Vec<_> = builtins.names().filter_map(|name| plugin(builtins, name)).collect();
    let names: Vec<_> = plugins.iter().flat_map(|(name, _)| spellings(name)).collect();
    let configs: Map<_, _> =
        plugins.iter().map(|(name, def)| ((*name).to_owned(), config(name, def))).collect();
    let cases: Vec<_> = plugins.iter().map(|(name, def)| case(name, def)).collect();
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$comment": "Written by `nano-cordis --schema`",
        "title": "cordis.yml of nano-cordis",
        "description": "The list of plugins that make up the agent. Their order does not matter.",
        "type": "array",
        "minItems": 1,
        "items": {
            "type": "object",
            "required": ["id", "name"],
            "properties": {
                "id": {
                    "description": "Any name of yours; it says which entry is which when the file changes.",
                    "type": "string",
                    "minLength": 1,
                },
                "name": {
                    "description": "A plugin that is built in, or the path of one in TypeScript or JavaScript.",
                    "anyOf": [{ "enum": names }, { "type": "string", "pattern": r"[./\\]" }],
                },
                "config": { "description": "Its settings; unset ones have defaults." },
                "disabled": {
                    "description": "True leaves the entry out.",
                    "type": ["boolean", "null"],
                },
                "optional": {
                    "description": "True lets turns begin although the entry does not run.",
                    "type": ["boolean", "null"],
                },
            },
            "patternProperties": { "^x-": {} },
            "additionalProperties": false,
            "allOf": cases,
        },
        "$defs": configs,
    })
}

fn plugin<'a>(builtins: &Builtins, name: &'a str) -> Option<(&'a str, PluginDef)> {
    builtins.load(&ModuleKey(name.into())).ok().map(|def| (name, def))
}

/// The original calls its plugins by the paths of their sources.
fn spellings(name: &str) -> Vec<String> {
    vec![name.to_owned(), format!("./src/harness/{name}.ts"), format!("./src/cordis/{name}.ts")]
}

/// What holds for the entries of one plugin.
fn case(name: &str, def: &PluginDef) -> Value {
    let mut then = json!({ "properties": {
        "config": { "anyOf": [{ "$ref": format!("#/$defs/{name}") }, { "type": "null" }] },
    } });
    if def.is_guard() {
        then["properties"]["optional"] = json!({ "not": { "const": true } });
    }
    json!({ "if": { "properties": { "name": { "enum": spellings(name) } } }, "then": then })
}

/// The schema of a config with what every config may have.
fn config(name: &str, def: &PluginDef) -> Value {
    let mut schema = def.schema().cloned().unwrap_or_else(|| json!({}));
    relax(&mut schema, name);
    if let Value::Object(top) = &mut schema {
        for word in ["$schema", "title"] {
            top.remove(word);
        }
        // The program warns of a key that nobody reads, and so does an editor.
        if top.get("type").is_some_and(|it| it == "object") {
            top.entry("additionalProperties").or_insert(false.into());
        }
    }
    schema
}

/// Lets each field have no value or one from the environment, and has references find what they mean.
fn relax(schema: &mut Value, name: &str) {
    match schema {
        Value::Object(words) => {
            if let Some(Value::String(target)) = words.get_mut("$ref") {
                *target = target.replacen("#/", &format!("#/$defs/{name}/"), 1);
            }
            words.values_mut().for_each(|it| relax(it, name));
            if let Some(Value::Object(fields)) = words.get_mut("properties") {
                fields.values_mut().for_each(open);
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|it| relax(it, name)),
        _ => {}
    }
}

fn open(field: &mut Value) {
    let inner = field.take();
    let description = inner.get("description").cloned();
    let placeholder = json!({ "type": "string", "pattern": PLACEHOLDER });
    *field = json!({ "anyOf": [inner, { "type": "null" }, placeholder] });
    if let Some(description) = description {
        field["description"] = description;
    }
}
