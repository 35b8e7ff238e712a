//! Why a session or an event was refused.

use thiserror::Error;

use super::line::EventError;
use crate::cordis::{BoxError, Error as KernelError};

/// Why a session or an event was refused.
#[derive(Debug, Error)]
pub enum SessionError {
    /// A listener of `session/event` wanted to append.
    #[error("cannot append `{kind}` while another event is being recorded")]
    Busy {
        /// What was to be appended.
        kind: String,
    },
    /// The session takes no more events.
    #[error("session `{id}` takes no more events: {reason}")]
    Sealed {
        /// The session.
        id: String,
        /// What happened to it.
        reason: String,
    },
    /// The event does not belong at the end of this log.
    #[error("cannot append `{kind}`: {problem}")]
    OutOfPlace {
        /// Its type.
        kind: String,
        /// What the log expects.
        problem: String,
    },
    /// The event would not be readable at a resume.
    #[error("cannot append `{kind}`: it would not be read back: {source}")]
    Unreadable {
        /// Its type.
        kind: String,
        /// What the reader says of it.
        #[source]
        source: EventError,
    },
    /// The event would be taken for another one at a resume.
    #[error("cannot append `{kind}`: it would be read back as another event")]
    Misread {
        /// Its type.
        kind: String,
    },
    /// The store failed; the session takes no more events.
    #[error("session `{id}` cannot be saved: {source}")]
    NotKept {
        /// The session.
        id: String,
        /// What the store says.
        source: BoxError,
    },
    /// The numbers of a history do not follow each other.
    #[error("event {index} of the history has seq {seq}, not {expected}")]
    Gap {
        /// Its place, from 0.
        index: usize,
        /// Its number.
        seq: u64,
        /// The number it should have.
        expected: u64,
    },
    /// An event of a history is out of its place.
    #[error("event {index} of the history, `{kind}`: {problem}")]
    BadHistory {
        /// Its place, from 0.
        index: usize,
        /// Its type.
        kind: String,
        /// What is wrong.
        problem: String,
    },
    /// No session can have this id.
    #[error("`{}` is not the id of a session", .0.escape_debug())]
    BadId(String),
    /// The session is open already.
    #[error("session `{0}` is open already")]
    AlreadyOpen(String),
    /// There is a store already.
    #[error("sessions are kept in another store already")]
    SecondStore,
    /// The caller is not running.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}
