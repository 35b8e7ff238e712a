//! Why a model gave no reply.
//!
//! Watch for: what can be done about a failure depends on its kind, so a provider sorts each into one of these.

use thiserror::Error;

/// Why there is no reply. Each message is one line and names what the user can change; none holds a key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LlmError {
    /// The token was pulled.
    #[error("cancelled")]
    Cancelled,
    /// The key is read for each request; this time the named variable was not there.
    #[error("the environment variable {0} is not set (`apiKeyEnv` names it)")]
    MissingKey(String),
    /// Something on this side makes every request impossible: a damaged key, a proxy, certificates.
    #[error("{0}")]
    Setup(String),
    /// The server refused, with an HTTP status or with an error in place of a reply.
    #[error("{message}")]
    Status {
        /// Of HTTP, or the one that the error itself states.
        status: u16,
        /// Who said what.
        message: String,
    },
    /// No money or no allowance left: asking again does not help.
    #[error("{message}")]
    Quota {
        /// Of HTTP, as above.
        status: u16,
        /// Who said what.
        message: String,
    },
    /// The conversation is longer than the model can read.
    #[error("{message}")]
    ContextLength {
        /// Of HTTP, as above.
        status: u16,
        /// Who said what.
        message: String,
    },
    /// The server was not reached, or the connection broke.
    #[error("{0}")]
    Transport(String),
    /// Nothing came for too long; the message names the limit and its setting.
    #[error("{0}")]
    Timeout(String),
    /// An answer came and is no reply; the message says how it begins.
    #[error("{0}")]
    BadReply(String),
    /// A reply began and did not come to its end, or came damaged.
    #[error("{0}")]
    Broken(String),
    /// The model said nothing and called nothing.
    #[error("empty reply: neither text nor a tool call")]
    Empty,
    /// The script of the fake model says so.
    #[error("{0}")]
    Scripted(String),
    /// A plugin that is the model threw something else.
    #[error("{0}")]
    Script(String),
}

impl LlmError {
    /// What kind of failure, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::MissingKey(_) => "missing-key",
            Self::Setup(_) => "setup",
            Self::Status { .. } => "status",
            Self::Quota { .. } => "quota",
            Self::ContextLength { .. } => "context-length",
            Self::Transport(_) => "transport",
            Self::Timeout(_) => "timeout",
            Self::BadReply(_) => "bad-reply",
            Self::Broken(_) => "broken-reply",
            Self::Empty => "empty-reply",
            Self::Scripted(_) => "scripted",
            Self::Script(_) => "script",
        }
    }

    /// The HTTP status, where there was one.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. }
            | Self::Quota { status, .. }
            | Self::ContextLength { status, .. } => Some(*status),
            _ => None,
        }
    }
}
