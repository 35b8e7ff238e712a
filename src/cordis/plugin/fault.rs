//! The faults of a config in the user's words.

use std::fmt::Display;

use jsonschema::error::{TypeKind, ValidationError, ValidationErrorKind};
use serde_json::Value;

use super::tidy::{join, resolve};
use crate::cordis::error::Fault;

/// Says in the user's words what is wrong: wanted type, found value. The value of a secret is not shown.
pub(super) fn fault(err: &ValidationError<'_>, root: &Value) -> Fault {
    let path = err
        .instance_path()
        .as_str()
        .trim_start_matches('/')
        .replace('/', ".")
        .replace("~1", "/")
        .replace("~0", "~");
    let secret = is_secret(err, root);
    let found =
        || if secret { "a value that is not shown".to_owned() } else { clip(err.instance()) };
    match err.kind() {
        ValidationErrorKind::Required { property } => Fault {
            path: join(&path, property.as_str().unwrap_or_default()),
            problem: "is required".into(),
        },
        ValidationErrorKind::Type { kind } => {
            Fault { path, problem: format!("must be {}, not {}", wanted(kind), found()) }
        }
        _ if secret => Fault { path, problem: "is not allowed (the value is not shown)".into() },
        _ => Fault { path, problem: err.to_string() },
    }
}

/// A secret may hide anywhere under the place of the fault.
fn is_secret(err: &ValidationError<'_>, root: &Value) -> bool {
    let mut schema = Some(root);
    for part in err.instance_path().as_str().split('/').filter(|part| !part.is_empty()) {
        schema = schema.and_then(|schema| resolve(schema, root)).and_then(|schema| {
            let property = schema.get("properties").and_then(|properties| properties.get(part));
            property.or_else(|| schema.get("items")).or_else(|| schema.get("additionalProperties"))
        });
    }
    schema.is_some_and(|schema| holds_secret(schema, root, 0))
}

fn holds_secret(schema: &Value, root: &Value, depth: usize) -> bool {
    let Some(schema) = resolve(schema, root) else { return false };
    let inside = |schema: &Value| depth < 8 && holds_secret(schema, root, depth + 1);
    let parts = schema.get("properties").and_then(Value::as_object);
    schema.get("writeOnly") == Some(&Value::Bool(true))
        || parts.into_iter().flatten().any(|(_, schema)| inside(schema))
        || schema.get("items").is_some_and(inside)
        || schema.get("additionalProperties").is_some_and(inside)
}

fn wanted(kind: &TypeKind) -> String {
    let name = |kind: &dyn Display| match kind.to_string().as_str() {
        "array" => "a list".to_owned(),
        "boolean" => "true or false".to_owned(),
        "integer" => "a whole number".to_owned(),
        "null" => "nothing".to_owned(),
        "number" => "a number".to_owned(),
        "object" => "a map".to_owned(),
        _ => "a text".to_owned(),
    };
    match kind {
        TypeKind::Single(kind) => name(kind),
        TypeKind::Multiple(kinds) => {
            let names: Vec<_> =
                kinds.iter().map(|kind| name(&kind)).filter(|name| name != "nothing").collect();
            names.join(" or ")
        }
    }
}

fn clip(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
