//! What the end of a turn means: the exit status if it was the last one, and what is said about it.
//!
//! Part of `cli`.

use super::status::{COMPLETED, FAILED, INTERRUPTED, LIMIT_REACHED, MISUSED};
use super::text::counted;
use crate::harness::agent_loop::{RunError, TurnOutcome};
use crate::harness::session::event::Reason;

/// Status and message. Calls that were denied are no failure.
pub(super) fn verdict(outcome: &Result<TurnOutcome, RunError>) -> (u8, Option<String>) {
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(err) => return (status_of(err), Some(err.to_string())),
    };
    match outcome.reason {
        Reason::Completed => (COMPLETED, None),
        Reason::Aborted | Reason::Interrupted => (INTERRUPTED, Some("cancelled".into())),
        Reason::MaxTokens => (LIMIT_REACHED, Some("the reply was cut at the token limit".into())),
        Reason::MaxSteps => {
            let steps = counted(outcome.steps, "step");
            let hint = format!("stopped after {steps}; say \"go on\" to continue");
            (LIMIT_REACHED, Some(hint))
        }
        Reason::Error => {
            let error = outcome.error.as_ref();
            (FAILED, Some(error.map_or("the turn failed".into(), |it| it.message.clone())))
        }
    }
}

/// The kind of a failure before a turn began, for programs.
pub(super) fn code_of(err: &RunError) -> &'static str {
    match err {
        RunError::Empty => "usage",
        RunError::NotReady(_) => "not-ready",
        RunError::Cancelled => "aborted",
        RunError::Busy => "busy",
        RunError::Unloaded => "unloaded",
        RunError::Log(_) => "log",
    }
}

fn status_of(err: &RunError) -> u8 {
    match err {
        RunError::Empty | RunError::NotReady(_) => MISUSED,
        RunError::Cancelled => INTERRUPTED,
        RunError::Busy | RunError::Unloaded | RunError::Log(_) => FAILED,
    }
}
