//! Part of `compaction`: the request for a summary, and the event that puts it in place.
//!
//! Watch for: nothing reaches the model that is not in the log (D-42). A request for a summary is the newest header, the
//! messages of the span, and an instruction, which is logged before it is sent. It begins like the request before it, so a
//! service that keeps the beginning of requests has to read little of it anew.

use std::rc::Rc;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Compaction, Span, told};
use crate::{
    cordis::{BoxError, Context, Notice},
    harness::{
        env::mask::Mask,
        llm::{Delta, LlmError, Reply, Request},
        session::{
            Session,
            event::EventBody,
            message::{AssistantMessage, Message},
        },
    },
};

/// The event that says what the model was asked; programs that do not know it may overlook it.
pub(in crate::extras) const ASKED: &str = "compaction/request";
/// A summary that is none is asked for once more.
const TRIES: usize = 2;
/// What stands before a summary.
const HEADING: &str =
    "[Summary of the conversation up to here. What it stands for is not shown any more.]";

impl Compaction {
    /// Has a span summarised, and puts the summary in its place. Gives what the user is told.
    pub(super) async fn compact(
        &self,
        ctx: &Context,
        session: &Rc<Session>,
        span: Span,
        focus: &str,
        cancel: CancellationToken,
    ) -> Result<String, BoxError> {
        let header = session.header().ok_or("no request was made yet")?;
        let instruction = [self.config.instruction.as_str(), focus].join("\n\n");
        let mut messages = span.shown.clone();
        messages.push(Message::user(instruction.trim()));
        let request = Rc::new(Request { header, messages });
        let (summary, reply, hash) = self.summary(ctx, session, &span, &request, cancel).await?;
        let text = format!("{HEADING}\n\n{summary}");
        if super::tokens(text.len()) >= span.tokens {
            return Err("the summary is no shorter than what it is to replace".into());
        }
        // Some services insist that user and assistant take turns.
        let message = if span.user_follows {
            let content = Some(text.clone());
            Message::Assistant(Rc::new(AssistantMessage { content, ..Default::default() }))
        } else {
            Message::user(&text)
        };
        session.append(EventBody::CompactionSummary {
            from: span.from,
            to: span.to,
            keep: span.keep.clone(),
            message,
            usage: reply.usage,
            request_hash: Some(hash),
        })?;
        Ok(told(session, &span, &text))
    }

    async fn summary(
        &self,
        ctx: &Context,
        session: &Rc<Session>,
        span: &Span,
        request: &Rc<Request>,
        cancel: CancellationToken,
    ) -> Result<(String, Reply, String), BoxError> {
        let instruction = request.messages.last().map(Message::text).unwrap_or_default();
        let hash = request.hash();
        let mut problem = "";
        for _ in 0..TRIES {
            let asked = json!({ "to": span.to, "instruction": instruction, "requestHash": hash });
            session.append(EventBody::ignorable(ASKED, &asked)?)?;
            let here = ctx.clone();
            let on_delta = move |delta| {
                if let Delta::Retry { why, .. } = delta {
                    here.emit(&Notice(format!("compaction: {why}; trying again")));
                }
            };
            let reply = self.llm.chat(request.clone(), Rc::new(on_delta), cancel.clone()).await;
            let reply = match reply {
                Ok(reply) => reply,
                Err(LlmError::Empty) => {
                    problem = "the model said nothing";
                    continue;
                }
                Err(err) => return Err(err.into()),
            };
            let text = reply.message.content.as_deref().unwrap_or_default().trim();
            problem = match reply.finish_reason.as_deref() {
                Some("length" | "max_tokens") => "the summary was cut at the token limit",
                Some("content_filter") => "a content filter stopped the summary",
                _ if !reply.message.tool_calls.is_empty() => "the model called a tool instead",
                _ if text.is_empty() => "the model said nothing",
                _ => {
                    let secrets = self.env.get().map(|it| it.secrets()).unwrap_or_default();
                    let text = Mask::new(secrets).text(text).into_owned();
                    return Ok((text, reply, hash));
                }
            };
        }
        Err(problem.into())
    }
}
