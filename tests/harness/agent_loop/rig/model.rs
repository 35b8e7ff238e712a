//! A model that does what the test told it.

#![expect(clippy::panic, reason = "one of its answers is to break")]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::panic_any;
use std::rc::Rc;

use tokio_util::sync::CancellationToken;

use nano_cordis::cordis::{BoxError, Context, LocalBoxFuture, NoConfig, PluginDef, plugin};
use nano_cordis::harness::llm::{Delta, Llm, LlmError, Reply, Request};
use nano_cordis::harness::session::message::{AssistantMessage, ToolCallRequest};

/// A model that answers from a list and remembers what it was asked.
#[derive(Clone, Default)]
pub(crate) struct Model(Rc<Script>);

#[derive(Default)]
struct Script {
    answers: RefCell<VecDeque<Answer>>,
    asked: RefCell<Vec<Rc<Request>>>,
}

enum Answer {
    Reply(Reply),
    Pieces(Vec<&'static str>, Reply),
    Fail(LlmError),
    Panic,
    Hang,
}

impl Model {
    /// A provider of this model.
    pub(crate) fn plugin(&self) -> PluginDef {
        let model = self.clone();
        plugin(move |ctx: Context, _: NoConfig| {
            let model: Rc<dyn Llm> = Rc::new(model.clone());
            async move { ctx.provide::<dyn Llm>(model).map(drop).map_err(BoxError::from) }
        })
    }

    /// Next, a text.
    pub(crate) fn says(&self, text: &str) -> &Self {
        self.replies(text, &[], Some("stop"))
    }

    /// Next, calls of tools: id, name, arguments.
    pub(crate) fn calls(&self, calls: &[(&str, &str, &str)]) -> &Self {
        self.replies("", calls, Some("tool_calls"))
    }

    /// Next, a reply that ends for this reason.
    pub(crate) fn replies(
        &self,
        text: &str,
        calls: &[(&str, &str, &str)],
        reason: Option<&str>,
    ) -> &Self {
        self.then(Answer::Reply(reply(text, calls, reason)))
    }

    /// Next, a text in pieces.
    pub(crate) fn streams(&self, pieces: &[&'static str]) -> &Self {
        self.then(Answer::Pieces(pieces.to_vec(), reply(&pieces.concat(), &[], Some("stop"))))
    }

    /// Next, an error.
    pub(crate) fn fails(&self, error: LlmError) -> &Self {
        self.then(Answer::Fail(error))
    }

    /// Next, a panic.
    pub(crate) fn panics(&self) -> &Self {
        self.then(Answer::Panic)
    }

    /// Next, silence for ever.
    pub(crate) fn hangs(&self) -> &Self {
        self.then(Answer::Hang)
    }

    /// What it was asked, in order.
    pub(crate) fn asked(&self) -> Vec<Rc<Request>> {
        self.0.asked.borrow().clone()
    }

    fn then(&self, answer: Answer) -> &Self {
        self.0.answers.borrow_mut().push_back(answer);
        self
    }
}

impl Llm for Model {
    fn model(&self) -> String {
        "fake".to_owned()
    }

    fn chat(
        &self,
        request: Rc<Request>,
        on_delta: Rc<dyn Fn(Delta)>,
        _: CancellationToken,
    ) -> LocalBoxFuture<'static, Result<Reply, LlmError>> {
        self.0.asked.borrow_mut().push(request);
        let answer = self.0.answers.borrow_mut().pop_front().expect("the test gave enough answers");
        Box::pin(async move {
            match answer {
                Answer::Reply(reply) => Ok(reply),
                Answer::Pieces(pieces, reply) => {
                    for piece in pieces {
                        on_delta(Delta::Text(piece.to_owned()));
                    }
                    Ok(reply)
                }
                Answer::Fail(error) => Err(error),
                Answer::Panic => panic_any("the model broke"),
                Answer::Hang => std::future::pending().await,
            }
        })
    }
}

fn reply(text: &str, calls: &[(&str, &str, &str)], reason: Option<&str>) -> Reply {
    let tool_calls =
        calls.iter().map(|(id, name, text)| ToolCallRequest::new(*id, *name, *text)).collect();
    let content = Some(text.to_owned()).filter(|it| !it.is_empty());
    let message = AssistantMessage { content, tool_calls, ..AssistantMessage::default() };
    Reply { message, finish_reason: reason.map(str::to_owned), usage: None }
}
