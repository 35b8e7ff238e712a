//! The adapter for services like those of `OpenAI`, against a server that says what it is told, byte for byte.

use std::{cell::RefCell, rc::Rc, time::Duration};

use nano_cordis::{
    cordis::{Context, Svc, plugin},
    harness::{
        env::Env,
        llm::{Delta, Llm, LlmError, Reply, Request},
        llm_openai,
        session::message::{Header, Message},
    },
};
use serde_json::{Value, json};
use tokio::{
    runtime::Builder,
    task::LocalSet,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::server::{Answer, Server};

mod calls;
mod config;
mod failure;
mod limits;
mod reply;
mod request;
mod retry;
mod reuse;
mod secrets;
mod stream;
mod tls;
mod upload;

const KEY: &str = "sk-0123456789abcdef";

/// A server with its answers, and the adapter pointed at it.
struct Bench {
    server: Server,
    llm: Svc<dyn Llm>,
    /// What was told while the answer came in, and after how long.
    told: RefCell<Vec<(Duration, Delta)>>,
}

impl Bench {
    /// Another adapter, without a key, before the same server.
    async fn at(self, base: &str, env: &Env) -> Self {
        let llm = mount(json!({"baseUrl": base, "model": "m", "retries": 0}), env).await;
        Self { llm, ..self }
    }

    /// One request with these messages and no tools.
    async fn ask(&self, messages: Vec<Message>) -> Result<Reply, LlmError> {
        let header = Header::new(self.llm.model(), "", Vec::new());
        self.send(Request { header, messages }, CancellationToken::new()).await
    }

    async fn send(&self, request: Request, cancel: CancellationToken) -> Result<Reply, LlmError> {
        let (told, started) = (Rc::new(RefCell::new(Vec::new())), Instant::now());
        let tell = told.clone();
        let on_delta = move |delta| RefCell::borrow_mut(&tell).push((started.elapsed(), delta));
        let result = self.llm.chat(Rc::new(request), Rc::new(on_delta), cancel).await;
        self.told.replace(told.take());
        result
    }

    /// The text that was shown while the last answer came in.
    fn shown(&self) -> String {
        let text = |delta: &Delta| match delta {
            Delta::Text(text) => text.clone(),
            _ => String::new(),
        };
        self.told.borrow().iter().map(|(_, delta)| text(delta)).collect()
    }

    /// The retries of the last request: how long each waited, and why.
    fn retries(&self) -> Vec<(Duration, String)> {
        let retry = |delta: &Delta| match delta {
            Delta::Retry { after, why, .. } => Some((*after, why.clone())),
            _ => None,
        };
        self.told.borrow().iter().filter_map(|(_, delta)| retry(delta)).collect()
    }

    /// One request that is expected to fail; how it does.
    async fn fail(&self) -> LlmError {
        self.ask(vec![Message::user("hi")]).await.unwrap_err()
    }
}

/// Runs a test on one thread. `config` is added to an ordinary one, which tries once.
fn bench(answers: impl IntoIterator<Item = Answer>, config: &Value, test: impl AsyncFnOnce(Bench)) {
    let minute = Duration::from_mins(1);
    run(Builder::new_current_thread().enable_all(), minute, answers, config, test);
}

/// The same on a paused clock, which jumps to the next limit whenever nothing moves.
fn paused(
    answers: impl IntoIterator<Item = Answer>,
    config: &Value,
    test: impl AsyncFnOnce(Bench),
) {
    let builder = &mut Builder::new_current_thread();
    let day = Duration::from_hours(24);
    run(builder.enable_all().start_paused(true), day, answers, config, test);
}

fn run(
    builder: &mut Builder,
    longest: Duration,
    answers: impl IntoIterator<Item = Answer>,
    config: &Value,
    test: impl AsyncFnOnce(Bench),
) {
    LocalSet::new().block_on(&builder.build().unwrap(), async {
        let server = Server::start(answers).await;
        let mut whole = json!({"baseUrl": server.url("/v1"), "model": "m", "apiKeyEnv": "MY_KEY", "retries": 0});
        whole.as_object_mut().unwrap().extend(config.as_object().cloned().unwrap_or_default());
        let llm = mount(whole, &Env::fixed([("MY_KEY", KEY)])).await;
        timeout(longest, test(Bench { server, llm, told: RefCell::default() })).await.expect("it waits for ever");
    });
}

async fn mount(config: Value, env: &Env) -> Svc<dyn Llm> {
    let root = Context::root();
    root.provide(Rc::new(env.clone())).unwrap();
    root.plugin(&plugin(llm_openai::apply), config).unwrap().ready().await.unwrap();
    root.get::<dyn Llm>().unwrap()
}

fn assistant(message: &Value) -> Message {
    Message::Assistant(Rc::new(serde_json::from_value(message.clone()).unwrap()))
}
