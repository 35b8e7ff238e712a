//! What serde has against a config that fits its schema, in the user's words.
//!
//! A schema says less than a type: that a number fits 32 bits, that an address is one. What is refused there is refused
//! by serde, in words for whoever wrote the type; they are put into ours here. Words that a type chose itself stay.

use serde_json::Value;

use super::config::{UnknownKey, Unreadable};
use super::fault::{one_of, refused};
use super::nearest;
use super::secrecy::is_secret;
use super::tidy::join;
use crate::cordis::error::Fault;

/// The fault that an error of serde stands for.
pub(super) fn fault(err: &Unreadable, config: &Value, root: &Value) -> Fault {
    let Unreadable { path, problem } = err;
    if let Some(key) = between(problem, "missing field `", "`") {
        return Fault { path: join(path, key), problem: "is required".into() };
    }
    if let Some(key) = between(problem, "unknown field `", "`") {
        let known = expected(problem).split('`').skip(1).step_by(2);
        return UnknownKey { path: join(path, key), near: nearest(key, known) }.into_fault();
    }
    let pointer = format!("/{}", path.replace('.', "/"));
    let found = config.pointer(&pointer).filter(|_| !path.is_empty()).unwrap_or(config);
    let must_be = |wanted: &str| refused(path.clone(), &format!("must be {wanted}"), found, root);
    if problem.starts_with("unknown variant ") {
        let words: Vec<_> =
            expected(problem).split('`').skip(1).step_by(2).map(|it| format!("`{it}`")).collect();
        return must_be(&one_of(&words).unwrap_or_default());
    }
    if ["invalid type: ", "invalid value: ", "invalid length "]
        .iter()
        .any(|it| problem.starts_with(it))
    {
        return must_be(&wanted(expected(problem)));
    }
    match problem.as_str() {
        _ if is_secret(path, root) => {
            Fault { path: path.clone(), problem: "does not fit, and is not shown".into() }
        }
        it if it.starts_with("data did not match any variant") => must_be("of another shape"),
        own => Fault { path: path.clone(), problem: own.to_owned() },
    }
}

fn expected(problem: &str) -> &str {
    problem.rsplit_once(", expected ").map_or("", |(_, wanted)| wanted)
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    text.strip_prefix(before)?.split(after).next()
}

/// What serde calls a type, as people do.
fn wanted(expected: &str) -> String {
    let plain = expected.trim_start_matches("a nonzero ");
    let least = |least: &str| if plain == expected { least.to_owned() } else { "1".to_owned() };
    let range = match plain {
        "u8" => Some((least("0"), u8::MAX.to_string())),
        "u16" => Some((least("0"), u16::MAX.to_string())),
        "u32" => Some((least("0"), u32::MAX.to_string())),
        "u64" | "usize" => Some((least("0"), u64::MAX.to_string())),
        "i8" => Some((i8::MIN.to_string(), i8::MAX.to_string())),
        "i16" => Some((i16::MIN.to_string(), i16::MAX.to_string())),
        "i32" => Some((i32::MIN.to_string(), i32::MAX.to_string())),
        "i64" | "isize" => Some((i64::MIN.to_string(), i64::MAX.to_string())),
        _ => None,
    };
    if let Some((least, most)) = range {
        return format!("a whole number from {least} to {most}");
    }
    let word = match plain {
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "a borrowed string" | "string or map" => "a text",
        "a character" => "a single character",
        "a sequence" => "a list",
        "a map" => "a map",
        "unit" | "null" => "nothing",
        it if it.starts_with("struct ") || it.contains("tagged enum ") => "a map",
        it if it.starts_with("tuple ")
            || it.starts_with("a tuple ")
            || it.starts_with("an array ") =>
        {
            "a list"
        }
        own => own,
    };
    word.to_owned()
}
