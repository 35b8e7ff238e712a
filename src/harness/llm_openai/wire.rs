//! The body of a request.
//!
//! The wire copy differs from the request in the places listed in [`wire_copy`] and in no other (D-42).

use std::{iter, rc::Rc};

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::{Map, Value};

use super::Config;
use crate::harness::{
    llm::Request,
    session::message::{AssistantMessage, Header, Message, ToolSchema},
};

/// A piece is at least so long, but for the last.
const PIECE: usize = 64 << 10;

/// The request as JSON, made anew each time it is asked for: a long conversation is never in memory twice.
pub(super) struct Payload<'a> {
    request: &'a Request,
    config: &'a Config,
    /// What stands before the messages and what stands after them.
    front: Vec<u8>,
    back: Vec<u8>,
}

impl<'a> Payload<'a> {
    pub(super) fn new(request: &'a Request, config: &'a Config) -> Self {
        let Header { model, tools, .. } = &request.header;
        let front = [b"{\"model\":", &*json(model), b",\"messages\":["].concat();
        let rest = json(&Rest { tools, more: further_fields(config) });
        let comma: &[u8] = if rest == b"{}" { b"" } else { b"," };
        let back = [b"]", comma, &rest[1..]].concat();
        Self { request, config, front, back }
    }

    /// All of it, in pieces that end where a message ends.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Bytes> {
        let mut parts = self.parts();
        iter::from_fn(move || {
            let mut piece = Vec::with_capacity(PIECE);
            while piece.len() < PIECE
                && let Some((text, message)) = parts.next()
            {
                piece.extend_from_slice(text);
                if let Some(message) = message {
                    write(&mut piece, &message);
                }
            }
            (!piece.is_empty()).then(|| piece.into())
        })
    }

    /// Some text and the message after it, again and again.
    fn parts(&self) -> impl Iterator<Item = (&[u8], Option<Message>)> {
        let Self { request, config, front, back } = self;
        let system = request.header.system.as_deref();
        let system = system.map(|text| Message::System { content: text.into() });
        let messages = request.messages.iter().map(|it| wire_copy(it, config));
        let commas = iter::once(&b""[..]).chain(iter::repeat(&b","[..]));
        let messages = system.into_iter().chain(messages).map(Some);
        iter::once((&front[..], None))
            .chain(commas.zip(messages))
            .chain(iter::once((&back[..], None)))
    }
}

#[derive(Serialize)]
struct Rest<'a> {
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tools: &'a [ToolSchema],
    #[serde(flatten)]
    more: Map<String, Value>,
}

fn json(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes, value);
    bytes
}

fn write(bytes: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(bytes, value).expect("a request is plain JSON");
}

/// What the configuration adds. The user's own `stream_options` hold, and null means none: some servers refuse the field.
fn further_fields(config: &Config) -> Map<String, Value> {
    const OPTIONS: &str = "stream_options";
    let mut fields = config.body.0.clone();
    if config.stream {
        fields.insert("stream".into(), true.into());
        fields.entry(OPTIONS).or_insert_with(|| [("include_usage", true)].into_iter().collect());
    }
    fields.retain(|name, value| name != OPTIONS || (config.stream && !value.is_null()));
    let limit = config.max_tokens.map(|it| (config.max_tokens_field.clone(), it.get().into()));
    fields.extend(limit);
    fields
}

/// A message as strict servers take it: no empty tool text, no missing content, arguments that parse.
fn wire_copy(message: &Message, config: &Config) -> Message {
    match message {
        Message::Tool { tool_call_id, content } if content.is_empty() => {
            Message::tool(tool_call_id, "(no output)")
        }
        Message::Assistant(it) => {
            Message::Assistant(Rc::new(assistant_copy(AssistantMessage::clone(it), config)))
        }
        other => other.clone(),
    }
}

fn assistant_copy(mut message: AssistantMessage, config: &Config) -> AssistantMessage {
    let calls = !message.tool_calls.is_empty();
    let may_be_null = calls && config.empty_content == EmptyContent::Null;
    let empty = if may_be_null { None } else { Some(String::new()) };
    message.content = message.content.filter(|it| !it.is_empty()).or(empty);
    for call in &mut message.tool_calls {
        let text = &mut call.function.arguments;
        if !text.trim_start().starts_with('{') || serde_json::from_str::<IgnoredAny>(text).is_err()
        {
            "{}".clone_into(text);
        }
    }
    match config.reasoning {
        Reasoning::Send if calls => drop(message.reasoning_content.get_or_insert_default()),
        Reasoning::Auto | Reasoning::Send => {}
        Reasoning::Drop => {
            message.reasoning_content = None;
            let other = &mut message.other;
            other.retain(|name, _| !matches!(name.as_str(), "reasoning" | "reasoning_details"));
        }
    }
    message
}

/// What stands for "no text".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub(super) enum EmptyContent {
    #[default]
    #[serde(rename = "")]
    Empty,
    #[serde(rename = "null")]
    Null,
}

/// What becomes of the reasoning in earlier replies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Reasoning {
    /// Sent where a reply had it.
    #[default]
    Auto,
    /// Sent with every reply that called tools, empty where it had none: for a history that another model began.
    Send,
    /// Never sent: for a service that refuses the field.
    Drop,
}

/// Fields that the user adds. What the adapter makes itself is not theirs: the log would not have it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub(super) struct Extra(Map<String, Value>);

impl TryFrom<Map<String, Value>> for Extra {
    type Error = String;

    fn try_from(fields: Map<String, Value>) -> Result<Self, String> {
        match ["model", "messages", "tools", "stream"].iter().find(|it| fields.contains_key(**it)) {
            Some(name) => Err(format!("`body.{name}` is made by the adapter and cannot be set")),
            None => Ok(Self(fields)),
        }
    }
}
