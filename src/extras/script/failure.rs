//! Part of `script`: what goes wrong in a script, with the place in the file as it was written.

use std::fmt;

use rquickjs::{CaughtError, Object, Value};
use thiserror::Error;

use super::program::{Program, TRACE};

/// No message needs more characters.
const LONGEST: usize = 4000;

/// What a script threw, or why it was stopped.
#[derive(Debug, Clone, Error)]
pub(super) struct Failure {
    /// In the words of the script, or in ours.
    pub(super) problem: String,
    /// Where, if it is known.
    pub(super) place: Option<Place>,
    /// `code` and `status` of the error, by which a model says what kind of failure it was.
    pub(super) kind: Option<Kind>,
}

/// What kind of failure an error says it is.
#[derive(Debug, Clone, Default)]
pub(super) struct Kind {
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
        Self { problem: problem.into(), place: None, kind: None }
    }

    /// What has no place of its own is the fault of this file.
    pub(super) fn of(self, file: &str) -> Self {
        match self.place {
            Some(_) => self,
            None => Self { problem: format!("{file}: {}", self.problem), ..self },
        }
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
            let hint = if value.is_null() { ", or there was no memory left for one" } else { "" };
            return Self::new(format!("{} was thrown, which is no Error{hint}", shown(value)));
        };
        let (name, message) = (text(object, "name"), text(object, "message").unwrap_or_default());
        let stack = text(object, "stack").unwrap_or_default();
        let place = stack.lines().take(TRACE).find_map(|line| program.place(line));
        if let Some(failure) = not_exported(&message, program) {
            return failure;
        }
        let message = format!("{message}{}", hint(&message));
        let problem = match name.filter(|it| it != "Error") {
            Some(name) if message.is_empty() => name,
            Some(name) => format!("{name}: {message}"),
            None => message,
        };
        Self { problem: shortened(problem), place, kind: kind(object) }
    }
}

fn kind(object: &Object<'_>) -> Option<Kind> {
    let status = object.get::<_, Option<u16>>("status").unwrap_or_else(|_| {
        object.ctx().catch();
        None
    });
    let code = text(object, "code");
    (code.is_some() || status.is_some()).then_some(Kind { code, status })
}

/// A property of an error as text. Reading it may run code of the script, which may throw.
fn text(object: &Object<'_>, key: &str) -> Option<String> {
    let read = object.get::<_, Option<String>>(key);
    read.unwrap_or_else(|_| {
        object.ctx().catch();
        Some(format!("(its {key} cannot be read)"))
    })
}

fn shown(value: &Value<'_>) -> String {
    let read = super::value::from_js(value);
    shortened(read.map_or_else(|problem| format!("something ({problem})"), |it| it.to_string()))
}

fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The engine names a module in full and no place; whoever wrote the import wants to see that.
fn not_exported(message: &str, program: &Program) -> Option<Failure> {
    let (name, target) = message
        .strip_prefix("Could not find export '")
        .or_else(|| message.strip_prefix("export '"))
        .or_else(|| message.strip_prefix("circular reference when looking for export '"))?
        .split_once("' in module '")?;
    let target = target.split('\'').next().unwrap_or(target);
    let import = program.import_of(name, target)?;
    let problem = format!(
        "`{}` exports no `{name}`; a type is imported with `import type`",
        import.specifier
    );
    Some(Failure { problem, place: Some(import.place.clone()), kind: None })
}

/// What people expect who come from Node.
fn hint(message: &str) -> &'static str {
    match message.strip_suffix(" is not defined") {
        Some("require") => ": other files come in by `import … from './file.ts'`",
        Some("module" | "exports") => ": a script says `export function apply(ctx, config)`",
        Some("process") => {
            ": a script sees no environment; what it needs stands in its config, also as `${NAME}`"
        }
        Some("Buffer") => ": there is no Node here; there are `Uint8Array` and texts",
        Some("__dirname" | "__filename") => ": a script has no file system",
        _ => "",
    }
}
