//! `--replay`: every request of a log, made once more from the log alone, and compared with what was sent.
//!
//! Part of `cli`.
//! Watch for: this is the proof that nothing reached the model that is not in the log. What a log does not tell, such as a
//! request without its hash, is unknown and never equal.

use std::rc::Rc;

use super::text::{counted, line};
use crate::harness::llm::Growing;
use crate::harness::session::event::{Event, EventBody};
use crate::harness::session::message::{Header, Message};
use crate::harness::session::shown_of;

/// What plugins that ask for a summary log before they do.
const ASKED: &str = "compaction/request";

/// What came of it.
pub(super) struct Replay {
    /// A line for each request that is not equal, and one about all.
    pub(super) text: String,
    /// Whether all of them are.
    pub(super) is_equal: bool,
}

/// Goes through a log.
pub(super) fn replay(events: Vec<Event>) -> Replay {
    let mut state = State::default();
    for event in events.into_iter().map(Rc::new) {
        state.follow(&event);
        state.events.push(event);
    }
    let State { equal, other, unanswered, .. } = &state;
    let all = equal + other.len();
    let said = match (all, other.len()) {
        (0, _) if unanswered.is_empty() => "there is no request in this log".to_owned(),
        (0, _) => "no request in this log was answered".to_owned(),
        (_, 0) => format!("{}: equal to what was sent", requests(all)),
        (_, rest) => format!("{}: {equal} equal to what was sent, {rest} not", requests(all)),
    };
    let mut lines = other.clone();
    lines.extend(unanswered.iter().map(|it| {
        format!("{it}: ended without a reply, so whether a request was sent is not known")
    }));
    lines.push(said);
    Replay { text: lines.join("\n") + "\n", is_equal: other.is_empty() }
}

fn requests(count: usize) -> String {
    counted(u32::try_from(count).unwrap_or(u32::MAX), "request")
}

#[derive(Default)]
struct State {
    events: Vec<Rc<Event>>,
    header: Option<Header>,
    /// The request as it would be sent now; nothing where it has to be put together anew.
    growing: Option<Growing>,
    equal: usize,
    other: Vec<String>,
    /// The step is open, and no reply to its request has come yet.
    is_waiting: bool,
    /// Steps that ended without a reply.
    unanswered: Vec<String>,
}

impl State {
    fn follow(&mut self, event: &Event) {
        match &event.body {
            EventBody::StepStart { .. } => self.is_waiting = true,
            EventBody::StepEnd { turn, step } if std::mem::take(&mut self.is_waiting) => {
                self.unanswered.push(format!("turn {turn}, step {step}"));
            }
            EventBody::RequestHeader { header, .. } => {
                self.header = Some(header.clone());
                self.growing = None;
            }
            EventBody::AssistantMessage { request_hash, .. } => {
                self.is_waiting = false;
                self.compare(event, request_hash.as_deref());
            }
            EventBody::TurnEnd { error: Some(error), .. } => {
                if let Some(hash) = &error.request_hash {
                    // Its step ended before, without a reply.
                    self.unanswered.pop();
                    self.compare(event, Some(hash));
                }
            }
            EventBody::CompactionSummary { .. } => self.growing = None,
            EventBody::Ignorable { kind, data } if kind == ASKED => {
                let instruction = data["instruction"].as_str().unwrap_or_default();
                let to = data["to"].as_u64().unwrap_or_default();
                let derived = self.summarising(to, instruction);
                self.judge(event, data["requestHash"].as_str(), derived);
                return;
            }
            _ => {}
        }
        if let (Some(growing), Some(message)) = (&mut self.growing, event.body.message()) {
            growing.push(&message);
        }
    }

    fn compare(&mut self, event: &Event, sent: Option<&str>) {
        if self.growing.is_none() {
            let messages = shown_of(&self.events).into_iter().map(|(_, it)| it);
            self.growing = self.grown(messages);
        }
        let derived = self.growing.as_ref().map(Growing::hash);
        self.judge(event, sent, derived);
    }

    /// A request for a summary of what is shown up to an event.
    fn summarising(&self, to: u64, instruction: &str) -> Option<String> {
        let shown = shown_of(&self.events).into_iter().filter(|(seq, _)| *seq <= to);
        let messages = shown.map(|(_, it)| it).chain([Message::user(instruction)]);
        self.grown(messages).as_ref().map(Growing::hash)
    }

    fn grown(&self, messages: impl Iterator<Item = Message>) -> Option<Growing> {
        let mut growing = Growing::new(self.header.as_ref()?);
        messages.for_each(|it| growing.push(&it));
        Some(growing)
    }

    fn judge(&mut self, event: &Event, sent: Option<&str>, derived: Option<String>) {
        let ((turn, step), seq, kind) = (event.body.place(), event.seq, event.body.kind());
        let place = match (turn, step) {
            (0, _) => format!("event {seq}, {}", line(kind)),
            (_, 0) => format!("turn {turn}, event {seq}, {kind}"),
            _ => format!("turn {turn}, step {step}, event {seq}, {kind}"),
        };
        match (sent, derived) {
            (Some(sent), Some(derived)) if sent == derived => self.equal += 1,
            (Some(sent), Some(derived)) => self.other.push(format!(
                "{place}: differs; sent was {}, the log gives {derived}",
                line(sent)
            )),
            (None, _) => self.other.push(format!("{place}: unknown; the log has no hash of it")),
            (_, None) => {
                self.other.push(format!("{place}: unknown; no header of a request is before it"));
            }
        }
    }
}
