//! Part of `tool-files`: why a call cannot work, and what to do about it.

use std::{io, path::PathBuf};

use thiserror::Error;

/// The model reads these; each says the way out, if there is one.
#[derive(Debug, Error)]
pub(super) enum FileError {
    #[error("the root `{}` is no folder that can be used: {source}", path.display())]
    Root { path: PathBuf, source: io::Error },
    #[error("a path is missing; give one below {}", root.display())]
    NoPath { root: PathBuf },
    #[error("`{asked}` is outside of {}, which the file tools do not leave", root.display())]
    Outside { asked: String, root: PathBuf },
    #[error("`{name}` is not there; find what there is with glob")]
    Missing { name: String },
    #[error("`{name}` is a link to `{target}`, which is not there")]
    Dangling { name: String, target: String },
    #[error("`{name}` cannot be made: `..` stands after a folder that is not there")]
    Upwards { name: String },
    #[error("`{name}` is a folder, not a file; see what is in it with glob")]
    Folder { name: String },
    #[error("`{name}` is no folder; read it with read")]
    NoFolder { name: String },
    #[error("`{name}` is {what}, not a regular file")]
    NoFile { name: String, what: &'static str },
    #[error("`{name}` is binary, not text; look at it with a command")]
    Binary { name: String },
    #[error(
        "`{name}` has {size} bytes, and the file tools change files up to {limit}; use a command"
    )]
    Large { name: String, size: u64, limit: u64 },
    #[error("`{name}` is never written by the file tools: {why}; ask the user to change it")]
    Protected { name: String, why: &'static str },
    #[error("`{name}` was not read in this session; read it, then retry")]
    Unread { name: String },
    #[error("`{name}` has changed since it was read; read it again, then retry")]
    Changed { name: String },
    #[error("`{name}` came into being meanwhile; read it, then retry")]
    Appeared { name: String },
    #[error(
        "`old_string` is not in `{name}`; read it again and copy the text exactly, without line numbers, then retry"
    )]
    NoMatch { name: String },
    #[error(
        "`old_string` is {count} times in `{name}`; give more of the text around it, or set `replace_all`, then retry"
    )]
    Ambiguous { name: String, count: usize },
    #[error("`old_string` and `new_string` are the same; nothing would change")]
    Same,
    #[error("`old_string` is empty; to make a file or to replace all of it use write")]
    Empty,
    #[error("`{name}` is not UTF-8, so only ASCII can be put into it; use a command")]
    Encoding { name: String },
    #[error("`{name}` belongs to somebody else and would not any more; use a command")]
    Owner { name: String, source: io::Error },
    #[error("`{name}` has {lines} lines, so none from {offset} on")]
    Beyond { name: String, lines: u64, offset: u64 },
    #[error("`{pattern}` is no pattern of paths: {problem}")]
    Glob { pattern: String, problem: String },
    #[error("`{pattern}` is no regular expression: {problem}")]
    Regex { pattern: String, problem: String },
    #[error("cannot read `{name}`: {source}")]
    Read { name: String, source: io::Error },
    #[error("cannot write `{name}`: {source}")]
    Write { name: String, source: io::Error },
    #[error("the search broke off")]
    Broken,
}
