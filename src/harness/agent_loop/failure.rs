//! Part of `agent_loop`: what ends a turn early, and how the log records it.

use thiserror::Error;

use crate::{
    cordis::BoxError,
    harness::{
        llm::LlmError,
        session::{error::SessionError, event::TurnError},
    },
};

/// Why a turn did not come to its own end.
#[derive(Debug, Error)]
pub(super) enum Failure {
    #[error("stopped")]
    Aborted,
    #[error("the agent loop, or what it needs, was unloaded while the turn ran")]
    Unloaded,
    #[error("{0}")]
    NotReady(String),
    #[error("a content filter of the model service stopped the reply")]
    Filtered,
    #[error("{source}")]
    Model { source: LlmError, hash: String },
    #[error("a plugin failed: {0}")]
    Plugin(BoxError),
    #[error("the log could not be written: {0}")]
    Log(#[from] SessionError),
}

impl Failure {
    /// The same facts as `turn/end` holds them.
    pub(super) fn record(self) -> TurnError {
        let message = self.to_string();
        let (code, status, request_hash) = match self {
            Failure::Aborted => ("aborted", None, None),
            Failure::Unloaded => ("unloaded", None, None),
            Failure::NotReady(_) => ("not-ready", None, None),
            Failure::Filtered => ("content-filter", None, None),
            Failure::Model { source, hash } => (source.code(), source.status(), Some(hash)),
            Failure::Plugin(_) => ("plugin", None, None),
            Failure::Log(_) => ("log", None, None),
        };
        TurnError { message, code: Some(code.to_owned()), status, request_hash }
    }
}
