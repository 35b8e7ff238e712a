//! The model service: what is asked, what comes back, what can go wrong.
//!
//! A definition. `llm-openai` and `llm-fake` provide it as `llm`; `agent-loop` uses it; none of them knows another.
//! Full-size counterpart: the llm package, whose requests and replies belong to no provider.
//! Watch for: nothing is asked that is not in the log, and [`Request::hash`] lets anyone with the log check it.

mod error;
mod hash;

use std::{collections::HashSet, rc::Rc, time::Duration};

use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use self::{error::LlmError, hash::Growing};
use crate::{
    cordis::{LocalBoxFuture, Service},
    harness::session::message::{AssistantMessage, Header, Message, ToolCallRequest},
};

/// A model that can be asked.
// Omitted: the full-size service routes each request to one of several providers and describes their models.
pub trait Llm {
    /// The model that a request names unless a plugin changes it.
    fn model(&self) -> String;

    /// Asks, and where that fails for a passing reason, asks again. `on_delta` gets pieces of the answer as they come, from
    /// a provider that streams, and word of each retry; the reply is always whole. Pulling `cancel` ends it at once with
    /// [`LlmError::Cancelled`], and so does dropping the future.
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
        hash::of_json(self)
    }

    /// Gives each call an id of its own: a good one stays, one that is missing or was used before is replaced.
    /// A result finds its call by this id alone, here and at the provider. The loop does this, once for all providers.
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

/// What a model answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The message, fit for the log but for the ids of its calls, which may be missing: [`Request::settle_ids`].
    pub message: AssistantMessage,
    /// Why the model stopped, in the provider's word.
    pub finish_reason: Option<String>,
    /// What it cost in tokens, in the provider's own form.
    pub usage: Option<Value>,
}

/// What there is to say of an answer that is still being made. Nothing of it is in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// Text of the answer. It may hold anything, control characters too: who shows it makes it harmless.
    Text(String),
    /// Text of the thinking before it, of the same kind.
    Reasoning(String),
    /// The request failed and is sent once more after a wait. The answer begins anew: text and reasoning that came
    /// before this are no part of the reply.
    Retry {
        /// What failed: one harmless line, without a key.
        why: String,
        /// How long it waits.
        after: Duration,
        /// Which retry of this request it is, from 1.
        attempt: u32,
        /// How many there may be.
        of: u32,
    },
}
