//! Part of `agent_loop`: what plugins said is secret stays out of the log, and with it out of every request.
//!
//! Watch for: what the user typed is not among this. It is logged and sent as it was typed, whatever it is.

use serde_json::Value;

use crate::harness::{
    env::mask::Mask,
    session::message::{AssistantMessage, Header, ToolCallRequest},
};

/// A header without secrets: a persona may have been filled in from the environment, and a tool describes itself.
pub(super) fn of_header(mask: &Mask, header: &mut Header) {
    hide(mask, &mut header.model);
    header.system.iter_mut().for_each(|it| hide(mask, it));
    for tool in header.tools.iter_mut().map(|it| &mut it.function) {
        hide(mask, &mut tool.name);
        hide(mask, &mut tool.description);
        mask.value(&mut tool.parameters);
    }
}

/// A reply without secrets, whichever model it is from.
pub(super) fn of_reply(mask: &Mask, reply: &mut AssistantMessage) {
    reply.content.iter_mut().for_each(|it| hide(mask, it));
    reply.reasoning_content.iter_mut().for_each(|it| hide(mask, it));
    reply.other.values_mut().for_each(|it| mask.value(it));
    reply.tool_calls.iter_mut().for_each(|it| of_call(mask, it));
}

fn of_call(mask: &Mask, call: &mut ToolCallRequest) {
    hide(mask, &mut call.id);
    hide(mask, &mut call.function.name);
    hide(mask, &mut call.function.arguments);
    call.other.values_mut().for_each(|it: &mut Value| mask.value(it));
}

fn hide(mask: &Mask, text: &mut String) {
    *text = mask.text(text).into_owned();
}
