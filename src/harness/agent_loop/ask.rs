//! Part of `agent_loop`: one request to the model.
//!
//! Watch for: a request is built from what was just logged, so nothing can reach the model that is not in the log.

use std::rc::Rc;

use super::{
    AgentLoop, AgentRequest, AssistantDelta, RequestConfig, RequestDraft, failure::Failure,
    turn::Turn,
};
use crate::{
    cordis,
    harness::{
        llm::{LlmError, Reply, Request},
        session::message::Header,
        tools::until_cancelled,
    },
};

impl AgentLoop {
    /// Asks with what the log holds, and logs what came back.
    pub(super) async fn ask(&self, turn: &mut Turn) -> Result<Finish, Failure> {
        if turn.stop.is_cancelled() {
            return Err(Failure::Aborted);
        }
        let request = self.request(turn).await?;
        let reply = self.chat(turn, request.clone()).await?;
        let finish = Finish::of(reply.finish_reason.as_deref());
        turn.model_replies(reply, &request)?;
        Ok(finish)
    }

    /// Invariant: what is sent equals the newest header in the log and the messages derived from the log.
    async fn request(&self, turn: &mut Turn) -> Result<Rc<Request>, Failure> {
        let config = RequestConfig { model: self.llm.model(), system: self.prompt.render() };
        let (session, number, step) = (turn.session.clone(), turn.turn, turn.step);
        let draft = Rc::new(RequestDraft { session, turn: number, step, config });
        let innermost = async |draft: Rc<RequestDraft>| Ok(draft.config.clone());
        let changed = self.ctx.waterfall::<AgentRequest>(draft, innermost);
        let config = until_cancelled(&turn.stop, changed).await.ok_or(Failure::Aborted)?;
        let RequestConfig { model, system } = config.map_err(Failure::Plugin)?;
        let header = Header {
            model,
            system: Some(system).filter(|it| !it.is_empty()),
            tools: self.tools.schemas(),
        };
        turn.header(&header)?;
        Ok(Rc::new(Request { header, messages: turn.session.messages() }))
    }

    async fn chat(&self, turn: &Turn, request: Rc<Request>) -> Result<Reply, Failure> {
        let (ctx, session, hash) = (self.ctx.clone(), turn.session.clone(), request.hash());
        let on_delta =
            Rc::new(move |delta| ctx.emit(&AssistantDelta { session: session.clone(), delta }));
        let stop = turn.stop.clone();
        let answer =
            cordis::catch_panic(async { self.llm.chat(request, on_delta, stop.clone()).await });
        match until_cancelled(&stop, answer).await {
            Some(Ok(Ok(reply))) => Ok(reply),
            None | Some(Ok(Err(LlmError::Cancelled))) => Err(Failure::Aborted),
            Some(Ok(Err(source))) => Err(Failure::Model { source, hash }),
            Some(Err(panic)) => Err(Failure::Plugin(panic.into())),
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
