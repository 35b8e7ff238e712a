//! Part of `agent_loop`: what ends a turn early, and how the log records it.

use thiserror::Error;

use crate::{
    cordis::BoxError,
    harness::{
        llm::LlmError,
        session::{error::SessionError, event::TurnError},
    },
};

/// What a listener of `agent/request` answers to end the turn before the next request: why, in words for the user. The
/// turn fails, with the code `ended`. Any other error of a listener ends it as well, as the failure that it is.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct EndTurn(pub String);

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
    #[error("{0}")]
    Ended(EndTurn),
    #[error("the log could not be written: {0}")]
    Log(#[from] SessionError),
}

impl Failure {
    /// What an error of a listener of `agent/request` means.
    pub(super) fn of_listener(err: BoxError) -> Self {
        err.downcast::<EndTurn>().map_or_else(Failure::Plugin, |it| Failure::Ended(*it))
    }

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
            Failure::Ended(_) => ("ended", None, None),
            Failure::Log(_) => ("log", None, None),
        };
        TurnError { message, code: Some(code.to_owned()), status, request_hash }
    }
}
