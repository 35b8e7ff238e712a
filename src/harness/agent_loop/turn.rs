//! Part of `agent_loop`: what a turn has opened in the log, and how it is closed on every way out.
//!
//! Watch for: `Drop` is the `finally` of this loop. A turn whose future is dropped (its caller was unloaded) or that
//! panics is closed like any other.

use std::collections::VecDeque;
use std::rc::Rc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::failure::Failure;
use super::{TurnOutcome, call_ids};
use crate::harness::llm::{Reply, Request};
use crate::harness::session::{
    EventBody, Header, Message, Reason, Session, SessionError, ToolCallRequest, TurnError,
};
use crate::harness::tools::ToolResult;

pub(super) struct Turn {
    session: Rc<Session>,
    turn: u32,
    step: u32,
    is_step_open: bool,
    /// Calls without a result, in order; `is_announced` says whether the first one is in the log already.
    unanswered: VecDeque<ToolCallRequest>,
    is_announced: bool,
    /// What the caller pulls, and what everything in this turn waits for: also pulled when the loop is unloaded.
    cancel: CancellationToken,
    stop: CancellationToken,
    running: watch::Sender<usize>,
    outcome: Option<TurnOutcome>,
    text: String,
    tool_calls: u32,
    denied: u32,
}

impl Turn {
    pub(super) fn open(
        session: &Rc<Session>,
        cancel: CancellationToken,
        running: &watch::Sender<usize>,
    ) -> Result<Turn, SessionError> {
        let turn = session.turns() + 1;
        let cwd = std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned();
        session.append(EventBody::TurnStart { turn, format: 1, cwd })?;
        running.send_modify(|count| *count += 1);
        Ok(Turn {
            session: session.clone(),
            turn,
            step: 0,
            is_step_open: false,
            unanswered: VecDeque::new(),
            is_announced: false,
            stop: cancel.child_token(),
            cancel,
            running: running.clone(),
            outcome: None,
            text: String::new(),
            tool_calls: 0,
            denied: 0,
        })
    }
}
