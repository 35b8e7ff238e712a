//! Part of `script`: what goes wrong in a script, with the place in the file as it was written.

use std::fmt;

use rquickjs::{CaughtError, Value};
use thiserror::Error;

use super::program::Program;

/// What a script threw, or why it was stopped.
#[derive(Debug, Clone, Error)]
pub(super) struct Failure {
    /// In the words of the script, or in ours.
    pub(super) problem: String,
    /// Where, if it is known.
    pub(super) place: Option<Place>,
    /// `code` and `status` of the error, by which a model says what kind of failure it was.
    pub(super) code: Option<String>,
    pub(super) status: Option<u16>,
}

/// A place in a source file, in its own lines: those of the TypeScript, not of what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// As messages show it.
    pub(super) file: String,
    /// From 1.
    pub(super) line: u32,
    /// From 1.
    pub(super) column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}

impl Failure {
    /// A problem without a place.
    pub(super) fn new(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), place: None, code: None, status: None }
    }

    /// What an operation of the engine failed with.
    pub(super) fn caught(caught: CaughtError<'_>, program: &Program) -> Self {
        match caught {
            CaughtError::Exception(it) => Self::thrown(it.as_value(), program),
            CaughtError::Value(it) => Self::thrown(&it, program),
            CaughtError::Error(it) => Self::new(it.to_string()),
        }
    }

    /// A thrown value: an `Error` as a rule, but anything can be thrown.
    pub(super) fn thrown(value: &Value<'_>, program: &Program) -> Self {
        let Some(object) = value.as_object().filter(|it| it.is_error()) else {
            let shown = super::value::from_js(value);
            let shown = shown.map_or_else(|problem| problem, |it| match it {
                serde_json::Value::String(text) => text,
                other => other.to_string(),
            });
            return Self::new(shown);
        };
        let text = |key: &str| object.get::<_, Option<String>>(key).ok().flatten();
        let (name, message) = (text("name"), text("message").unwrap_or_default());
        let problem = match name.filter(|it| it != "Error") {
            Some(name) if message.is_empty() => name,
            Some(name) => format!("{name}: {message}"),
            None => message,
        };
        let place = text("stack").and_then(|it| it.lines().find_map(|line| program.place(line)));
        let status = object.get::<_, Option<u16>>("status").ok().flatten();
        Self { problem, place, code: text("code"), status }
    }
}
