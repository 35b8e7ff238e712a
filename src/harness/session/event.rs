//! The events of a session and their form in the log: one JSON object a line, keys `seq time type data` in this order.
//!
//! | type | data |
//! |---|---|
//! | `turn/start` | `turn format cwd` |
//! | `step/start` | `turn step` |
//! | `user/message` | `turn step message` |
//! | `request/header` | `turn step header` |
//! | `assistant/message` | `turn step message usage? finishReason? requestHash? interrupted?` |
//! | `tool/call` | `turn step callId name arguments` (the raw text) |
//! | `tool/result` | `turn step callId name isError message` |
//! | `step/end` | `turn step` |
//! | `turn/end` | `turn reason error?` |
//! | `compaction/summary` | `from to keep message usage? requestHash?` |
//! | anything else | refused, unless the line says `"ignorable":true` |
//!
//! Full-size counterpart: the session event types of the core session package.
//! Watch for: each type has a turn, and all but those that open and close one have a step; a summary has neither.

use std::rc::Rc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    line::EventError,
    message::{AssistantMessage, Header, Message},
};

/// The form of the log that this program writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// Something that happened, with its place in the log. Nothing in it ever changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its number: one more than that of the event before it.
    pub seq: u64,
    /// Unix milliseconds, never less than those of the event before it; 0 in a log that does not tell.
    pub time: u64,
    /// What happened.
    pub body: EventBody,
}

/// What happened. Turns count from 1, and so do the steps in each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all_fields = "camelCase")]
#[expect(missing_docs, reason = "the fields mean what the table at the top of this file says")]
pub enum EventBody {
    /// The user's turn to be answered begins. `format` is [`FORMAT`], `cwd` where commands run.
    #[serde(rename = "turn/start")]
    TurnStart {
        turn: u32,
        #[serde(default = "first_format")]
        format: u32,
        #[serde(default)]
        cwd: String,
    },
    /// One request to the model, and the calls it leads to, begin.
    #[serde(rename = "step/start")]
    StepStart { turn: u32, step: u32 },
    /// What the user said: always [`Message::User`].
    #[serde(rename = "user/message")]
    UserMessage { turn: u32, step: u32, message: Message },
    /// From here on requests have this header.
    #[serde(rename = "request/header")]
    RequestHeader { turn: u32, step: u32, header: Header },
    /// What the model answered. `usage` is the service's own object, `request_hash` that of the request answered.
    #[serde(rename = "assistant/message")]
    AssistantMessage {
        turn: u32,
        step: u32,
        #[serde(with = "assistant")]
        message: Rc<AssistantMessage>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finish_reason: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_hash: Option<String>,
        #[serde(default, skip_serializing_if = "is_false")]
        interrupted: bool,
    },
    /// A tool is about to run.
    #[serde(rename = "tool/call")]
    ToolCall {
        turn: u32,
        step: u32,
        call_id: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        arguments: String,
    },
    /// What the call came to: always [`Message::Tool`].
    #[serde(rename = "tool/result")]
    ToolResult {
        turn: u32,
        step: u32,
        call_id: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        is_error: bool,
        message: Message,
    },
    /// The step is over.
    #[serde(rename = "step/end")]
    StepEnd { turn: u32, step: u32 },
    /// The turn is over.
    #[serde(rename = "turn/end")]
    TurnEnd {
        turn: u32,
        reason: Reason,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<TurnError>,
    },
    /// From here on the model is shown `message` in place of the events `from` to `to`, and before it those of `keep`.
    #[serde(rename = "compaction/summary")]
    CompactionSummary {
        from: u64,
        to: u64,
        #[serde(default)]
        keep: Vec<u64>,
        message: Message,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_hash: Option<String>,
    },
    /// Something that this program does not know and may overlook; plugins log their own facts this way.
    #[serde(skip)]
    Ignorable { kind: String, data: Value },
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The model had no more calls to make.
    Completed,
    /// The step limit was reached.
    MaxSteps,
    /// The model's output limit was reached.
    MaxTokens,
    /// Something failed; `error` says what.
    Error,
    /// The user, or the end of the program, cancelled it.
    Aborted,
    /// The program died in it; written by a repair.
    Interrupted,
}

/// What made a turn fail.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnError {
    /// In words.
    #[serde(default)]
    pub message: String,
    /// Its kind, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The HTTP status, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The request that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_hash: Option<String>,
}

impl EventBody {
    /// An event of a plugin's own, which programs that do not know it may overlook.
    pub fn ignorable(kind: &str, data: &impl Serialize) -> Result<Self, EventError> {
        match serde_json::to_value(data) {
            Ok(data) => Ok(Self::Ignorable { kind: kind.into(), data }),
            Err(err) => Err(EventError::Shape { kind: kind.into(), problem: err.to_string() }),
        }
    }

    /// Its type, as the log spells it.
    pub fn kind(&self) -> &str {
        match self {
            Self::TurnStart { .. } => "turn/start",
            Self::StepStart { .. } => "step/start",
            Self::UserMessage { .. } => "user/message",
            Self::RequestHeader { .. } => "request/header",
            Self::AssistantMessage { .. } => "assistant/message",
            Self::ToolCall { .. } => "tool/call",
            Self::ToolResult { .. } => "tool/result",
            Self::StepEnd { .. } => "step/end",
            Self::TurnEnd { .. } => "turn/end",
            Self::CompactionSummary { .. } => "compaction/summary",
            Self::Ignorable { kind, .. } => kind,
        }
    }

    /// Its turn and step; 0 where it has none.
    pub fn place(&self) -> (u32, u32) {
        match self {
            Self::StepStart { turn, step }
            | Self::UserMessage { turn, step, .. }
            | Self::RequestHeader { turn, step, .. }
            | Self::AssistantMessage { turn, step, .. }
            | Self::ToolCall { turn, step, .. }
            | Self::ToolResult { turn, step, .. }
            | Self::StepEnd { turn, step } => (*turn, *step),
            Self::TurnStart { turn, .. } | Self::TurnEnd { turn, .. } => (*turn, 0),
            Self::CompactionSummary { .. } | Self::Ignorable { .. } => (0, 0),
        }
    }

    /// A message of another role in it would be read as something that nobody said.
    pub(super) fn has_its_role(&self) -> bool {
        match self {
            Self::UserMessage { message, .. } => matches!(message, Message::User { .. }),
            Self::ToolResult { message, .. } => matches!(message, Message::Tool { .. }),
            Self::CompactionSummary { message, .. } => match message {
                Message::User { .. } => true,
                Message::Assistant(it) => it.tool_calls.is_empty() && !it.is_empty(),
                Message::System { .. } | Message::Tool { .. } => false,
            },
            _ => true,
        }
    }

    /// What of it the model is shown.
    pub fn message(&self) -> Option<Message> {
        match self {
            Self::UserMessage { message, .. } | Self::ToolResult { message, .. } => {
                Some(message.clone())
            }
            Self::AssistantMessage { message, .. } if !message.is_empty() => {
                Some(Message::Assistant(message.clone()))
            }
            _ => None,
        }
    }
}

fn first_format() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// An assistant message carries its role, as every message does.
mod assistant {
    use std::rc::Rc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use super::{AssistantMessage, Message};

    pub(super) fn serialize<S: Serializer>(
        message: &Rc<AssistantMessage>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        Message::Assistant(Rc::clone(message)).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Rc<AssistantMessage>, D::Error> {
        match Message::deserialize(from)? {
            Message::Assistant(message) => Ok(message),
            _ => Err(D::Error::custom("the message has the role of another event")),
        }
    }
}
