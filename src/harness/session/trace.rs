//! Where in its turn a log stands: which turn and step are open, and which calls wait for their result.
//!
//! Full-size counterpart: the optional companion that checks the order of events at run time; here it is always on.
//! Watch for: `check` binds the writer only. A reader follows whatever the log says.

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

    /// What would be wrong with this event as the next one.
    pub fn check(&self, body: &EventBody) -> Result<(), String> {
        let expected = match body {
            EventBody::Ignorable { .. } => return Ok(()),
            EventBody::TurnStart { .. } => {
                (!self.in_turn).then_some((self.turn.saturating_add(1), 0))
            }
            EventBody::StepStart { .. } => {
                (self.in_turn && !self.in_step).then_some((self.turn, self.step + 1))
            }
            EventBody::TurnEnd { .. } => (self.in_turn && !self.in_step).then_some((self.turn, 0)),
            _ => self.in_step.then_some((self.turn, self.step)),
        };
        match expected {
            None => Err(format!("out of place: {}", self.place())),
            Some(expected) if expected != body.place() => {
                let ((turn, step), (want_turn, want_step)) = (body.place(), expected);
                Err(format!(
                    "numbered turn {turn}, step {step} where turn {want_turn}, step {want_step} is next"
                ))
            }
            Some(_) => self.check_call(body),
        }
    }

    /// Takes note of an event that is in the log.
    pub fn follow(&mut self, body: &EventBody) {
        match body {
            EventBody::TurnStart { turn, .. } => {
                *self = Self { turn: *turn, in_turn: true, ..Self::default() };
            }
            EventBody::StepStart { step, .. } => {
                (self.step, self.in_step) = (*step, true);
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
            | EventBody::Ignorable { .. } => {}
        }
    }

    /// A call or result that no message asked for is refused by services, at every later request.
    fn check_call(&self, body: &EventBody) -> Result<(), String> {
        match body {
            EventBody::ToolCall { call_id, .. } | EventBody::ToolResult { call_id, .. }
                if !self.calls.iter().any(|it| it.id == *call_id) =>
            {
                Err(format!("the model did not ask for call `{call_id}`, or it has its result"))
            }
            _ => Ok(()),
        }
    }

    fn place(&self) -> String {
        match (self.open_turn(), self.open_step()) {
            (None, _) => "no turn is open".into(),
            (Some(turn), None) => format!("turn {turn} is open, but no step"),
            (Some(turn), Some(step)) => format!("step {step} of turn {turn} is open"),
        }
    }
}

impl OpenCall {
    fn new(call: &ToolCallRequest) -> Self {
        Self { id: call.id.clone(), name: call.function.name.clone(), started: false }
    }
}
