//! Agent loop: one text of the user becomes a turn, that is model requests and tool calls until the model calls nothing.
//!
//! Needs `llm`, `tools`, `prompt`; asks `loader` and `env` and tells `trust` if they are there. Provides `agentLoop`. Listens to
//! `loader/before-apply`. Raises `agent/request`, `agent/turn-stopping`, `assistant/delta`, `cordis/notice`.
//! Full-size counterpart: the core agent and agent-loop packages.
//! Watch for: the loop does not know that approval, persistence or the command line exist. It keeps no state of a
//! conversation: a request is the newest header of the log and the messages derived from it, nothing else. Whatever
//! happens, a turn that was opened in the log is closed in it (`turn.rs`).

mod ask;
mod failure;
mod outcome;
mod secrecy;
mod stopping;
mod turn;

use std::{num::NonZeroU32, rc::Rc};

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::{ask::Finish, failure::Failure, turn::Turn};
pub use self::{
    failure::EndTurn,
    outcome::{RunError, TurnOutcome},
    stopping::{Stopping, TurnStopping},
};
use crate::{
    cordis::{
        BeforeApply, BoxError, Change, Context, Emit, Loader, Optional, Service, Svc, Waterfall,
    },
    harness::{
        env::{Env, mask::Mask},
        llm::{Delta, Llm},
        prompt::Prompt,
        session::{Session, event::Reason},
        tools::{CallRequest, ToolResult, Tools, pipeline::until_cancelled},
        trust::Trust,
    },
};

/// Config of `agent-loop`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// Model requests in one turn before it ends as `max-steps`.
    #[serde(default = "default_max_steps")]
    max_steps: NonZeroU32,
}

fn default_max_steps() -> NonZeroU32 {
    const { NonZeroU32::new(25).expect("25 is not zero") }
}

/// The plugin. Turns run in the task of whoever calls [`AgentLoop::run`], never in this body.
#[expect(clippy::too_many_arguments, reason = "each of them says what the loop needs or uses")]
pub async fn apply(
    ctx: Context,
    config: Config,
    llm: Svc<dyn Llm>,
    tools: Svc<Tools>,
    prompt: Svc<Prompt>,
    loader: Optional<Loader>,
    trust: Optional<Trust>,
    env: Optional<Env>,
) -> Result<(), BoxError> {
    let unloaded = CancellationToken::new();
    let turns = watch::Sender::new(0);
    let (max_steps, ctx_of_loop) = (config.max_steps, ctx.clone());
    let agent_loop = AgentLoop {
        ctx: ctx_of_loop,
        max_steps,
        llm,
        tools,
        prompt,
        loader,
        trust,
        env,
        unloaded: unloaded.clone(),
        turns: turns.clone(),
    };
    ctx.provide(Rc::new(agent_loop))?;
    ctx.on_parallel::<BeforeApply>(async move |ctx, change| hold(&ctx, &change, &turns).await)?;
    ctx.effect(|| move || unloaded.cancel())?;
    Ok(())
}

/// A change of the configuration waits until no turn runs: a turn ends with the agent it began with.
async fn hold(
    ctx: &Context,
    change: &Change,
    turns: &watch::Sender<usize>,
) -> Result<(), BoxError> {
    if *turns.borrow() > 0 {
        ctx.emit(&change.held("applied when this turn ends (Ctrl-C ends it now)"));
    }
    turns.subscribe().wait_for(|running| *running == 0).await?;
    Ok(())
}

/// Service `agentLoop`.
// Omitted: the full-size project has an inbox for texts that come while a turn runs (follow-up, steer, inject) and an
// event before each step. Here a second text is refused, and whoever reads lines waits.
pub struct AgentLoop {
    ctx: Context,
    max_steps: NonZeroU32,
    llm: Svc<dyn Llm>,
    tools: Svc<Tools>,
    prompt: Svc<Prompt>,
    loader: Optional<Loader>,
    trust: Optional<Trust>,
    env: Optional<Env>,
    unloaded: CancellationToken,
    turns: watch::Sender<usize>,
}

impl Service for AgentLoop {
    const NAME: &'static str = "agentLoop";
}

impl AgentLoop {
    /// Runs one turn. An error of the model or of a tool is part of the outcome; an `Err` means that no turn began
    /// and nothing was logged. Pulling `cancel` ends the turn at once, with all that is open answered and closed.
    pub async fn run(
        &self,
        session: &Rc<Session>,
        text: &str,
        cancel: CancellationToken,
    ) -> Result<TurnOutcome, RunError> {
        if text.trim().is_empty() {
            return Err(RunError::Empty);
        }
        self.wait_for_changes(&cancel).await?;
        self.may_begin(session)?;
        let acting = self.trust.get().map(|it| it.shared().turn());
        let mask = Mask::new(self.env.get().map(|it| it.secrets()).unwrap_or_default());
        let mut turn = Turn::open(session, cancel, &self.turns, acting, mask)?;
        let stop = turn.stop.clone();
        let unloading = async {
            self.unloaded.cancelled().await;
            stop.cancel();
            std::future::pending().await
        };
        let end = tokio::select! {
            biased;
            end = self.steps(&mut turn, text) => end,
            never = unloading => never,
        };
        Ok(turn.close(end))
    }

    /// Whether a turn of this session runs. A log that takes no more events may stay without the end of its turn.
    pub fn is_busy(&self, session: &Session) -> bool {
        session.is_mid_turn() && session.sealed().is_none()
    }
}

/// `agent/request`: the part of a request that plugins may change. What comes out is logged before it is sent.
pub struct AgentRequest;

impl Waterfall for AgentRequest {
    const NAME: &'static str = "agent/request";
    type Input = RequestDraft;
    type Output = RequestConfig;
}

/// The next request, as the loop would send it.
pub struct RequestDraft {
    /// Whose request it is.
    pub session: Rc<Session>,
    /// Number of the turn.
    pub turn: u32,
    /// Number of the step.
    pub step: u32,
    /// What the loop would ask for.
    pub config: RequestConfig,
}

/// Model and system text; messages and tools are not up for change, they follow from the log and the table of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestConfig {
    /// Name of the model.
    pub model: String,
    /// System text; empty means none.
    pub system: String,
}

/// `assistant/delta`: a piece of a reply while it comes in, or word that it begins anew. Live only; the log gets the
/// whole message.
pub struct AssistantDelta {
    /// Whose reply it is.
    pub session: Rc<Session>,
    /// The piece.
    pub delta: Delta,
}

impl Emit for AssistantDelta {
    const NAME: &'static str = "assistant/delta";
}

// How a turn goes.
impl AgentLoop {
    /// A turn that is asked for while a change is being applied runs on the changed agent. But while another turn runs
    /// no change is applied, and a turn inside of a turn must not wait for what waits for the outer one.
    async fn wait_for_changes(&self, cancel: &CancellationToken) -> Result<(), RunError> {
        let idle = *self.turns.borrow() == 0;
        let Some(loader) = self.loader.get().filter(|_| idle) else { return Ok(()) };
        // The outcome does not matter here: `problem` says whether the agent is whole.
        until_cancelled(cancel, loader.applied()).await.map(drop).ok_or(RunError::Cancelled)
    }

    fn may_begin(&self, session: &Session) -> Result<(), RunError> {
        if self.unloaded.is_cancelled() {
            return Err(RunError::Unloaded);
        }
        if self.is_busy(session) {
            return Err(RunError::Busy);
        }
        self.problem().map_or(Ok(()), |problem| Err(RunError::NotReady(problem)))
    }

    fn problem(&self) -> Option<String> {
        self.loader.get().and_then(|loader| loader.problem())
    }

    /// A step is one model request and the tool calls that it leads to.
    async fn steps(&self, turn: &mut Turn, text: &str) -> Result<Reason, Failure> {
        let (mut said, mut was_continued) = (Some(text.to_owned()), false);
        for step in 1..=self.max_steps.get() {
            turn.begin_step(step)?;
            if let Some(text) = said.take() {
                turn.user_says(&text)?;
            }
            let finish = self.ask(turn).await?;
            match (finish, turn.has_calls()) {
                (Finish::Whole, false) => match self.may_stop(turn, was_continued).await? {
                    None => return Ok(Reason::Completed),
                    go_on => (said, was_continued) = (go_on, true),
                },
                (Finish::Cut, false) => return Ok(Reason::MaxTokens),
                (Finish::Whole, true) => self.run_calls(turn, None).await?,
                (Finish::Cut, true) => self.run_calls(turn, Some(CUT)).await?,
                (Finish::Filtered, _) => {
                    self.run_calls(turn, Some(FILTERED)).await?;
                    return Err(Failure::Filtered);
                }
            }
            turn.end_step()?;
        }
        Ok(Reason::MaxSteps)
    }

    /// Runs the calls of a reply one after the other. With a problem none of them runs, but each gets its result.
    // Omitted: the full-size project runs neighbouring calls at the same time if their tools say that this is safe.
    async fn run_calls(&self, turn: &mut Turn, problem: Option<&str>) -> Result<(), Failure> {
        while let Some(call) = turn.next_call()? {
            if let Some(problem) = self.problem() {
                turn.answer(&ToolResult::error(format!("not run: {problem}")))?;
                return Err(Failure::NotReady(problem));
            }
            let request = CallRequest {
                id: call.id,
                name: call.function.name,
                arguments: call.function.arguments,
                problem: problem.map(str::to_owned),
                cancel: turn.stop.clone(),
                session: Some(turn.session.clone()),
                turn: turn.number,
                step: turn.step,
            };
            turn.answer(&self.tools.execute(request).await)?;
            if turn.stop.is_cancelled() {
                return Err(Failure::Aborted);
            }
        }
        Ok(())
    }
}

const CUT: &str =
    "the reply was cut at the token limit, so this call was not run; send it again, shorter";
const FILTERED: &str = "a content filter stopped the reply, so this call was not run";
