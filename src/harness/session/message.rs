//! The messages of a model, in the shape of chat completions, and the header of a request.
//!
//! The log holds them as they are sent, so nothing is translated on the way to the model.
//! Full-size counterpart: the provider-neutral content blocks of the core session package.
//! Watch for: text is shared, so a list of messages is made without copying any of it.

use std::rc::Rc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// One message. Cheap to clone: the text belongs to the log and to every list derived from it.
// Differs: the full-size log holds blocks that no provider owns and translates them for each. One shape for all saves
// that, at the price that a provider with another shape translates in its adapter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    /// What the model is; only ever first, and never in the log (the header has it).
    System {
        /// The system prompt.
        content: Rc<str>,
    },
    /// What the user said.
    User {
        /// The text, byte for byte.
        content: Rc<str>,
    },
    /// What the model answered.
    Assistant(Rc<AssistantMessage>),
    /// What a tool call came to.
    Tool {
        /// Which call this answers.
        tool_call_id: Rc<str>,
        /// What the model is told.
        content: Rc<str>,
    },
}

impl Message {
    /// A message of the user.
    pub fn user(text: &str) -> Self {
        Self::User { content: text.into() }
    }

    /// The result of one call.
    pub fn tool(call_id: &str, text: &str) -> Self {
        Self::Tool { tool_call_id: call_id.into(), content: text.into() }
    }

    /// It is the result of this call.
    pub fn answers(&self, call_id: &str) -> bool {
        matches!(self, Self::Tool { tool_call_id, .. } if **tool_call_id == *call_id)
    }

    /// The text in it; empty for an assistant message that only calls tools.
    pub fn text(&self) -> &str {
        match self {
            Self::System { content } | Self::User { content } | Self::Tool { content, .. } => {
                content
            }
            Self::Assistant(message) => message.content.as_deref().unwrap_or_default(),
        }
    }
}

/// An answer of the model, as it came: a field that is unknown here is kept and sent back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// The answer in words. `null` stays `null` in the log.
    #[serde(default)]
    pub content: Option<String>,
    /// The tools it wants to have called, in this order.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCallRequest>,
    /// What it thought before it answered. Some services insist on getting it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// Everything else the service put into the message.
    #[serde(flatten, deserialize_with = "without_role")]
    pub other: Map<String, Value>,
}

impl AssistantMessage {
    /// No text, no calls, no reasoning: nothing that a model could be shown.
    pub fn is_empty(&self) -> bool {
        let blank = |text: &Option<String>| text.as_deref().unwrap_or_default().is_empty();
        self.tool_calls.is_empty() && blank(&self.content) && blank(&self.reasoning_content)
    }
}

/// The model's wish to have a tool called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCallRequest {
    /// What the result refers to.
    #[serde(default, deserialize_with = "null_is_default")]
    pub id: String,
    /// Always `function` so far.
    #[serde(rename = "type", default = "function")]
    pub kind: String,
    /// Which tool, and with what.
    pub function: FunctionCall,
    /// Everything else the service put beside it.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl ToolCallRequest {
    /// A call in the usual form.
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        let function = FunctionCall { name: name.into(), arguments: arguments.into() };
        Self { id: id.into(), kind: self::function(), function, other: Map::new() }
    }
}

/// Name and arguments of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// The tool, as the model spelt it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub name: String,
    /// The argument text exactly as the model made it; nothing says that it is JSON.
    #[serde(default, deserialize_with = "as_text")]
    pub arguments: String,
}

/// All of a request that is not a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Which model answers.
    pub model: String,
    /// The system prompt; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The tools on offer, by name; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSchema>,
}

impl Header {
    /// Puts the parts into the one form in which equal headers compare equal.
    // Omitted: the full-size header also carries sampling settings, and its tools may be put in a configured order.
    pub fn new(model: impl Into<String>, system: &str, mut tools: Vec<ToolSchema>) -> Self {
        tools.sort_by(|a, b| a.function.name.cmp(&b.function.name));
        Self { model: model.into(), system: (!system.is_empty()).then(|| system.into()), tools }
    }
}

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSchema {
    /// Always `function` so far.
    #[serde(rename = "type", default = "function")]
    pub kind: String,
    /// What it is and takes.
    pub function: FunctionSchema,
}

impl ToolSchema {
    /// The schema of a tool that takes `parameters`, a JSON Schema of an object.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        let function =
            FunctionSchema { name: name.into(), description: description.into(), parameters };
        Self { kind: self::function(), function }
    }
}

/// The inner part of a [`ToolSchema`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionSchema {
    /// What the model calls it by.
    pub name: String,
    /// What it is good for.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments. Compared by value: the order of its keys does not matter.
    #[serde(default)]
    pub parameters: Value,
}

fn function() -> String {
    "function".into()
}

/// Services write `null` where they mean "none".
fn null_is_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Some services send the arguments as an object instead of its text.
fn as_text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    })
}

/// `role` is said by the kind of message, also where a message is read on its own.
fn without_role<'de, D: Deserializer<'de>>(from: D) -> Result<Map<String, Value>, D::Error> {
    let mut other = Map::deserialize(from)?;
    other.remove("role");
    Ok(other)
}
