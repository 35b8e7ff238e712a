//! The body of a request and the reading of a reply.
//!
//! The wire copy differs from the request in the places listed in [`wire_copy`] and in no other (D-42).
//! Watch for: of a reply only what is used is demanded; all else may be absent, null or of a kind never seen.

use std::rc::Rc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::{Map, Value};

use super::{Config, answer::Answer, mend};
use crate::harness::{
    llm::{LlmError, Reply, Request},
    session::message::{AssistantMessage, Message, ToolSchema},
};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tools: &'a [ToolSchema],
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// The request as JSON.
pub(super) fn body(request: &Request, config: &Config) -> Vec<u8> {
    let system =
        request.header.system.as_deref().map(|text| Message::System { content: text.into() });
    let messages =
        system.into_iter().chain(request.messages.iter().map(|it| wire_copy(it, config))).collect();
    let limit = config.max_tokens.map(|it| (config.max_tokens_field.clone(), it.get().into()));
    let more = config.body.0.clone().into_iter().chain(limit).collect();
    let body = Body { model: &request.header.model, messages, tools: &request.header.tools, more };
    serde_json::to_vec(&body).expect("a request is plain JSON")
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

/// The reply in an answer.
pub(super) fn reply(answer: &Answer) -> Result<Reply, LlmError> {
    let mut body = document(answer)?;
    if let Some(place) = [&body, &body["choices"][0]].into_iter().find(|it| !it["error"].is_null())
    {
        return Err(answer.error_in(place));
    }
    let finish_reason = body["choices"][0]["finish_reason"].as_str().filter(|it| !it.is_empty());
    let finish_reason = finish_reason.map(str::to_owned);
    let usage = body["usage"].as_object().filter(|it| !it.is_empty()).cloned().map(Value::Object);
    let Some(Value::Object(message)) = body.pointer_mut("/choices/0/message").map(Value::take)
    else {
        return Err(answer.bad("no message in the reply"));
    };
    let message = read(message)
        .map_err(|err| answer.bad(&format!("the message in the reply is damaged ({err})")))?;
    is_whole(answer, &message, finish_reason.as_deref().unwrap_or_default())?;
    Ok(Reply { message, finish_reason, usage })
}

/// Silence is a failure, unless it is the silence of a reply that was cut; and half a reply is one.
fn is_whole(answer: &Answer, message: &AssistantMessage, finish: &str) -> Result<(), LlmError> {
    let is_silent = message.content.as_deref().unwrap_or_default().trim().is_empty();
    match finish {
        "error" | "insufficient_system_resource" => {
            let words = format!("the reply was broken off ({finish})");
            Err(answer.status_error(answer.status, &words))
        }
        "length" | "max_tokens" | "content_filter" => Ok(()),
        _ if is_silent && message.tool_calls.is_empty() => Err(LlmError::Empty),
        _ => Ok(()),
    }
}

/// Blank lines before the document are how some servers say that they are still there.
fn document(answer: &Answer) -> Result<Value, LlmError> {
    let text = answer.text.trim_start_matches(|it: char| it == '\u{feff}' || it.is_whitespace());
    match mend::parse(text) {
        _ if text.is_empty() => Err(LlmError::Empty),
        Ok(document @ Value::Object(_)) => Ok(document),
        _ if ["data:", "event:", ":"].iter().any(|it| text.starts_with(it)) => {
            Err(answer.bad("a stream of events, which was not asked for"))
        }
        Ok(_) => Err(answer.bad("the reply is JSON, but no object")),
        Err(err) => Err(answer.bad(&format!("the reply is not JSON ({err})"))),
    }
}

/// The message as it came, but for nulls beside its content: to name a field and say nothing is to leave it out.
fn read(mut message: Map<String, Value>) -> Result<AssistantMessage, serde_json::Error> {
    message.retain(|_, it| !it.is_null());
    for name in ["content", "reasoning_content"] {
        if let Some(it) = message.get_mut(name) {
            *it = text_of(it);
        }
    }
    for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        call.as_object_mut().into_iter().for_each(tidy);
    }
    serde_json::from_value(Value::Object(message))
}

/// Text, or the texts of a list of parts. Null where there is none.
fn text_of(value: &Value) -> Value {
    match value {
        Value::String(_) => value.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|it| it["text"].as_str()).collect::<String>().into()
        }
        _ => Value::Null,
    }
}

/// A call with an odd id, type or name is a call all the same; the name decides later whether there is such a tool.
fn tidy(call: &mut Map<String, Value>) {
    if let Some(Value::Number(id)) = call.get("id") {
        let id = id.to_string();
        call.insert("id".into(), id.into());
    }
    call.retain(|name, it| it.is_string() || !matches!(name.as_str(), "id" | "type"));
    let function = call.entry("function").or_insert_with(|| Map::new().into());
    match function {
        Value::Object(fields) => fields.retain(|name, it| it.is_string() || name != "name"),
        other => *other = Map::new().into(),
    }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reqwest::StatusCode;

    use super::*;

    fn read_reply(text: String) -> Result<Reply, LlmError> {
        let (address, status) = (String::new(), StatusCode::OK);
        let answer = Answer { address, status, location: None, text };
        reply(&answer)
    }

    /// Anything, but with the names that matter, so that most of it gets far.
    fn anything() -> impl Strategy<Value = Value> {
        let name = "choices|message|content|tool_calls|id|type|function|name|arguments|error|code\
                    |finish_reason|usage|text|role|x";
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a-z{}\\[\\]\"]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 40, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((name, inner), 0..5)
                    .prop_map(|it| Value::Object(it.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_body_makes_it_panic(body in anything()) {
            drop(read_reply(body.to_string()));
        }

        #[test]
        fn no_text_makes_it_panic(text in r#"( |\n|data:|[{}\[\]",:]|choices|1e999|\\ud800|.){0,20}"#) {
            drop(read_reply(text));
        }
    }
}
