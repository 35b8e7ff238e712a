//! The model service: what is asked, what comes back, what can go wrong.
//!
//! A definition. `llm-openai` and `llm-fake` provide it as `llm`; `agent-loop` uses it; none of them knows another.
//! Full-size counterpart: the llm package, whose requests and replies belong to no provider.
//! Watch for: nothing is asked that is not in the log, and [`Request::hash`] lets anyone with the log check it.

mod error;

use std::{
    collections::HashSet,
    io::{self, BufWriter, Write},
    rc::Rc,
};

use ring::digest::{Context, SHA256};
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use self::error::LlmError;
use crate::{
    cordis::{LocalBoxFuture, Service},
    harness::session::message::{AssistantMessage, Header, Message, ToolCallRequest},
};

/// A model that can be asked.
// Omitted: the full-size service routes each request to one of several providers and describes their models.
pub trait Llm {
    /// The model that a request names unless a plugin changes it.
    fn model(&self) -> String;

    /// Asks once. `on_delta` gets pieces of the answer as they come, from a provider that streams; the reply is always
    /// whole. Pulling `cancel` ends it at once with [`LlmError::Cancelled`], and so does dropping the future.
    fn chat(
        &self,
        request: Rc<Request>,
        on_delta: Rc<dyn Fn(Delta)>,
        cancel: CancellationToken,
    ) -> LocalBoxFuture<'static, Result<Reply, LlmError>>;
}

impl Service for dyn Llm {
    const NAME: &str = "llm";
}

/// One request: exactly the newest header of the log and the messages derived from it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Request {
    /// Model, system prompt and tools.
    pub header: Header,
    /// The conversation so far. The system prompt is not among them.
    pub messages: Vec<Message>,
}

impl Request {
    /// SHA-256, in hexadecimal, of this request as compact JSON: `{"header":…,"messages":[…]}`, each as the log has it.
    pub fn hash(&self) -> String {
        let mut digest = BufWriter::new(Digest(Context::new(&SHA256)));
        serde_json::to_writer(&mut digest, self).expect("a request is plain JSON");
        let Ok(Digest(digest)) = digest.into_inner() else { unreachable!("a digest takes all") };
        let bytes = digest.finish();
        bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
    }

    /// Gives each call an id of its own: a good one stays, one that is missing or was used before is replaced.
    /// A result finds its call by this id alone, here and at the provider.
    pub fn settle_ids(&self, calls: &mut [ToolCallRequest]) {
        let mut used: HashSet<String> = self.calls().map(|it| it.id.clone()).collect();
        let offered: HashSet<String> = calls.iter().map(|it| it.id.clone()).collect();
        for call in calls {
            if call.id.is_empty() || used.contains(&call.id) {
                let mut fresh = (used.len() + 1..).map(|number| format!("call_{number}"));
                call.id = fresh
                    .find(|id| !used.contains(id) && !offered.contains(id))
                    .expect("numbers do not end");
            }
            used.insert(call.id.clone());
        }
    }

    fn calls(&self) -> impl Iterator<Item = &ToolCallRequest> {
        self.messages.iter().flat_map(|message| match message {
            Message::Assistant(it) => it.tool_calls.as_slice(),
            _ => &[],
        })
    }
}

/// Takes the JSON of a request as it is made: a long conversation is not held a second time for its hash.
struct Digest(Context);

impl Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The message, fit for the log. Every call in it has an id of its own.
    pub message: AssistantMessage,
    /// Why the model stopped, in the provider's word.
    pub finish_reason: Option<String>,
    /// What it cost in tokens, in the provider's own form.
    pub usage: Option<Value>,
}

/// A piece of an answer that is still being made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// Text of the answer.
    Text(String),
    /// Text of the thinking before it.
    Reasoning(String),
}
