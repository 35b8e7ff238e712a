//! How a turn ended, or why none began.

use thiserror::Error;

use crate::harness::session::{
    error::SessionError,
    event::{Reason, TurnError},
};

/// How a turn ended.
#[derive(Debug, Clone)]
pub struct TurnOutcome {
    /// The reason in `turn/end`.
    pub reason: Reason,
    /// The last text of the model; empty when it wrote none.
    pub text: String,
    /// What went wrong, when the reason is `error`.
    pub error: Option<TurnError>,
    /// Model requests that were begun.
    pub steps: u32,
    /// Tool calls that got a result.
    pub tool_calls: u32,
    /// Those of them that a plugin or the user refused.
    pub denied: u32,
}

/// Why no turn began.
#[derive(Debug, Error)]
pub enum RunError {
    /// Nothing was said.
    #[error("the text is empty")]
    Empty,
    /// One turn at a time.
    #[error("a turn of this session is running")]
    Busy,
    /// No turn on a half-loaded agent: a policy that failed to start must not mean "no policy".
    #[error("{0}")]
    NotReady(String),
    /// Stopped while it waited for a change of the configuration to be applied.
    #[error("stopped before the turn began")]
    Cancelled,
    /// The caller holds a loop that is gone.
    #[error("the agent loop was unloaded")]
    Unloaded,
    /// The log does not take the first event.
    #[error(transparent)]
    Log(#[from] SessionError),
}
