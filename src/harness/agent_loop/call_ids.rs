//! Part of `agent_loop`: one id, one call, one result.
//!
//! Watch for: some services leave the id out, some use one twice in a reply, some begin anew in every reply. Good ids
//! stay; the others are replaced before the reply is logged, so call, result and the next request agree.

use std::collections::HashSet;

use crate::harness::session::{Message, ToolCallRequest};

/// Gives a fresh id to each call whose id is empty or was used before, in `earlier` messages or in this reply.
pub(super) fn make_unique(calls: &mut [ToolCallRequest], earlier: &[Message]) {
    if calls.is_empty() {
        return;
    }
    let mut used: HashSet<String> =
        earlier.iter().flat_map(calls_of).map(|it| it.id.clone()).collect();
    let given: HashSet<String> = calls.iter().map(|it| it.id.clone()).collect();
    let mut number = used.len();
    for call in calls {
        while call.id.is_empty() || used.contains(&call.id) {
            number += 1;
            let fresh = format!("call_{number}");
            call.id = if given.contains(&fresh) { String::new() } else { fresh };
        }
        used.insert(call.id.clone());
    }
}

fn calls_of(message: &Message) -> &[ToolCallRequest] {
    match message {
        Message::Assistant(message) => &message.tool_calls,
        _ => &[],
    }
}
