//! The model behind an OpenAI-compatible address: chat completions over HTTP.
//!
//! Needs `env`. Provides `llm`. Listens to `env/check`, `shell/env`, `tools/post-execute`. Raises `cordis/warning`.
//! Full-size counterpart: the llm-deepseek package.
//! Watch for: the request goes out as it is in the log, but for the few changes in `wire.rs`; the key goes nowhere but
//! into one header, and what servers and commands say is masked where it holds the key.
//!
//! Its folder, in the order of a request: `endpoint`, `proxy`, `key` (where, which way, who); `wire` (what is sent);
//! `client`, `http`, `retry` (the way there, its limits, another try); `body` (what comes, while it comes), `sse`,
//! `stream`, `calls` (pieces), `reply`, `mend` (the whole); `answer` (what errors may say).

mod answer;
mod body;
mod calls;
pub(crate) mod client;
mod endpoint;
mod http;
mod key;
mod mend;
#[cfg(any(test, fuzzing))]
pub(crate) mod probe;
mod proxy;
mod reply;
mod retry;
mod sse;
mod stream;
mod wire;

use std::{num::NonZeroU32, rc::Rc};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use self::{
    endpoint::Endpoint,
    http::Http,
    key::{Key, VariableName},
    retry::Failed,
    wire::{EmptyContent, Extra, Reasoning},
};
use crate::{
    cordis::{BoxError, Context, LocalBoxFuture, Svc},
    harness::{
        env::Env,
        llm::{Delta, Llm, LlmError, Reply, Request},
    },
};

/// Which model, where, and how its server wants to be talked to.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// Address of the service, such as `https://api.deepseek.com/v1`; `/chat/completions` is appended to it.
    #[schemars(with = "String")]
    base_url: Endpoint,
    /// The model that is asked.
    model: String,
    /// Name of the environment variable that holds the key; the key itself never goes in a file. Absent: no key is sent.
    #[schemars(with = "Option<String>")]
    api_key_env: Option<VariableName>,
    /// Whether text comes piece by piece, and is shown as it comes.
    #[serde(default = "streams")]
    stream: bool,
    /// What is sent as the text of a message that only calls tools: `""`, or with `"null"` (in quotes) a null.
    #[serde(default)]
    empty_content: EmptyContent,
    /// Whether the model gets its own reasoning back.
    #[serde(default)]
    reasoning: Reasoning,
    /// Most tokens of one reply. Absent: as the service likes.
    max_tokens: Option<NonZeroU32>,
    /// What the service calls that limit; newer models of OpenAI say `max_completion_tokens`.
    #[serde(default = "max_tokens_field")]
    max_tokens_field: String,
    /// Further fields of every request, such as `temperature`. `stream_options: null` leaves that field out of it.
    #[serde(default)]
    #[schemars(with = "Map<String, Value>")]
    body: Extra,
    /// Limit for making a connection.
    #[serde(default = "millis::<10_000>")]
    #[schemars(range(min = 1))]
    connect_timeout_ms: u64,
    /// Limit for the wait until an answer begins.
    #[serde(default = "millis::<120_000>")]
    #[schemars(range(min = 1))]
    first_byte_timeout_ms: u64,
    /// Limit for the wait within an answer; any byte ends the wait.
    #[serde(default = "millis::<90_000>")]
    #[schemars(range(min = 1))]
    silence_timeout_ms: u64,
    /// Limit for bytes that bring the answer no further, such as signs of life from a queue.
    #[serde(default = "millis::<600_000>")]
    #[schemars(range(min = 1))]
    keep_alive_limit_ms: u64,
    /// How often a request is sent again that failed for a reason that may pass.
    #[serde(default = "retries")]
    #[schemars(range(max = 100))]
    retries: u32,
}

/// Mounts the adapter.
// Omitted: the full-size adapter asks the provider for its models and their limits.
pub async fn apply(ctx: Context, config: Config, env: Svc<Env>) -> Result<(), BoxError> {
    let config = Rc::new(config);
    if let Some(variable) = config.api_key_env.clone() {
        key::keep_secret(&ctx, variable, &env)?;
    }
    let http = Http::new(config.clone(), env.shared());
    let adapter = Adapter { config, env: env.shared(), http };
    ctx.provide::<dyn Llm>(Rc::new(OpenAi(Rc::new(adapter))))?;
    Ok(())
}

struct OpenAi(Rc<Adapter>);

impl Llm for OpenAi {
    fn model(&self) -> String {
        self.0.config.model.clone()
    }

    fn chat(
        &self,
        request: Rc<Request>,
        on_delta: Rc<dyn Fn(Delta)>,
        cancel: CancellationToken,
    ) -> LocalBoxFuture<'static, Result<Reply, LlmError>> {
        let adapter = self.0.clone();
        // Whatever the request is waiting for, dropping it closes its connection.
        Box::pin(async move {
            let asking = adapter.ask(&request, &*on_delta);
            cancel.run_until_cancelled(asking).await.unwrap_or(Err(LlmError::Cancelled))
        })
    }
}

struct Adapter {
    config: Rc<Config>,
    env: Rc<Env>,
    http: Http,
}

impl Adapter {
    /// Asks until there is a reply, a failure that stays, or no retry left.
    async fn ask(&self, request: &Request, on_delta: &dyn Fn(Delta)) -> Result<Reply, LlmError> {
        let variable = self.config.api_key_env.as_ref();
        let key = variable.map(|it| Key::read(it, &self.env)).transpose()?;
        let request = self.http.request(wire::body(request, &self.config), key.as_ref())?;
        let (mut attempt, of) = (1, self.config.retries);
        loop {
            let failed = match self.attempt(&request, key.as_ref(), on_delta).await {
                Ok(reply) => return Ok(reply),
                Err(failed) => failed,
            };
            let wait = failed.wait(attempt).filter(|_| attempt <= of);
            let Some(after) = wait else { return Err(failed.why) };
            on_delta(Delta::Retry { why: failed.why.to_string(), after, attempt, of });
            tokio::time::sleep(after).await;
            attempt += 1;
        }
    }

    async fn attempt(
        &self,
        request: &reqwest::Request,
        key: Option<&Key>,
        on_delta: &dyn Fn(Delta),
    ) -> Result<Reply, Failed> {
        let response = self.http.send(request).await?;
        self.http.read(response, key.map(Key::mask).unwrap_or_default(), on_delta).await
    }
}

fn streams() -> bool {
    true
}

fn retries() -> u32 {
    4
}

fn max_tokens_field() -> String {
    "max_tokens".into()
}

fn millis<const N: u64>() -> u64 {
    N
}
