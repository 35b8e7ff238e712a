//! The reading of a reply.
//!
//! Watch for: only what is used is demanded; all else may be absent, null or of a kind never seen.

use reqwest::StatusCode;
use serde_json::{Map, Value};

use super::{
    answer::{Answer, states_error, usage_of},
    mend,
};
use crate::harness::{
    llm::{LlmError, Reply},
    session::message::AssistantMessage,
};

/// The reply in a body, whether it came in one piece or was put together from a stream.
pub(super) fn read(answer: &Answer, mut body: Value) -> Result<Reply, LlmError> {
    answer.mask.value(&mut body);
    if let Some(place) = [&body, &body["choices"][0]].into_iter().find(|it| states_error(it)) {
        return Err(answer.error_in(place));
    }
    let finish_reason = body["choices"][0]["finish_reason"].as_str().filter(|it| !it.is_empty());
    let finish_reason = finish_reason.map(str::to_owned);
    let usage = [&body, &body["choices"][0]].into_iter().find_map(usage_of);
    let Some(Value::Object(message)) = body.pointer_mut("/choices/0/message").map(Value::take)
    else {
        return Err(answer.bad("no message in the reply"));
    };
    let message = message_of(message)
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
            let is_overload = finish == "insufficient_system_resource";
            let status = if is_overload { StatusCode::SERVICE_UNAVAILABLE } else { answer.status };
            Err(answer.status_error(status, &words))
        }
        "length" | "max_tokens" | "content_filter" => Ok(()),
        _ if is_silent && message.tool_calls.is_empty() => Err(LlmError::Empty),
        "" => {
            tracing::debug!("the reply does not say why it ends");
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The document that a body in one piece is.
pub(super) fn document(answer: &Answer) -> Result<Value, LlmError> {
    match mend::parse(&answer.text) {
        _ if answer.text.is_empty() => Err(LlmError::Empty),
        Ok(list @ Value::Array(_)) if states_error(&list) => Err(answer.error_in(&list)),
        Ok(document @ Value::Object(_)) => Ok(document),
        Ok(_) => Err(answer.bad("the reply is JSON, but no object")),
        Err(err) if answer.text.starts_with('{') => {
            Err(answer.broken(&format!("the reply is damaged JSON ({err})")))
        }
        Err(err) => Err(answer.bad(&format!("the reply is not JSON ({err})"))),
    }
}

/// The message as it came, but for nulls beside its content: to name a field and say nothing is to leave it out.
fn message_of(mut message: Map<String, Value>) -> Result<AssistantMessage, serde_json::Error> {
    message.retain(|_, it| !it.is_null());
    for name in ["content", "reasoning_content"] {
        if let Some(it) = message.get_mut(name) {
            *it = text_of(it.take()).into();
        }
    }
    for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        call.as_object_mut().into_iter().for_each(tidy);
    }
    serde_json::from_value(Value::Object(message))
}

/// Text, or the texts of a list of parts; nothing else has any.
pub(super) fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Array(parts) => parts.iter().filter_map(|it| it["text"].as_str()).collect(),
        _ => String::new(),
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
