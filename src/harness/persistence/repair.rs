//! What a turn still owed to the log when its process died.
//!
//! Full-size counterpart: the closers that it writes at every load.
//! Watch for: a call that had begun may have done anything, and one that had not has done nothing. The model is told
//! which.

use crate::harness::session::{
    event::{EventBody, Reason},
    message::Message,
    trace::{OpenCall, Trace},
};

const UNKNOWN: &str =
    "Error: the program stopped while this call ran; whether it had an effect is unknown";
const NOT_STARTED: &str = "Error: the program stopped before this call was started";

/// The events that close the open turn: a result for each call, the end of the step, the end of the turn.
pub fn closing(trace: &Trace) -> Vec<EventBody> {
    let Some(turn) = trace.open_turn() else { return Vec::new() };
    let mut bodies = Vec::new();
    if let Some(step) = trace.open_step() {
        bodies.extend(trace.open_calls().iter().map(|call| result(turn, step, call)));
        bodies.push(EventBody::StepEnd { turn, step });
    }
    bodies.push(EventBody::TurnEnd { turn, reason: Reason::Interrupted, error: None });
    bodies
}

fn result(turn: u32, step: u32, call: &OpenCall) -> EventBody {
    let text = if call.started { UNKNOWN } else { NOT_STARTED };
    let (call_id, name) = (call.id.clone(), call.name.clone());
    let message = Message::tool(&call_id, text);
    EventBody::ToolResult { turn, step, call_id, name, is_error: true, message }
}
