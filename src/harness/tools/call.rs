//! A call on its way: as the model made it, as listeners and bodies see it, and what came of it.

use std::{cell::Cell, fmt::Display, rc::Rc};

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::harness::session::Session;

/// What the loop hands over: one call as the model made it.
pub struct CallRequest {
    /// Id of the call, unique in its session.
    pub id: String,
    /// Name of the tool, compared exactly.
    pub name: String,
    /// The argument text, untouched.
    pub arguments: String,
    /// Why this call must not run, if the caller knows a reason (the reply was cut).
    pub problem: Option<String>,
    /// Pulled when the turn is to end.
    pub cancel: CancellationToken,
    /// Where the call comes from; absent when no model made it.
    pub session: Option<Rc<Session>>,
    /// Number of the turn.
    pub turn: u32,
    /// Number of the step.
    pub step: u32,
}

/// A call as listeners and bodies see it. What is to run cannot be changed: the log would no longer say what ran.
pub struct Call {
    /// Id of the call, unique in its session.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// The argument text as the model made it.
    pub raw: String,
    /// The arguments, parsed; empty when they cannot be read.
    pub arguments: Map<String, Value>,
    /// Why the body will not run, whatever the listeners say: unknown tool, bad arguments, cut reply.
    pub problem: Option<String>,
    /// What it would change, as lines of text, if the tool says so.
    pub preview: Option<String>,
    /// Pulled when the turn is to end. Whoever waits (a question, a command) waits for this too.
    pub cancel: CancellationToken,
    /// Where the call comes from; absent when no model made it.
    pub session: Option<Rc<Session>>,
    /// Number of the turn.
    pub turn: u32,
    /// Number of the step.
    pub step: u32,
    /// Somebody wants a person to be asked: no rule and no earlier yes may answer for them.
    pub must_ask: Cell<bool>,
}

/// What the model reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The text.
    pub content: String,
    /// Whether the call failed or did not run; such text begins with `Error: `.
    pub is_error: bool,
    /// Whether a listener of `tools/pre-execute` refused the call.
    pub denied: bool,
}

impl ToolResult {
    /// A result of a call that worked.
    pub fn text(content: impl Into<String>) -> ToolResult {
        ToolResult { content: content.into(), is_error: false, denied: false }
    }

    /// A result of a call that failed.
    pub fn error(problem: impl Display) -> ToolResult {
        ToolResult { content: format!("Error: {problem}"), is_error: true, denied: false }
    }

    /// A result of a call that the turn's end overtook.
    pub fn aborted() -> ToolResult {
        ToolResult::error("aborted: the turn was stopped")
    }
}

impl<T: Into<String>> From<T> for ToolResult {
    fn from(content: T) -> ToolResult {
        ToolResult::text(content)
    }
}
