//! What came of a turn, or of a run without one, as JSON for programs (schema 1, documented in the README).
//!
//! Part of `cli`. With `--output-format json` it is all there is on stdout, one object a turn; with `stream-json` it is
//! the last line.
//! Watch for: a program waits for this object, so every ending has one. A turn that begins owes it, and what nobody has
//! paid when the program ends is paid by the console.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use super::arguments::OutputFormat;
use super::outcome::code_of;
use super::status::COMPLETED;
use super::text::escaped;
use super::usage::Usage;
use crate::harness::agent_loop::{RunError, TurnOutcome};
use crate::harness::session::event::Reason;

/// The form of these objects. A greater number means that a field has another meaning or is gone.
pub(super) const SCHEMA: u32 = 1;

/// The object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnResult {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    schema: u32,
    /// None if no turn began.
    pub(super) session: Option<String>,
    reason: Reason,
    text: String,
    error: Option<Failure>,
    steps: u32,
    tool_calls: u32,
    denied: u32,
    usage: Option<Usage>,
    duration_ms: u64,
    exit_code: u8,
}

#[derive(Debug, Clone, Serialize)]
struct Failure {
    message: String,
    code: Option<String>,
    status: Option<u16>,
}

impl TurnResult {
    /// A run without a turn, or with one that left nothing to tell.
    fn bare(exit_code: u8, error: Option<Failure>) -> Self {
        let reason = match exit_code {
            COMPLETED => Reason::Completed,
            128.. => Reason::Aborted,
            _ => Reason::Error,
        };
        Self {
            kind: None,
            schema: SCHEMA,
            session: None,
            reason,
            text: String::new(),
            error,
            steps: 0,
            tool_calls: 0,
            denied: 0,
            usage: None,
            duration_ms: 0,
            exit_code,
        }
    }

    /// What a turn came to; `exit_code` is that of the process if it ends with this turn.
    pub(super) fn of(
        session: &str,
        outcome: &Result<TurnOutcome, RunError>,
        usage: Option<Usage>,
        exit_code: u8,
    ) -> Self {
        let failure =
            |message: String, code: Option<String>, status| Failure { message, code, status };
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(err) => {
                let error = failure(err.to_string(), Some(code_of(err).into()), None);
                return Self::bare(exit_code, Some(error));
            }
        };
        let error = outcome.error.clone().map(|it| failure(it.message, it.code, it.status));
        Self {
            session: Some(session.into()),
            reason: outcome.reason,
            text: outcome.text.clone(),
            error,
            steps: outcome.steps,
            tool_calls: outcome.tool_calls,
            denied: outcome.denied,
            usage,
            ..Self::bare(exit_code, None)
        }
    }

    fn line(mut self, format: OutputFormat, duration: Duration) -> String {
        self.kind = (format == OutputFormat::StreamJson).then_some("result");
        self.duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        json_line(&serde_json::to_value(self).expect("strings, numbers and an enum of words"))
    }
}

/// What a run comes to that could not even begin.
pub(crate) fn unbegun(format: OutputFormat, code: &str, message: &str, exit_code: u8) -> String {
    let results = Results::new(format, false);
    results.failed(code, message);
    results.last(exit_code)
}

/// One JSON object on a line of its own.
pub(super) fn json_line(value: &Value) -> String {
    escaped(&value.to_string()) + "\n"
}

/// The results of this process: which are owed, and what is known for one that nobody gave.
pub(super) struct Results {
    format: OutputFormat,
    is_owed: Cell<bool>,
    since: Cell<Instant>,
    /// The session of the turn that runs.
    session: RefCell<Option<String>>,
    failure: RefCell<Option<Failure>>,
}

impl Results {
    /// `is_conversation`: its results are those of its turns, and without a turn there may be none. But a stream always
    /// ends with one.
    pub(super) fn new(format: OutputFormat, is_conversation: bool) -> Self {
        let is_owed = match format {
            OutputFormat::Text => false,
            OutputFormat::Json => !is_conversation,
            OutputFormat::StreamJson => true,
        };
        Self {
            format,
            is_owed: Cell::new(is_owed),
            since: Cell::new(Instant::now()),
            session: RefCell::default(),
            failure: RefCell::default(),
        }
    }

    /// A turn is asked for.
    pub(super) fn begin(&self) {
        self.is_owed.set(self.format != OutputFormat::Text);
        self.since.set(Instant::now());
    }

    /// The turn has begun in the log of this session.
    pub(super) fn enter(&self, session: &str) {
        self.session.replace(Some(session.into()));
    }

    /// Something ends the program.
    pub(super) fn failed(&self, code: &str, message: &str) {
        self.is_owed.set(self.format != OutputFormat::Text);
        let failure = Failure { message: message.into(), code: Some(code.into()), status: None };
        self.failure.replace(Some(failure));
    }

    /// The text of a result that a turn gives.
    pub(super) fn give(&self, result: TurnResult) -> String {
        self.session.take();
        if !self.is_owed.replace(false) {
            return String::new();
        }
        result.line(self.format, self.since.get().elapsed())
    }

    /// The text of the result that is still owed when the program ends.
    pub(super) fn last(&self, exit_code: u8) -> String {
        let failure = self.failure.take();
        let session = self.session.borrow().clone();
        self.give(TurnResult { session, ..TurnResult::bare(exit_code, failure) })
    }
}
