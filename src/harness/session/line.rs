//! One event as a line of the log: a strict writer, a lenient reader.
//!
//! Full-size counterpart: the codec of the session persistence packages.
//! Watch for: what other writers do otherwise is brought into our form in one place, before the typed read.

use std::mem;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::event::{Event, EventBody, FORMAT};

impl Event {
    /// Reads one line of a log.
    pub fn parse(line: &str) -> Result<Self, EventError> {
        match Self::parse_ours(line) {
            Some(event) => Ok(event),
            None => Self::parse_any(line),
        }
    }

    /// Reads what `to_line` wrote, in two passes over the text and without an object between it and the event.
    fn parse_ours(line: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Place {
            seq: u64,
            time: u64,
        }
        let Place { seq, time } = serde_json::from_str(line).ok()?;
        let body: EventBody = serde_json::from_str(line).ok()?;
        let newer = matches!(body, EventBody::TurnStart { format, .. } if format > FORMAT);
        (!newer && body.has_its_role()).then_some(Self { seq, time, body })
    }

    /// Reads what others wrote, or says what is wrong with it.
    fn parse_any(line: &str) -> Result<Self, EventError> {
        let mut fields: Map<String, Value> =
            serde_json::from_str(line).map_err(|err| not_json(&err))?;
        let seq = fields.remove("seq").and_then(|it| it.as_u64());
        let seq = seq.ok_or(EventError::Envelope("seq"))?;
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
        if ignorable {
            return Ok(Self { seq, time, body: EventBody::Ignorable { kind, data } });
        }
        Err(EventError::Unknown(kind))
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
    fn read(kind: String, data: Value) -> Result<Self, EventError> {
        let format = data["format"].as_u64().filter(|_| kind == KINDS[0]).unwrap_or_default();
        if format > u64::from(FORMAT) {
            return Err(EventError::Format(format));
        }
        let fields = [("type", kind.as_str().into()), ("data", lenient(&kind, data))];
        let tagged = fields.map(|(key, value)| (key.to_string(), value)).into_iter().collect();
        let problem = match Self::deserialize(Value::Object(tagged)) {
            Ok(body) if body.has_its_role() => return Ok(body),
            Ok(_) => "the message has the role of another event".into(),
            Err(err) => err.to_string(),
        };
        Err(EventError::Shape { kind, problem })
    }
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
    Format(u64),
}

impl EventError {
    /// The line is whole, but of another version: not to be taken for a torn write.
    pub fn is_of_another_version(&self) -> bool {
        matches!(self, Self::Unknown(_) | Self::Format(_))
    }
}

const KINDS: [&str; 10] = [
    "turn/start",
    "step/start",
    "user/message",
    "request/header",
    "assistant/message",
    "tool/call",
    "tool/result",
    "step/end",
    "turn/end",
    "compaction/summary",
];

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
    for key in ["turn", "step"] {
        data.entry(key).or_insert(0.into());
    }
    Value::Object(data)
}

/// `data` may be the message itself, with or without its role; and a result may name its call only in there.
fn with_message(kind: &str, mut data: Map<String, Value>) -> Map<String, Value> {
    if !data.contains_key("message") {
        let outer = ["turn", "step", "callId", "name", "isError", "usage", "finishReason"];
        let kept = outer.into_iter().filter_map(|key| Some((key.to_string(), data.remove(key)?)));
        let mut outer: Map<_, _> = kept.collect();
        let role = if kind == "tool/result" { "tool" } else { kind.trim_end_matches("/message") };
        data.entry("role").or_insert(role.into());
        outer.insert("message".into(), Value::Object(data));
        data = outer;
    }
    if kind == "tool/result" && !data.contains_key("callId") {
        let call_id =
            data.get("message").and_then(|it| it.get("tool_call_id")).cloned().unwrap_or_default();
        data.insert("callId".into(), call_id);
    }
    data
}

fn not_json(err: &serde_json::Error) -> EventError {
    // A log is one line an event, so the line that serde_json counts is always the first.
    let problem = err.to_string().replace("at line 1 column", "at column");
    // Invariant: a lone half of a surrogate pair is the only thing that serde_json says this of.
    if problem.contains("surrogate") || problem.contains("hex escape") {
        return EventError::Json(format!("an unpaired \\u escape: {problem}"));
    }
    EventError::Json(problem)
}
