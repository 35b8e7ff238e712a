//! What can go wrong with the saved sessions, in the user's words.

use std::{io, path::PathBuf};

use thiserror::Error;

/// Why a session cannot be found, read, kept or repaired.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum PersistenceError {
    /// The text can be no id, nor the beginning of one.
    #[error("`{}` is not the id of a session", .0.escape_debug())]
    BadId(String),
    /// Nothing here begins like that.
    #[error("no session `{id}` in {}{}", dir.display(), newest_of(newest))]
    Unknown { id: String, dir: PathBuf, newest: Vec<String> },
    /// Several sessions begin like that.
    #[error("`{id}` may be any of {}", candidates.join(", "))]
    Ambiguous { id: String, candidates: Vec<String> },
    /// Nothing was saved here yet.
    #[error("no session in {}", dir.display())]
    NoSessions { dir: PathBuf },
    /// Another process, or another part of this one, has it open.
    #[error("session `{id}` is in use by another nano-cordis")]
    Locked { id: String },
    /// A log that stops within a turn.
    #[error("{} stops within turn {turn}, at `{at}` (line {line}); `nano-cordis --repair {id}` closes the turn", path.display())]
    OpenTurn { path: PathBuf, id: String, turn: u32, at: String, line: usize },
    /// Nothing in a log can be gone on with.
    #[error("{} holds no whole turn that another session could begin with", path.display())]
    NoWholeTurn { path: PathBuf },
    /// A line that is no event, or not the next one.
    #[error("{}, line {line}: {problem}; the file was left as it is", path.display())]
    Damaged { path: PathBuf, line: usize, problem: String },
    /// No conversation is that long, and it would have to be held in memory.
    #[error("{} has {bytes} bytes, more than a session can have", path.display())]
    TooLarge { path: PathBuf, bytes: u64 },
    /// A line that a repair cannot mend either.
    #[error("{source}: a repair only adds lines at the end")]
    BeyondRepair { source: Box<PersistenceError> },
    /// A symbolic link, a pipe, a folder.
    #[error("{} is not a regular file; nothing was read from it", path.display())]
    NotAFile { path: PathBuf },
    /// The folder leads elsewhere.
    #[error("{} is a symbolic link; sessions are not kept behind one", path.display())]
    Linked { path: PathBuf },
    /// Somebody else wrote to the file, or replaced it.
    #[error("{} was changed by another program", path.display())]
    Changed { path: PathBuf },
    /// Somebody else deleted the file, or moved it away.
    #[error("{} was removed by another program", path.display())]
    Removed { path: PathBuf },
    /// An event could not be written, so its turn is left open.
    #[error("{source}; `nano-cordis --repair {id}` closes the turn")]
    LeftOpen { id: String, source: Box<PersistenceError> },
    /// The system refused something.
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

impl PersistenceError {
    pub(super) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}

fn newest_of(ids: &[String]) -> String {
    match ids {
        [] => "; nothing was saved there yet".into(),
        ids => format!("; the newest are {}", ids.join(", ")),
    }
}
