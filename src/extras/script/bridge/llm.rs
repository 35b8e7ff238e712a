//! Part of `script`: the model, for scripts that ask it, and scripts that are one.

use std::rc::Rc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Bridge, Done, Reply, callback::Callback, codec, number, services::view, shown};
use crate::{
    cordis::LocalBoxFuture,
    extras::script::failure::Failure,
    harness::{
        llm::{Delta, Llm, LlmError, Reply as Answer, Request},
        session::message::{AssistantMessage, Header},
    },
};

/// A model that a script provides.
// Differs: its `model` is read once, when it is provided: the agent never waits for a script to tell.
pub(super) struct ScriptLlm {
    bridge: Rc<Bridge>,
    model: String,
    chat: Rc<Callback>,
    _object: Rc<Callback>,
}

impl ScriptLlm {
    pub(super) fn new(
        bridge: &Rc<Bridge>,
        model: String,
        chat: Rc<Callback>,
        object: Rc<Callback>,
    ) -> Self {
        Self { bridge: bridge.clone(), model, chat, _object: object }
    }
}

impl Llm for ScriptLlm {
    fn model(&self) -> String {
        self.model.clone()
    }

    fn chat(
        &self,
        request: Rc<Request>,
        on_delta: Rc<dyn Fn(Delta)>,
        cancel: CancellationToken,
    ) -> LocalBoxFuture<'static, Result<Answer, LlmError>> {
        let (bridge, token) = (self.bridge.clone(), self.bridge.token());
        bridge.deltas.borrow_mut().insert(token.number, on_delta);
        let going = self.chat.call(vec![asked(&request), token.number.into()]);
        Box::pin(async move {
            let reply = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    bridge.abort(token.number);
                    Err(LlmError::Cancelled)
                }
                reply = going => reply.map_err(failed).and_then(|it| answer(&it)),
            };
            drop(token);
            reply
        })
    }
}

/// A request as scripts see it: header and messages, in the words of chat completions.
fn asked(request: &Request) -> Value {
    let Request { header, messages } = request;
    json!({
        "model": header.model, "system": header.system, "tools": header.tools, "messages": messages,
    })
}

/// A whole reply, a message, or only its text.
fn answer(said: &Value) -> Result<Answer, LlmError> {
    let bad = |problem| {
        LlmError::BadReply(format!("the script that is the model gave no reply: {problem}"))
    };
    let whole = said.get("message").filter(|it| !it.is_null());
    let message = match whole.unwrap_or(said) {
        Value::String(text) => {
            AssistantMessage { content: Some(text.clone()), ..AssistantMessage::default() }
        }
        it if it.is_object() => codec::parsed("message", it).map_err(bad)?,
        _ => return Err(bad("it is neither a text nor a message".to_owned())),
    };
    if message.is_empty() {
        return Err(LlmError::Empty);
    }
    let reason = said["finishReason"].as_str().filter(|_| whole.is_some()).map(str::to_owned);
    let usage = said.get("usage").filter(|it| whole.is_some() && !it.is_null()).cloned();
    Ok(Answer { message, finish_reason: reason, usage })
}

/// What a script threw, by the `code` and the `status` that it put on the error.
fn failed(failure: Failure) -> LlmError {
    let message = failure.to_string();
    let kind = failure.kind.unwrap_or_default();
    match (kind.code.as_deref(), kind.status) {
        (Some("context-length"), status) => {
            LlmError::ContextLength { status: status.unwrap_or(400), message }
        }
        (Some("quota"), status) => LlmError::Quota { status: status.unwrap_or(429), message },
        (Some("timeout"), _) => LlmError::Timeout(message),
        (Some("transport"), _) => LlmError::Transport(message),
        (_, Some(status)) => LlmError::Status { status, message },
        _ => LlmError::Script(message),
    }
}

impl Bridge {
    /// Operations on the model; none if it is not one of these.
    pub(super) fn model(self: &Rc<Self>, operation: &str, args: &[Value]) -> Option<Reply> {
        Some(match (operation, args) {
            ("llm.model", [ctx]) => Reply::Now(
                self.context(ctx).and_then(|it| view::<dyn Llm>(&it)).map(|it| it.model().into()),
            ),
            ("llm.chat", [cancel, ctx, request, on_delta]) => {
                let going = self.chat(cancel, ctx, request, on_delta);
                going.map_or_else(|problem| Reply::Now(Err(problem)), Reply::Later)
            }
            ("delta", [call, delta]) => {
                self.delta(call, delta);
                Reply::NOTHING
            }
            _ => return None,
        })
    }

    fn chat(
        self: &Rc<Self>,
        cancel: &Value,
        ctx: &Value,
        request: &Value,
        on_delta: &Value,
    ) -> Result<LocalBoxFuture<'static, Done>, String> {
        let on_delta = self.callback(on_delta);
        let llm = view::<dyn Llm>(&self.context(ctx)?)?;
        let model = request["model"].as_str().map_or_else(|| llm.model(), str::to_owned);
        let tools = request.get("tools").filter(|it| !it.is_null());
        let tools = tools.map_or(Ok(Vec::new()), |it| codec::parsed("tools", it))?;
        let header = Header::new(model, request["system"].as_str().unwrap_or_default(), tools);
        let messages = codec::parsed("messages", &request["messages"])?;
        let (held, cancel) = self.cancellation(cancel);
        let bridge = self.clone();
        let raise: Rc<dyn Fn(Delta)> = Rc::new(move |delta| {
            if let Some(to) = on_delta.clone() {
                let going = to.call(vec![codec::delta(&delta)]);
                bridge.go_on(async move { drop((going.await, to)) });
            }
        });
        let going = llm.chat(Rc::new(Request { header, messages }), raise, cancel);
        Ok(Box::pin(async move {
            let reply = going.await.map_err(shown)?;
            drop(held);
            let Answer { message, finish_reason, usage } = reply;
            Ok(json!({ "message": message, "finishReason": finish_reason, "usage": usage }))
        }))
    }

    fn delta(&self, call: &Value, delta: &Value) {
        let on_delta = number(call).and_then(|it| self.deltas.borrow().get(&it).cloned());
        let text = delta["text"].as_str().or(delta.as_str()).map(str::to_owned);
        if let (Some(on_delta), Some(text)) = (on_delta, text) {
            on_delta(match delta["type"].as_str() {
                Some("reasoning") => Delta::Reasoning(text),
                _ => Delta::Text(text),
            });
        }
    }
}
