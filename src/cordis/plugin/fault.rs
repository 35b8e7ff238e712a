//! The faults of a config in the user's words: where, what is wanted, what was found.
//!
//! Watch for: a schema is how a plugin says what it wants, and no user has read it. So no word of a schema is passed on.

use std::fmt::Display;

use jsonschema::error::{TypeKind, ValidationError, ValidationErrorKind as Kind};
use serde_json::Value;

use super::config::UnknownKey;
use super::nearest;
use super::secrecy::is_secret;
use super::tidy::{join, resolve};
use crate::cordis::error::Fault;

/// All that one error of the validator stands for. The value of a secret is not shown.
pub(super) fn faults(err: &ValidationError<'_>, root: &Value) -> Vec<Fault> {
    let path = dotted(err.instance_path().as_str());
    match err.kind() {
        Kind::Required { property } => {
            let path = join(&path, property.as_str().unwrap_or_default());
            vec![Fault { path, problem: "is required".into() }]
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            unexpected.iter().map(|key| unknown(&path, key, root)).collect()
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            of_shapes(&path, err.instance(), context, root)
        }
        kind => vec![refused(path, &wanted(kind), err.instance(), root)],
    }
}

/// One value that is not what is wanted.
pub(super) fn refused(path: String, wanted: &str, found: &Value, root: &Value) -> Fault {
    let found =
        if is_secret(&path, root) { "a value that is not shown".into() } else { clip(found) };
    Fault { path, problem: format!("{wanted}, not {found}") }
}

/// A key that is not known where none but the known ones are allowed.
fn unknown(path: &str, key: &str, root: &Value) -> Fault {
    let map = schema_at(path, root).and_then(|it| resolve(it, root));
    let known = map.and_then(|it| it.get("properties")).and_then(Value::as_object);
    let known = known.into_iter().flatten().map(|(key, _)| key.as_str());
    UnknownKey { path: join(path, key), near: nearest(key, known) }.into_fault()
}

/// None of several shapes fits. What is wrong with the one that was meant is said, if it is plain which one that was.
fn of_shapes(
    path: &str,
    found: &Value,
    shapes: &[Vec<ValidationError<'static>>],
    root: &Value,
) -> Vec<Fault> {
    let is_other = |err: &ValidationError<'_>| {
        let here = dotted(err.instance_path().as_str()) == path;
        let other =
            matches!(err.kind(), Kind::Type { .. } | Kind::Constant { .. } | Kind::Enum { .. });
        here && other
    };
    let here: Vec<_> = shapes.iter().filter(|it| !it.iter().any(is_other)).collect();
    // A word in a map that tells its shapes apart counts for more than what else is wrong.
    let tag = |err: &&ValidationError<'_>| matches!(err.kind(), Kind::Constant { .. });
    let tags: Vec<_> = here.iter().filter_map(|it| it.iter().find(tag)).collect();
    if let (Some(first), true) = (tags.first(), tags.len() == here.len())
        && tags.iter().all(|it| it.instance_path() == first.instance_path())
    {
        let wanted = format!("must be {}", choice(&tags));
        return vec![refused(
            dotted(first.instance_path().as_str()),
            &wanted,
            first.instance(),
            root,
        )];
    }
    let meant = here.iter().min_by_key(|it| (it.iter().filter(tag).count(), it.len()));
    if let Some(errors) = meant {
        return errors.iter().flat_map(|it| faults(it, root)).collect();
    }
    let others: Vec<_> = shapes.iter().flatten().filter(|it| is_other(it)).collect();
    let all = choice(&others);
    vec![refused(path.to_owned(), &format!("must be {all}"), found, root)]
}

/// What is wanted by several errors of which none has to be mended if another one is.
fn choice(errors: &[&ValidationError<'_>]) -> String {
    let (mut words, mut kinds) = (Vec::new(), Vec::new());
    for err in errors {
        match err.kind() {
            Kind::Constant { expected_value } => words.push(quoted(expected_value)),
            Kind::Enum { options } => words.extend(words_of(options)),
            Kind::Type { kind } => kinds.push(kind_of(kind)),
            _ => {}
        }
    }
    kinds.retain(|it| it != NOTHING && (it != TEXT || words.is_empty()));
    kinds.dedup();
    one_of(&words).into_iter().chain(kinds).collect::<Vec<_>>().join(" or ")
}

fn wanted(kind: &Kind) -> String {
    match kind {
        Kind::Type { kind } => format!("must be {}", kind_of(kind)),
        Kind::Enum { options } => {
            format!("must be {}", one_of(&words_of(options)).unwrap_or_default())
        }
        Kind::Constant { expected_value } => format!("must be {}", quoted(expected_value)),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MinItems { limit } => format!("must have at least {}", number(*limit, "item")),
        Kind::MaxItems { limit } => format!("must have at most {}", number(*limit, "item")),
        Kind::AdditionalItems { limit } => {
            format!("must have at most {}", number(*limit as u64, "item"))
        }
        Kind::MinProperties { limit } => format!("must have at least {}", number(*limit, "key")),
        Kind::MaxProperties { limit } => format!("must have at most {}", number(*limit, "key")),
        Kind::MinLength { limit } => format!("must have at least {}", number(*limit, "character")),
        Kind::MaxLength { limit } => format!("must have at most {}", number(*limit, "character")),
        Kind::UniqueItems => "must have each item once".into(),
        Kind::Pattern { pattern } => format!("must have the form `{pattern}`"),
        Kind::Format { format } => format!("must be of the kind `{format}`"),
        Kind::OneOfMultipleValid { .. } => "must be of one kind and not of several".into(),
        Kind::PropertyNames { error } => {
            format!("must have other keys: {} {}", clip(error.instance()), wanted(error.kind()))
        }
        Kind::Custom { message, .. } => format!("must be otherwise ({message})"),
        _ => "must be something else".into(),
    }
}

const NOTHING: &str = "nothing";
const TEXT: &str = "a text";

fn kind_of(kind: &TypeKind) -> String {
    let name = |kind: &dyn Display| match kind.to_string().as_str() {
        "array" => "a list",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "null" => NOTHING,
        "number" => "a number",
        "object" => "a map",
        _ => TEXT,
    };
    match kind {
        TypeKind::Single(kind) => name(kind).to_owned(),
        TypeKind::Multiple(kinds) => {
            let names: Vec<_> =
                kinds.iter().map(|kind| name(&kind)).filter(|name| *name != NOTHING).collect();
            names.join(" or ")
        }
    }
}

/// A choice of words.
pub(super) fn one_of(words: &[String]) -> Option<String> {
    match words {
        [] => None,
        [only] => Some(only.clone()),
        several => Some(format!("one of {}", several.join(", "))),
    }
}

fn words_of(options: &Value) -> Vec<String> {
    options.as_array().into_iter().flatten().map(quoted).collect()
}

/// A word that can be written.
fn quoted(word: &Value) -> String {
    match word.as_str() {
        Some(word) if !word.is_empty() => format!("`{word}`"),
        _ => format!("`{word}`"),
    }
}

fn number(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Dotted path of a JSON pointer.
fn dotted(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".").replace("~1", "/").replace("~0", "~")
}

/// The schema of what stands at a dotted path.
fn schema_at<'a>(path: &str, root: &'a Value) -> Option<&'a Value> {
    let mut steps = path.split('.').filter(|it| !it.is_empty());
    steps.try_fold(root, |schema, step| child(schema, step, root))
}

/// The schema of a key of a map, or of an item of a list.
fn child<'a>(schema: &'a Value, part: &str, root: &'a Value) -> Option<&'a Value> {
    let schema = resolve(schema, root)?;
    let property = schema.get("properties").and_then(|properties| properties.get(part));
    property.or_else(|| schema.get("items")).or_else(|| schema.get("additionalProperties"))
}

fn clip(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
