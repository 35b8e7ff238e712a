//! Part of `agent_loop`: one request to the model.
//!
//! Watch for: a request is built from what was just logged, so nothing can reach the model that is not in the log.

use std::rc::Rc;

use super::{
    AgentLoop, AgentRequest, AssistantDelta, RequestConfig, RequestDraft, failure::Failure,
    turn::Turn,
};
use crate::{
    cordis::catch_panic,
    harness::{
        llm::{LlmError, Reply, Request},
        session::message::Header,
        tools::pipeline::until_cancelled,
    },
};

impl AgentLoop {
    /// Asks with what the log holds, and logs what came back.
    pub(super) async fn ask(&self, turn: &mut Turn) -> Result<Finish, Failure> {
        if turn.stop.is_cancelled() {
            return Err(Failure::Aborted);
        }
        let request = self.request(turn).await?;
        let hash = request.hash();
        let reply = match self.chat(turn, request.clone()).await? {
            Ok(reply) => reply,
            Err(source) => return Err(Failure::Model { source, hash }),
        };
        let finish = Finish::of(reply.finish_reason.as_deref());
        turn.model_replies(reply, &request, hash)?;
        Ok(finish)
    }

    /// Invariant: what is sent equals the newest header in the log and the messages derived from the log.
    async fn request(&self, turn: &mut Turn) -> Result<Rc<Request>, Failure> {
        let system = turn.mask.text(&self.prompt.render()).into_owned();
        let config = RequestConfig { model: self.llm.model(), system };
        let (session, number, step) = (turn.session.clone(), turn.number, turn.step);
        let draft = Rc::new(RequestDraft { session, turn: number, step, config });
        let innermost = async |draft: Rc<RequestDraft>| Ok(draft.config.clone());
        let changed = self.ctx.waterfall::<AgentRequest>(draft, innermost);
        let config = until_cancelled(&turn.stop, changed).await.ok_or(Failure::Aborted)?;
        let RequestConfig { model, system } = config.map_err(Failure::of_listener)?;
        let header = Header::new(model, &system, self.tools.schemas());
        let header = turn.header_in_force(header)?;
        Ok(Rc::new(Request { header, messages: turn.session.messages() }))
    }

    async fn chat(
        &self,
        turn: &Turn,
        request: Rc<Request>,
    ) -> Result<Result<Reply, LlmError>, Failure> {
        let (ctx, session, stop) = (self.ctx.clone(), turn.session.clone(), turn.stop.clone());
        let raise = move |delta| ctx.emit(&AssistantDelta { session: session.clone(), delta });
        let (llm, cancel) = (self.llm.clone(), stop.clone());
        let answer = async move { Ok(llm.chat(request, Rc::new(raise), cancel).await) };
        match until_cancelled(&stop, catch_panic(answer)).await {
            // Omitted: the full-size project logs the part of the reply that had come. Here it is shown, then dropped.
            None => Err(Failure::Aborted),
            Some(Ok(Err(LlmError::Cancelled))) if stop.is_cancelled() => Err(Failure::Aborted),
            Some(answer) => answer.map_err(Failure::Plugin),
        }
    }
}

/// What the reason for the end of a reply means for its calls.
pub(super) enum Finish {
    /// They may run, whatever word the server used: some say `stop` beside calls.
    Whole,
    /// They may look complete and still lack their end.
    Cut,
    /// They are not what the model wanted to say.
    Filtered,
}

impl Finish {
    fn of(reason: Option<&str>) -> Finish {
        match reason {
            Some("length" | "max_tokens") => Finish::Cut,
            Some("content_filter") => Finish::Filtered,
            _ => Finish::Whole,
        }
    }
}
