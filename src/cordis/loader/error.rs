//! Why a list is refused as a whole, and how that reads.

use std::{fmt, io, sync::Arc};

use thiserror::Error;

use super::{places::Places, tree::join};

/// Why a list was refused as a whole. Nothing was changed.
#[derive(Debug, Clone, Error)]
#[error("{file}: {cause}")]
pub struct LoadError {
    /// How messages call the file.
    pub file: String,
    /// What is wrong with it.
    pub cause: Cause,
}

/// What can be wrong with a list.
#[derive(Debug, Clone, Error)]
pub enum Cause {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Read(Arc<io::Error>),
    /// Somebody else may have written it.
    #[error("{0}")]
    Untrusted(String),
    /// The bytes are no UTF-8.
    #[error("it is not UTF-8 text")]
    Encoding,
    /// The text is no YAML.
    #[error("{0}")]
    Syntax(String),
    /// There is nothing in it.
    #[error("it is empty; a list without entries is written `[]`")]
    Empty,
    /// The document is something else than a list.
    #[error("it must be a list of entries, this is {0}")]
    NoList(&'static str),
    /// All faults of the list and of the configs of its entries.
    #[error("{}", joined(.0))]
    Faults(Vec<Fault>),
    /// A listener of `loader/before-apply` said no.
    #[error("{0}")]
    Refused(String),
    /// The loader was unmounted meanwhile.
    #[error("the loader has stopped")]
    Stopped,
}

pub(super) fn joined(faults: &[Fault]) -> String {
    faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("; ")
}

/// One thing that is wrong with the list or with the config of an entry.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Which entry, in the user's words.
    pub entry: String,
    /// The line in the file, where it is known.
    pub line: Option<usize>,
    /// Dotted path of the field, from the entry down; empty for the entry as a whole.
    pub field: String,
    /// What is wrong.
    pub problem: String,
}

impl Fault {
    /// A fault at a field of an entry. A field that is not there has the line of what it should be in.
    pub(super) fn at(
        places: &Places,
        place: usize,
        entry: String,
        field: &str,
        problem: String,
    ) -> Self {
        let line = places.line(&join(&place.to_string(), field));
        Self { entry, line, field: field.to_owned(), problem }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.entry)?;
        if let Some(line) = self.line {
            write!(f, " (line {line})")?;
        }
        if !self.field.is_empty() {
            write!(f, ": {}", self.field)?;
        }
        write!(f, ": {}", self.problem)
    }
}
