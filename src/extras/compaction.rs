//! Compaction: a conversation that is about to outgrow the model is shortened to a summary that the model itself writes.
//!
//! Needs `llm`; uses `console` and `env` if they are there. Listens to `agent/request`. Adds the command `/compact`. Raises
//! `cordis/notice` and `cordis/warning`. The parts in its folder: `span` says what is summarised, `asking` has it done.
//! Full-size counterpart: the compaction package, which first shortens old results, and compacts once more when a provider
//! says that a request is too long.
//! Watch for: nothing is lost. The log keeps every event, and one more that says which of them the model is shown a summary
//! of. The system text, and with it the instructions of a project, is in the header of each request and never summarised.

mod asking;
mod span;

use std::{cell::RefCell, rc::Rc};

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

pub(super) use self::asking::ASKED;
use self::span::{Span, tokens};
use crate::{
    cordis::{BoxError, Context, Notice, Optional, Svc, Warning},
    harness::{
        agent_loop::{AgentRequest, RequestDraft},
        cli::{
            commands::{Command, Invocation},
            console::Console,
            usage::count,
        },
        env::Env,
        llm::Llm,
        session::Session,
    },
};

/// Config of `compaction`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// How many tokens the model can read. Without it a conversation is compacted by `/compact` only.
    #[schemars(range(min = 1000))]
    context_window: Option<u64>,
    /// At this share of the window a conversation is compacted.
    #[serde(default = "default_at")]
    #[schemars(range(min = 0.3, max = 1.0))]
    at: f64,
    /// The newest part of it stays as it is, up to this share of the window.
    #[serde(default = "default_keep")]
    #[schemars(range(min = 0.0, max = 0.25))]
    keep: f64,
    /// What the model is asked to do.
    #[serde(default = "default_instruction")]
    instruction: String,
}

fn default_at() -> f64 {
    0.8
}

fn default_keep() -> f64 {
    0.16
}

fn default_instruction() -> String {
    "Summarise this conversation for yourself: you will go on with it and see nothing of it but your summary and what comes \
     after. Name what the user wants and has said about how, what was done and found out (files, commands, results, \
     decisions and their reasons), what is under way, and what comes next. Keep names, paths and numbers exactly. Answer \
     with the summary alone, in at most 1000 words, and call no tool."
        .into()
}

/// The plugin.
pub async fn apply(
    ctx: Context,
    config: Config,
    llm: Svc<dyn Llm>,
    console: Optional<Console>,
    env: Optional<Env>,
) -> Result<(), BoxError> {
    let compaction = Rc::new(Compaction { config, llm, env, failed: RefCell::default() });
    let (automatic, here) = (compaction.clone(), ctx.clone());
    ctx.intercept::<AgentRequest>(async move |ctx, draft, next| {
        automatic.before_request(&ctx, &draft).await;
        next.run().await
    })?;
    if let Some(console) = console.get() {
        let help = "<what to keep>: the conversation so far becomes a summary";
        console.add_command(Command::new("compact", help, async move |it: Invocation| {
            compaction.by_hand(&here, it).await
        }))?;
    }
    Ok(())
}

struct Compaction {
    config: Config,
    llm: Svc<dyn Llm>,
    env: Optional<Env>,
    /// Session and turn in which it failed last: one failure a turn is enough.
    failed: RefCell<Option<(String, u32)>>,
}

impl Compaction {
    /// Compacts if it is time. If that fails the turn goes on with the conversation as it is.
    async fn before_request(&self, ctx: &Context, draft: &RequestDraft) {
        let Some(window) = self.config.context_window else { return };
        let used = span::used(&draft.session);
        if used < share(window, self.config.at) || self.has_failed(draft) {
            return;
        }
        let kept = share(window, self.config.keep);
        let Some(span) = Span::of(&draft.session, kept).filter(|it| it.tokens > kept) else {
            return;
        };
        ctx.emit(&Notice(format!(
            "compacting the conversation: about {} of {} tokens are used",
            count(used),
            count(window)
        )));
        // If the turn is cancelled this future is dropped, and the request with it.
        let cancel = CancellationToken::new();
        let _guard = cancel.clone().drop_guard();
        match self.compact(ctx, &draft.session, span, "", cancel).await {
            Ok(told) => ctx.emit(&Notice(told)),
            Err(err) => {
                self.failed.replace(Some((draft.session.id().to_owned(), draft.turn)));
                ctx.emit(&Warning(format!("compaction failed, the turn goes on without: {err}")));
            }
        }
    }

    fn has_failed(&self, draft: &RequestDraft) -> bool {
        let failed = self.failed.borrow();
        failed.as_ref().is_some_and(|it| it.0 == draft.session.id() && it.1 == draft.turn)
    }

    async fn by_hand(&self, ctx: &Context, it: Invocation) -> Result<String, BoxError> {
        if it.session.is_mid_turn() {
            return Err("a turn is running; compact when it has ended".into());
        }
        let span = Span::of(&it.session, 0).ok_or("there is nothing to compact yet")?;
        self.compact(ctx, &it.session, span, &it.arguments, it.cancel).await
    }
}

/// So many tokens of the window.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a number of tokens need not be exact, and lies between 0 and that number"
)]
fn share(window: u64, of: f64) -> u64 {
    (window as f64 * of) as u64
}

/// How a span and its summary are told.
fn told(session: &Session, span: &Span, summary: &str) -> String {
    format!(
        "compacted {} messages (about {} tokens) to a summary of about {}; the log of {} keeps them",
        span.messages,
        count(span.tokens),
        count(tokens(summary.len())),
        session.id()
    )
}
