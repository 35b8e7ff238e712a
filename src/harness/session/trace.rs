//! Where in its turn a log stands: which turn and step are open, and which calls wait for their result.
//!
//! Full-size counterpart: the optional companion that checks the order of events at run time; here it is always on.
//! Watch for: a log that breaks these rules would be refused by services at every later request, so it is neither
//! written nor gone on with. A reader asks for less than the writer: others leave numbers out.

use super::{event::EventBody, message::ToolCallRequest};

/// The state of a log after its last event.
#[derive(Debug, Default)]
pub struct Trace {
    turn: u32,
    step: u32,
    in_turn: bool,
    in_step: bool,
    calls: Vec<OpenCall>,
}

/// A call that the current step's answer asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall {
    /// The model's id of it.
    pub id: String,
    /// The tool.
    pub name: String,
    /// It was logged that the tool is about to run.
    pub started: bool,
}

impl Trace {
    /// The number of the last turn; 0 before the first.
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// The turn that is open.
    pub fn open_turn(&self) -> Option<u32> {
        self.in_turn.then_some(self.turn)
    }

    /// The step that is open.
    pub fn open_step(&self) -> Option<u32> {
        self.in_step.then_some(self.step)
    }

    /// The calls of the current step that have no result yet, in the model's order.
    pub fn open_calls(&self) -> &[OpenCall] {
        &self.calls
    }

    /// What would be wrong with this event as the next one that we write.
    pub fn check(&self, body: &EventBody) -> Result<(), String> {
        self.check_at(body.place(), body)
    }

    /// What is wrong with this event as the next one of a log that somebody wrote. They may count otherwise than we do,
    /// or leave turn and step out; and what the user says may stand anywhere.
    pub fn check_read(&self, body: &EventBody) -> Result<(), String> {
        match body {
            EventBody::UserMessage { .. } => Ok(()),
            EventBody::RequestHeader { .. } if self.in_turn => Ok(()),
            EventBody::TurnStart { .. } | EventBody::StepStart { .. }
                if self.next(body).is_some() =>
            {
                Ok(())
            }
            _ => {
                let ((turn, step), next) = (body.place(), self.next(body).unwrap_or_default());
                self.check_at((number(turn, next.0), number(step, next.1)), body)
            }
        }
    }

    fn check_at(&self, (turn, step): (u32, u32), body: &EventBody) -> Result<(), String> {
        match self.next(body) {
            _ if matches!(body, EventBody::Ignorable { .. }) => Ok(()),
            _ if matches!(body, EventBody::CompactionSummary { .. }) => self.all_answered(),
            None => Err(format!("out of place: {}", self.place())),
            Some(next) if next != (turn, step) => Err(format!(
                "numbered turn {turn}, step {step} where turn {}, step {} is next",
                next.0, next.1
            )),
            Some(_) => self.check_call(body),
        }
    }

    /// The turn and step that an event of this kind has here, if it can stand here at all.
    fn next(&self, body: &EventBody) -> Option<(u32, u32)> {
        match body {
            EventBody::TurnStart { .. } => {
                (!self.in_turn).then_some((self.turn.saturating_add(1), 0))
            }
            EventBody::StepStart { .. } => {
                (self.in_turn && !self.in_step).then_some((self.turn, self.step.saturating_add(1)))
            }
            EventBody::TurnEnd { .. } => (self.in_turn && !self.in_step).then_some((self.turn, 0)),
            _ => self.in_step.then_some((self.turn, self.step)),
        }
    }

    /// Takes note of an event that is in the log.
    pub fn follow(&mut self, body: &EventBody) {
        match body {
            EventBody::TurnStart { turn, .. } => {
                let turn = number(*turn, self.turn.saturating_add(1));
                *self = Self { turn, in_turn: true, ..Self::default() };
            }
            EventBody::StepStart { step, .. } => {
                self.step = number(*step, self.step.saturating_add(1));
                self.in_step = true;
                self.calls.clear();
            }
            EventBody::AssistantMessage { message, .. } => {
                self.calls.extend(message.tool_calls.iter().map(OpenCall::new));
            }
            EventBody::ToolCall { call_id, .. } => {
                let waiting = self.calls.iter_mut().find(|it| it.id == *call_id && !it.started);
                if let Some(call) = waiting {
                    call.started = true;
                }
            }
            EventBody::ToolResult { call_id, .. } => {
                let at = self.calls.iter().position(|it| it.id == *call_id);
                at.map(|at| self.calls.remove(at));
            }
            EventBody::StepEnd { .. } => self.in_step = false,
            EventBody::TurnEnd { .. } => (self.in_turn, self.in_step) = (false, false),
            EventBody::UserMessage { .. }
            | EventBody::RequestHeader { .. }
            | EventBody::CompactionSummary { .. }
            | EventBody::Ignorable { .. } => {}
        }
    }

    /// Each call that a message asks for has exactly one result, in the same step and before the next message.
    fn check_call(&self, body: &EventBody) -> Result<(), String> {
        let open = |id: &str| self.calls.iter().filter(|it| it.id == id).collect::<Vec<_>>();
        match body {
            EventBody::ToolCall { call_id: id, .. } | EventBody::ToolResult { call_id: id, .. }
                if open(id).is_empty() =>
            {
                Err(format!("the model did not ask for call `{id}`, or it has its result"))
            }
            EventBody::ToolResult { call_id: id, message, .. } if !message.answers(id) => {
                Err(format!("its message is not the result of call `{id}`"))
            }
            EventBody::ToolCall { call_id: id, .. } if open(id).iter().all(|it| it.started) => {
                Err(format!("call `{id}` was started already"))
            }
            EventBody::AssistantMessage { .. } | EventBody::StepEnd { .. } => self.all_answered(),
            _ => Ok(()),
        }
    }

    fn all_answered(&self) -> Result<(), String> {
        let missing = self.calls.first().map(|it| format!("call `{}` has no result", it.id));
        missing.map_or(Ok(()), Err)
    }

    fn place(&self) -> String {
        match (self.open_turn(), self.open_step()) {
            (None, _) => "no turn is open".into(),
            (Some(turn), None) => format!("turn {turn} is open, but no step"),
            (Some(turn), Some(step)) => format!("step {step} of turn {turn} is open"),
        }
    }
}

/// The number that an event has, or should have had.
fn number(given: u32, next: u32) -> u32 {
    if given == 0 { next } else { given }
}

impl OpenCall {
    fn new(call: &ToolCallRequest) -> Self {
        Self { id: call.id.clone(), name: call.function.name.clone(), started: false }
    }
}
