//! Part of `tools`: reads the argument text of a call and says, in words a model can act on, what is wrong with it.
//!
//! Watch for: models and gateways send every shape but the documented one. What is meant beyond doubt is accepted;
//! nothing is ever repaired into something that runs.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::Tool;
use crate::{cordis::is_checkable, harness::session::Session};

/// How much of an unreadable text an error message repeats, in characters.
const SHOWN: usize = 200;
/// How much is said of one fault, in characters,
const LONGEST: usize = 400;
/// and of how many.
const FAULTS: usize = 20;
/// A schema of an object has one of these at its top, if it has anything.
const WORDS: [&str; 14] = [
    "$defs",
    "$ref",
    "$schema",
    "additionalProperties",
    "allOf",
    "anyOf",
    "definitions",
    "description",
    "minProperties",
    "oneOf",
    "patternProperties",
    "properties",
    "required",
    "title",
];

/// The arguments in `raw`. Nothing, blanks and `null` mean "none"; a text in which the object was encoded once more
/// is unwrapped once; everything else that is no object is an error. Of a repeated key the last one counts.
pub(crate) fn parse(raw: &str) -> Result<Map<String, Value>, String> {
    if raw.trim().is_empty() {
        return Ok(Map::new());
    }
    match from_json(raw)? {
        Value::Null => Ok(Map::new()),
        Value::Object(arguments) => Ok(arguments),
        Value::String(inner) => match from_json(&inner) {
            Ok(Value::Object(arguments)) => Ok(arguments),
            _ => Err(no_object("a string")),
        },
        other => Err(no_object(kind_of(&other))),
    }
}

/// What keeps a tool from running with these arguments: its schema first, then its own check.
pub(super) fn problem(
    tool: &Tool,
    arguments: &Map<String, Value>,
    session: Option<&Session>,
) -> Option<String> {
    let fits =
        tool.fits.get_or_init(|| Validator::new(&tool.parameters).map_err(|err| err.to_string()));
    let instance = Value::Object(arguments.clone());
    let faults = match fits {
        Ok(_) if !is_checkable(&tool.parameters, &instance) => {
            return Some(
                "the schema of this tool asks for more checks of these arguments than can be done"
                    .into(),
            );
        }
        Ok(validator) => faults(validator, &instance),
        Err(broken) => return Some(format!("the schema of this tool is broken: {broken}")),
    };
    match faults.as_slice() {
        [] => tool.objection(arguments, session),
        faults => Some(format!("invalid arguments: {}", faults.join("; "))),
    }
}

/// A schema that no compiler has made, if it is one, with what model services insist on. The error goes on after "it".
pub(crate) fn completed(schema: Value) -> Result<Value, String> {
    let Value::Object(mut schema) = schema else {
        return Err("is no JSON Schema object".to_owned());
    };
    match schema.get("type") {
        None => {
            has_words(&schema)?;
            schema.insert("type".into(), "object".into());
        }
        Some(kind) if kind == "object" => {}
        Some(kind) => return Err(format!("is of type {kind}")),
    }
    if schema.get("properties").is_none_or(Value::is_null) {
        schema.insert("properties".into(), Map::new().into());
    }
    let schema = Value::Object(schema);
    match jsonschema::validator_for(&schema) {
        Ok(_) => Ok(schema),
        Err(err) => Err(format!("is no JSON Schema: {err}")),
    }
}

/// Whether a map was meant as a schema, and not as a map of fields.
fn has_words(schema: &Map<String, Value>) -> Result<(), String> {
    match schema.keys().next() {
        Some(first) if !schema.keys().any(|it| WORDS.contains(&it.as_str())) => {
            let advice = "fields stand under `properties`";
            Err(format!("is no JSON Schema: `{first}` is none of its words; {advice}"))
        }
        _ => Ok(()),
    }
}

/// The JSON Schema of a type, without what is said of the type as a whole: the tool has its own description.
pub(super) fn schema_of<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|it| {
        it.inline_subschemas = true;
        it.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    schema.remove("title");
    schema.remove("description");
    schema.to_value()
}

fn from_json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|err| {
        let shown: String = text.chars().take(SHOWN).collect();
        format!("the arguments are not valid JSON: {err}; they begin with: {shown}")
    })
}

fn no_object(what: &str) -> String {
    format!("the arguments must be a JSON object, not {what}")
}

/// The first of them, each of bounded length: a model is to mend them one by one.
fn faults(validator: &Validator, arguments: &Value) -> Vec<String> {
    let short = |text: String| match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    };
    validator.iter_errors(arguments).take(FAULTS).map(|error| short(fault(&error))).collect()
}

fn fault(error: &ValidationError<'_>) -> String {
    let path = error.instance_path().as_str().trim_start_matches('/').replace('/', ".");
    let inside =
        |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            format!("`{}` is missing", inside(property.as_str().unwrap_or_default()))
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let names: Vec<_> =
                unexpected.iter().map(|name| format!("`{}`", inside(name))).collect();
            format!("unknown: {}", names.join(", "))
        }
        ValidationErrorKind::Type { kind } => {
            format!("`{path}` must be {}, not {}", wanted(kind), kind_of(error.instance()))
        }
        _ => format!("`{path}`: {error}"),
    }
}

fn wanted(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => format!("of type {one}"),
        TypeKind::Multiple(several) => {
            let names: Vec<_> = several.iter().map(|it| it.to_string()).collect();
            format!("of type {}", names.join(" or "))
        }
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
