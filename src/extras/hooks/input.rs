//! Part of `hooks`: what a hook reads on its standard input.
//!
//! Watch for: the names of the fields are those that hooks for other agents read, so that these run here unchanged.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use super::hook::Event;
use crate::harness::{agent_loop::Stopping, tools::Call, tools::ToolResult};

/// What happened.
#[derive(Serialize)]
pub(super) struct Input<'a> {
    session_id: Option<&'a str>,
    hook_event_name: &'static str,
    #[serde(flatten)]
    what: What<'a>,
    #[serde(skip)]
    event: Event,
}

#[derive(Serialize)]
#[serde(untagged)]
enum What<'a> {
    Tool {
        tool_name: &'a str,
        tool_input: &'a Map<String, Value>,
        tool_use_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_response: Option<Response<'a>>,
    },
    Stop {
        stop_hook_active: bool,
        last_assistant_message: &'a str,
    },
}

#[derive(Serialize)]
struct Response<'a> {
    content: &'a str,
    is_error: bool,
}

/// The input with what only the command knows.
#[derive(Serialize)]
struct At<'a> {
    cwd: &'a str,
    #[serde(flatten)]
    input: &'a Input<'a>,
}

impl<'a> Input<'a> {
    pub(super) fn before_tool(call: &'a Call) -> Self {
        Self::of_tool(Event::PreToolUse, call, None)
    }

    pub(super) fn after_tool(call: &'a Call, result: &'a ToolResult) -> Self {
        let response = Response { content: &result.content, is_error: result.is_error };
        Self::of_tool(Event::PostToolUse, call, Some(response))
    }

    pub(super) fn at_the_end(turn: &'a Stopping) -> Self {
        let what =
            What::Stop { stop_hook_active: turn.was_continued, last_assistant_message: &turn.text };
        Self::new(Event::Stop, Some(turn.session.id()), what)
    }

    fn of_tool(event: Event, call: &'a Call, tool_response: Option<Response<'a>>) -> Self {
        let what = What::Tool {
            tool_name: &call.name,
            tool_input: &call.arguments,
            tool_use_id: &call.id,
            tool_response,
        };
        Self::new(event, call.session.as_ref().map(|it| it.id()), what)
    }

    fn new(event: Event, session_id: Option<&'a str>, what: What<'a>) -> Self {
        Self { session_id, hook_event_name: event.name(), what, event }
    }

    pub(super) fn event(&self) -> Event {
        self.event
    }

    /// One line of JSON.
    pub(super) fn json(&self, cwd: &Path) -> Vec<u8> {
        let at = At { cwd: &cwd.to_string_lossy(), input: self };
        let mut json = serde_json::to_vec(&at).expect("texts, flags and JSON are JSON");
        json.push(b'\n');
        json
    }
}
