//! What of a conversation goes to stdout: a transcript for people, or JSON lines for programs.
//!
//! Part of `cli`. Which it is, the command line says (`--output-format`, `--quiet`).
//! Watch for: an event is printed as the log has it, so what is live only (pieces of a reply, retries) has no `seq`.

use std::path::Path;

use serde_json::{Value, json};

use super::arguments::OutputFormat;
use super::console::Console;
use super::results::{SCHEMA, json_line};
use super::text::escaped;
use super::transcript::{Transcript, final_text};
use super::usage::Usage;
use crate::harness::llm::Delta;
use crate::harness::session::event::{Event, EventBody};

/// What is printed, and what has to be remembered for it.
pub(super) struct Printer {
    form: Form,
    transcript: Transcript,
    /// Of the turn so far; nothing before its first reply.
    usage: Option<Usage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Transcript,
    /// Only the last text of a turn.
    FinalText,
    /// Only the result of a turn, which is not printed here.
    Result,
    Stream,
}

impl Printer {
    pub(super) fn new(console: &Console) -> Self {
        let form = match console.format() {
            OutputFormat::Text if console.arguments().quiet => Form::FinalText,
            OutputFormat::Text => Form::Transcript,
            OutputFormat::Json => Form::Result,
            OutputFormat::StreamJson => Form::Stream,
        };
        let transcript =
            if console.has_looks { Transcript::styled() } else { Transcript::default() };
        Self { form, transcript, usage: None }
    }

    /// A session was opened. Its history is not printed again.
    pub(super) fn session(&self, id: &str, cwd: &Path) -> String {
        let cwd = cwd.to_string_lossy();
        let line = json!({ "type": "session", "schema": SCHEMA, "session": id, "cwd": cwd });
        self.line(&line)
    }

    pub(super) fn event(&mut self, event: &Event) -> String {
        match &event.body {
            EventBody::TurnStart { .. } => self.usage = None,
            EventBody::AssistantMessage { usage, .. }
            | EventBody::CompactionSummary { usage, .. } => {
                let reply = Usage::of(usage.as_ref());
                self.usage = Some(self.usage.map_or(reply, |it| it.plus(reply)));
            }
            _ => {}
        }
        match self.form {
            Form::Transcript => self.transcript.event(&event.body),
            Form::Stream => escaped(&event.to_line()) + "\n",
            Form::FinalText | Form::Result => String::new(),
        }
    }

    pub(super) fn delta(&mut self, delta: &Delta) -> String {
        match (self.form, delta) {
            (Form::Transcript, Delta::Text(piece)) => self.transcript.delta(piece),
            (Form::Transcript, Delta::Retry { .. }) => self.transcript.starts_anew(),
            _ => self.line(&live(delta)),
        }
    }

    /// The end of a turn, whose last text this is.
    pub(super) fn end(&self, text: &str) -> String {
        if self.form == Form::FinalText { final_text(text) } else { String::new() }
    }

    /// What the turn cost, as far as it is known.
    pub(super) fn usage(&self) -> Option<Usage> {
        self.usage.and_then(Usage::known)
    }

    fn line(&self, value: &Value) -> String {
        if self.form == Form::Stream { json_line(value) } else { String::new() }
    }
}

fn live(delta: &Delta) -> Value {
    match delta {
        Delta::Text(text) => json!({ "type": "assistant/delta", "data": { "text": text } }),
        Delta::Reasoning(text) => {
            json!({ "type": "assistant/delta", "data": { "reasoning": text } })
        }
        Delta::Retry { why, after, attempt, of } => {
            let after = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
            let data = json!({ "why": why, "afterMs": after, "attempt": attempt, "of": of });
            json!({ "type": "assistant/retry", "data": data })
        }
    }
}
