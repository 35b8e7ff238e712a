//! A reply out of the pieces of a stream.
//!
//! What comes out has the shape of a reply in one piece, and is read by the same code (`reply.rs`).
//! Watch for: any field may be absent, null, or of a kind never seen; a chunk without choices is no fault.
// Omitted: the full-size project logs each chunk, and keeps what had come of a reply that was cancelled.

use serde_json::{Map, Value, json};

use super::{
    answer::{states_error, usage_of},
    calls::{Calls, weight},
    mend,
    reply::text_of,
    sse::Event,
};

/// More is no reply.
pub(super) const LARGEST: usize = 64 << 20;

/// Fields whose texts are pieces of one text.
const PIECEWISE: [&str; 4] = ["reasoning", "reasoning_text", "thinking", "refusal"];

/// Why a stream gives no reply.
#[derive(Debug, PartialEq)]
pub(super) enum Fault {
    /// It states an error.
    Stated(Value),
    /// It is damaged; the words say how.
    Damaged(String),
    /// There is more of it than anyone can want.
    TooLong,
}

/// What has come of a reply.
#[derive(Debug, Default)]
pub(super) struct Stream {
    content: String,
    reasoning: Option<String>,
    calls: Calls,
    other: Map<String, Value>,
    finish: Option<String>,
    usage: Option<Value>,
    is_done: bool,
    size: usize,
}

impl Stream {
    /// Takes an event.
    pub(super) fn take(&mut self, event: &Event) -> Result<(), Fault> {
        match self.document(&event.data, event.is_error) {
            // Some servers end each event with one line end, so that several are read as one.
            Err(Fault::Damaged(_)) if event.data.contains(&b'\n') => event
                .data
                .split(|it| *it == b'\n')
                .try_for_each(|line| self.document(line, event.is_error)),
            result => result,
        }
    }

    /// The text so far.
    pub(super) fn text(&self) -> &str {
        &self.content
    }

    /// The thinking so far, whatever the server calls it.
    pub(super) fn thoughts(&self) -> &str {
        let other = || PIECEWISE[..3].iter().find_map(|it| self.other.get(*it)?.as_str());
        self.reasoning.as_deref().or_else(other).unwrap_or_default()
    }

    /// Grows with everything that brings the reply forward.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Nothing more will come.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// The model has stopped; only what it cost may be missing.
    pub(super) fn is_whole(&self) -> bool {
        self.is_done || self.finish.is_some()
    }

    /// As a reply in one piece would have been.
    pub(super) fn whole(self) -> Value {
        let mut message = self.other;
        let content = Some(self.content).filter(|it| !it.is_empty());
        message.insert("content".into(), content.into());
        message.extend(self.calls.whole().map(|it| ("tool_calls".into(), it)));
        message.extend(self.reasoning.map(|it| ("reasoning_content".into(), it.into())));
        let choice = json!({ "finish_reason": self.finish, "message": message });
        json!({ "choices": [choice], "usage": self.usage })
    }

    fn document(&mut self, data: &[u8], is_error: bool) -> Result<(), Fault> {
        let data = data.trim_ascii();
        if self.is_done || data.is_empty() || data.starts_with(b":") {
            return Ok(());
        }
        if data == b"[DONE]" {
            self.is_done = true;
            return Ok(());
        }
        let chunk = match serde_json::from_slice(data) {
            Ok(chunk) => chunk,
            Err(err) => {
                let text = String::from_utf8_lossy(data);
                let words = |_| Fault::Damaged(format!("an event is not JSON ({err}): {text}"));
                mend::parse(&text).map_err(words)?
            }
        };
        match chunk {
            Value::Array(chunks) => chunks.into_iter().try_for_each(|it| self.chunk(it, is_error)),
            chunk => self.chunk(chunk, is_error),
        }
    }

    fn chunk(&mut self, mut chunk: Value, is_error: bool) -> Result<(), Fault> {
        if is_error || states_error(&chunk) {
            return Err(Fault::Stated(chunk));
        }
        let choices = chunk.get_mut("choices").and_then(Value::as_array_mut);
        // Only one answer is asked for; whoever sends several numbers them.
        let first = choices.into_iter().flatten().find(|it| it["index"].as_u64().unwrap_or(0) == 0);
        let mut choice = first.map(Value::take).unwrap_or_default();
        if states_error(&choice) {
            return Err(Fault::Stated(choice));
        }
        let usage = [&mut chunk, &mut choice].into_iter().find_map(|it| usage_of(it));
        self.usage = usage.or_else(|| self.usage.take());
        if let Some(finish) = choice["finish_reason"].as_str().filter(|it| !it.is_empty()) {
            self.finish = Some(finish.to_owned());
            self.size += 1;
        }
        match (choice.get_mut("delta").map(Value::take), choice.get_mut("message")) {
            (Some(Value::Object(delta)), _) => self.delta(delta),
            // A server that answers a request for a stream with a whole reply in one event.
            (_, Some(Value::Object(message))) if self.content.is_empty() => {
                self.delta(std::mem::take(message))
            }
            _ => Ok(()),
        }
    }

    fn delta(&mut self, delta: Map<String, Value>) -> Result<(), Fault> {
        for (name, value) in delta {
            match (name.as_str(), value) {
                ("role", _) | (_, Value::Null) => {}
                ("content", value) => {
                    let text = text_of(value);
                    self.size += text.len();
                    self.content.push_str(&text);
                }
                ("reasoning_content", value) => {
                    let text = text_of(value);
                    self.size += text.len();
                    self.reasoning.get_or_insert_default().push_str(&text);
                }
                ("tool_calls", Value::Array(fragments)) => {
                    fragments.into_iter().try_for_each(|it| self.call(it))?;
                }
                ("tool_calls", fragment) => self.call(fragment)?,
                (_, value) => self.field(name, value),
            }
        }
        if self.size > LARGEST {
            return Err(Fault::TooLong);
        }
        Ok(())
    }

    fn call(&mut self, fragment: Value) -> Result<(), Fault> {
        let added = self.calls.take(fragment);
        self.size += added.ok_or_else(|| Fault::Damaged("a tool call is no object".into()))?;
        Ok(())
    }

    /// A field that is not ours is kept as a whole reply would have it: texts grow, details with one index are one,
    /// of everything else the last holds.
    fn field(&mut self, name: String, value: Value) {
        self.size += weight(&value);
        let is_text = PIECEWISE.contains(&name.as_str());
        match (self.other.get_mut(&name), value) {
            (Some(Value::String(text)), Value::String(piece)) if is_text => text.push_str(&piece),
            (Some(Value::Array(details)), Value::Array(pieces)) if name == "reasoning_details" => {
                for piece in pieces {
                    detail(details, piece);
                }
            }
            (Some(place), value) => *place = value,
            (None, value) => drop(self.other.insert(name, value)),
        }
    }
}

/// Adds a piece to the last detail if it has the same type and index.
fn detail(details: &mut Vec<Value>, piece: Value) {
    match (details.last_mut(), piece) {
        (Some(Value::Object(last)), Value::Object(piece))
            if last.get("index").is_some_and(Value::is_u64)
                && ["index", "type"].iter().all(|it| last.get(*it) == piece.get(*it)) =>
        {
            for (name, value) in piece.into_iter().filter(|(_, value)| !value.is_null()) {
                let is_text = matches!(name.as_str(), "text" | "summary" | "data");
                match (last.get_mut(&name), value) {
                    (Some(Value::String(text)), Value::String(more)) if is_text => {
                        text.push_str(&more);
                    }
                    (_, value) => drop(last.insert(name, value)),
                }
            }
        }
        (_, piece) => details.push(piece),
    }
}
