//! A model that answers by script: no key, no network, the same every time.
//!
//! Provides `llm`. Emits `llm-fake/request` with each request it gets.
//! Full-size counterpart: the mock provider of the full project's tests.
//! Watch for: by default the script begins anew with each message of the user, so that a conversation stays usable.

use std::{cell::RefCell, rc::Rc, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    cordis::{BoxError, Context, Emit, LocalBoxFuture},
    harness::{
        llm::{Delta, Llm, LlmError, Reply, Request},
        session::message::{AssistantMessage, Message, ToolCallRequest},
    },
};

/// What it says, when, and what then.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// The replies, in order.
    #[serde(default = "sample")]
    #[schemars(length(min = 1))]
    script: Vec<Line>,
    /// How long each reply takes that does not say so itself.
    #[serde(default)]
    delay_ms: u64,
    /// What follows the last reply.
    #[serde(default)]
    repeat: Repeat,
}

/// One reply: text, calls, or both; or an error.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct Line {
    content: Option<String>,
    /// Told at once, before the delay; all of them are the content if nothing else is.
    #[serde(default)]
    pieces: Vec<String>,
    /// Why a real service would have failed after these pieces and been asked again.
    retry: Option<String>,
    /// How long this reply takes.
    #[serde(rename = "delayMs")]
    delay_ms: Option<u64>,
    /// One call, with `args`. A text there is sent as this text, JSON or not.
    tool: Option<String>,
    #[serde(default)]
    args: Value,
    /// Several calls, in the form of the wire.
    #[serde(default)]
    #[schemars(with = "Vec<Value>")]
    tool_calls: Vec<ToolCallRequest>,
    error: Option<String>,
    reasoning_content: Option<String>,
    finish_reason: Option<String>,
    usage: Option<Value>,
}

/// What follows the last reply.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Repeat {
    /// The first one; also whenever the user says something new.
    #[default]
    Turn,
    /// The last one, again and again.
    Last,
    /// An error.
    Error,
}

/// `llm-fake/request`: what the model was asked, to the letter.
pub struct FakeRequest(pub Rc<Request>);

impl Emit for FakeRequest {
    const NAME: &str = "llm-fake/request";
}

/// Mounts the model.
pub async fn apply(ctx: Context, config: Config) -> Result<(), BoxError> {
    let fake = Fake { ctx: ctx.clone(), config, place: RefCell::default() };
    ctx.provide::<dyn Llm>(Rc::new(fake))?;
    Ok(())
}

struct Fake {
    ctx: Context,
    config: Config,
    place: RefCell<Place>,
}

/// Where in the script it is, and the conversation that brought it there.
#[derive(Default)]
struct Place {
    next: usize,
    heard: Vec<Message>,
}

impl Llm for Fake {
    fn model(&self) -> String {
        "fake".into()
    }

    fn chat(
        &self,
        request: Rc<Request>,
        on_delta: Rc<dyn Fn(Delta)>,
        cancel: CancellationToken,
    ) -> LocalBoxFuture<'static, Result<Reply, LlmError>> {
        let line = self.next_line(&request);
        self.ctx.emit(&FakeRequest(request.clone()));
        let own = line.as_ref().ok().and_then(|it| it.delay_ms);
        let delay = Duration::from_millis(own.unwrap_or(self.config.delay_ms));
        let answer = async move {
            line.iter().flat_map(|it| it.deltas(delay)).for_each(|it| on_delta(it));
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            line?.reply()
        };
        Box::pin(async move {
            cancel.run_until_cancelled(answer).await.unwrap_or(Err(LlmError::Cancelled))
        })
    }
}

impl Fake {
    fn next_line(&self, request: &Request) -> Result<Line, LlmError> {
        let script = &self.config.script;
        let mut place = self.place.borrow_mut();
        let is_new = matches!(request.messages.last(), Some(Message::User { .. }))
            && place.heard != request.messages;
        place.heard.clone_from(&request.messages);
        let number = match self.config.repeat {
            Repeat::Turn if is_new => 0,
            Repeat::Turn => place.next % script.len(),
            Repeat::Last => place.next.min(script.len() - 1),
            Repeat::Error => place.next,
        };
        place.next = number + 1;
        script
            .get(number)
            .cloned()
            .ok_or_else(|| LlmError::Scripted(format!("the script has no reply {}", number + 1)))
    }
}

impl Line {
    fn deltas(&self, after: Duration) -> Vec<Delta> {
        let retry = self.retry.iter().map(|why| Delta::Retry {
            why: why.clone(),
            after,
            attempt: 1,
            of: 1,
        });
        self.pieces.iter().cloned().map(Delta::Text).chain(retry).collect()
    }

    fn reply(self) -> Result<Reply, LlmError> {
        if let Some(message) = self.error {
            return Err(LlmError::Scripted(message));
        }
        let arguments = match self.args {
            Value::Null => "{}".into(),
            Value::String(text) => text,
            other => other.to_string(),
        };
        let single = self.tool.map(|tool| ToolCallRequest::new("", tool, arguments));
        let message = AssistantMessage {
            content: self.content.or_else(|| whole(&self.pieces)),
            tool_calls: single.into_iter().chain(self.tool_calls).collect(),
            reasoning_content: self.reasoning_content,
            other: Map::new(),
        };
        Ok(Reply { message, finish_reason: self.finish_reason, usage: self.usage })
    }
}

fn whole(pieces: &[String]) -> Option<String> {
    (!pieces.is_empty()).then(|| pieces.concat())
}

/// The two replies of the README's first run.
fn sample() -> Vec<Line> {
    let script = json!([
        { "tool": "bash", "args": { "command": "echo hello from nano" } },
        { "content": "The command ran; that is all for this scripted reply." },
    ]);
    serde_json::from_value(script).expect("it is a script")
}
