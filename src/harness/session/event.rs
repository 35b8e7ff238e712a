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
//! | anything else | refused, unless the line says `"ignorable":true` |
//!
//! Full-size counterpart: the session event types of the core session package.
//! Watch for: the writer is strict and the reader lenient; the leniency is in [`lenient`](self) and nowhere else.

use std::{mem, rc::Rc};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::message::{AssistantMessage, Header, Message};

/// The form of the log that this program writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

const KINDS: [&str; 9] = [
    "turn/start",
    "step/start",
    "user/message",
    "request/header",
    "assistant/message",
    "tool/call",
    "tool/result",
    "step/end",
    "turn/end",
];

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
        #[serde(default)]
        turn: u32,
        #[serde(default = "first_format")]
        format: u32,
        #[serde(default)]
        cwd: String,
    },
    /// One request to the model, and the calls it leads to, begin.
    #[serde(rename = "step/start")]
    StepStart {
        #[serde(default)]
        turn: u32,
        #[serde(default)]
        step: u32,
    },
    /// What the user said: always [`Message::User`].
    #[serde(rename = "user/message")]
    UserMessage {
        #[serde(default)]
        turn: u32,
        #[serde(default)]
        step: u32,
        message: Message,
    },
    /// From here on requests have this header.
    #[serde(rename = "request/header")]
    RequestHeader {
        #[serde(default)]
        turn: u32,
        #[serde(default)]
        step: u32,
        header: Header,
    },
    /// What the model answered. `usage` is the service's own object, `request_hash` that of the request answered.
    #[serde(rename = "assistant/message")]
    AssistantMessage {
        #[serde(default)]
        turn: u32,
        #[serde(default)]
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
        #[serde(default)]
        turn: u32,
        #[serde(default)]
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
        #[serde(default)]
        turn: u32,
        #[serde(default)]
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
    StepEnd {
        #[serde(default)]
        turn: u32,
        #[serde(default)]
        step: u32,
    },
    /// The turn is over.
    #[serde(rename = "turn/end")]
    TurnEnd {
        #[serde(default)]
        turn: u32,
        reason: Reason,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<TurnError>,
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

/// Why a line is no event.
#[derive(Debug, Error)]
pub enum EventError {
    /// The line is no JSON object.
    #[error("not a JSON object: {0}")]
    Json(String),
    /// A field that every event has is missing or of a wrong type.
    #[error("not an event: no `{0}`")]
    Envelope(&'static str),
    /// The fields do not fit the type.
    #[error("`{kind}`: {problem}")]
    Shape {
        /// The type of the event.
        kind: String,
        /// What does not fit.
        problem: String,
    },
    /// A type that is not known and not marked ignorable.
    #[error("event type `{0}` is not known here; a newer nano-cordis may have written it")]
    Unknown(String),
    /// A log of a later version.
    #[error("format {0} is newer than this nano-cordis reads ({FORMAT})")]
    Format(u32),
}

impl EventError {
    /// The line is whole, but of another version: not to be taken for a torn write.
    pub fn is_of_another_version(&self) -> bool {
        matches!(self, Self::Unknown(_) | Self::Format(_))
    }
}

impl Event {
    /// Reads one line of a log.
    pub fn parse(line: &str) -> Result<Self, EventError> {
        let mut fields: Map<String, Value> =
            serde_json::from_str(line).map_err(|err| not_json(&err))?;
        let seq =
            fields.remove("seq").and_then(|it| it.as_u64()).ok_or(EventError::Envelope("seq"))?;
        let time = fields.remove("time").and_then(|it| it.as_u64()).unwrap_or_default();
        let Some(Value::String(kind)) = fields.remove("type") else {
            return Err(EventError::Envelope("type"));
        };
        let ignorable = fields.remove("ignorable") == Some(Value::Bool(true));
        let data = match fields.remove("data") {
            Some(data) if !data.is_null() => data,
            _ => Value::Object(fields),
        };

        if KINDS.contains(&kind.as_str()) {
            return Ok(Self { seq, time, body: EventBody::read(kind, data)? });
        }
        match ignorable {
            true => Ok(Self { seq, time, body: EventBody::Ignorable { kind, data } }),
            false => Err(EventError::Unknown(kind)),
        }
    }

    /// The line of this event, without its end.
    pub fn to_line(&self) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            seq: u64,
            time: u64,
            #[serde(flatten)]
            body: &'a EventBody,
        }
        let Self { seq, time, body } = self;
        let line = match body {
            EventBody::Ignorable { kind, data } => {
                let line = json!({ "seq": seq, "time": time, "type": kind, "data": data, "ignorable": true });
                serde_json::to_string(&line)
            }
            _ => serde_json::to_string(&Line { seq: *seq, time: *time, body }),
        };
        line.expect("strings, numbers and JSON values always serialise")
    }
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
            Self::Ignorable { .. } => (0, 0),
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

    fn read(kind: String, data: Value) -> Result<Self, EventError> {
        let fields = [("type", Value::from(kind.as_str())), ("data", lenient(&kind, data))];
        let tagged: Map<_, _> =
            fields.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
        let body = match serde_json::from_value(Value::Object(tagged)) {
            Ok(body) => body,
            Err(err) => return Err(EventError::Shape { kind, problem: err.to_string() }),
        };
        match body {
            Self::TurnStart { format, .. } if format > FORMAT => Err(EventError::Format(format)),
            Self::UserMessage { message: Message::User { .. }, .. }
            | Self::ToolResult { message: Message::Tool { .. }, .. } => Ok(body),
            Self::UserMessage { .. } | Self::ToolResult { .. } => Err(EventError::Shape {
                kind,
                problem: "the message has the role of another event".into(),
            }),
            _ => Ok(body),
        }
    }
}

/// Other writers of this log put the same facts elsewhere; brings `data` into the form of the table above.
fn lenient(kind: &str, data: Value) -> Value {
    let Value::Object(mut data) = data else { return data };
    match kind {
        "user/message" | "assistant/message" | "tool/result" => data = with_message(kind, data),
        "turn/end" => {
            if let Some(Value::Object(reason)) = data.get_mut("reason") {
                let mut reason = mem::take(reason);
                data.insert("reason".into(), reason.remove("kind").unwrap_or_default());
                reason.remove("error").map(|error| data.insert("error".into(), error));
            }
        }
        _ => {}
    }
    Value::Object(data)
}

/// `data` may be the message itself, with or without its role; and a result may name its call only in there.
fn with_message(kind: &str, mut data: Map<String, Value>) -> Map<String, Value> {
    if !data.contains_key("message") {
        let outer = [
            "turn",
            "step",
            "callId",
            "name",
            "isError",
            "usage",
            "finishReason",
            "requestHash",
            "interrupted",
        ];
        let kept = outer.into_iter().filter_map(|key| Some((key.to_string(), data.remove(key)?)));
        let mut outer: Map<_, _> = kept.collect();
        let role = if kind == "tool/result" { "tool" } else { kind.trim_end_matches("/message") };
        data.entry("role").or_insert(role.into());
        outer.insert("message".into(), Value::Object(data));
        data = outer;
    }
    if kind == "tool/result" && !data.contains_key("callId") {
        let call_id = data["message"].get("tool_call_id").cloned().unwrap_or_default();
        data.insert("callId".into(), call_id);
    }
    data
}

fn not_json(err: &serde_json::Error) -> EventError {
    let problem = err.to_string();
    // Invariant: a lone half of a surrogate pair is the only thing that serde_json says this of.
    match problem.contains("surrogate") || problem.contains("hex escape") {
        true => EventError::Json(format!("an unpaired \\u escape ({problem})")),
        false => EventError::Json(problem),
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
