//! The command line: prints what is logged, answers what is asked, and gives what is typed to the agent loop.
//!
//! Needs `console`, `session`, `agentLoop`; uses `persistence`, `loader` and `approvalMemory` if they are there. Listens to
//! `session/event`, `assistant/delta`, `console/signal`; answers `approval/request`. The parts in its folder: `console`
//! belongs to the process (with `arguments`, `input`, `stdin`, `editor`, `asking`, `confirm`, `commands`, `screen`, `cursor`,
//! `output`); `opening` and `ending` are the two ends of a conversation, `own_commands` what can be typed in it beside turns,
//! `waiting` what is seen while one runs; `printer` chooses between `transcript`, for people, and `results`, for programs;
//! `answer`, `question`, `excerpt`, `outcome`, `usage`, `markdown` and `listing` find the words, `text` makes those of others
//! harmless; `export` and `replay` are about a saved session.
//! Full-size counterpart: the headless bundle and the command line application.
//! Watch for: it is a subscriber and nothing else. Nothing knows that it exists, and a web page would do the same things.

mod answer;
pub mod arguments;
mod asking;
mod choices;
pub mod commands;
mod confirm;
pub mod console;
mod cursor;
mod editor;
mod ending;
mod excerpt;
mod export;
mod export_html;
mod export_markdown;
mod input;
pub(crate) mod listing;
mod markdown;
mod opening;
mod outcome;
pub(crate) mod output;
mod own_commands;
mod printer;
mod question;
mod replay;
pub(crate) mod results;
mod screen;
pub mod status;
mod stdin;
pub(crate) mod text;
mod transcript;
pub(crate) mod usage;
mod waiting;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::console::{Console, Entered, Signal};
use self::opening::introduction;
use self::outcome::verdict;
use self::printer::Printer;
use self::results::TurnResult;
use self::status::{COMPLETED, FAILED, MISUSED};
use self::text::seconds;
use self::waiting::Waiting;
use crate::cordis::{BoxError, Context, Loader, Optional, Svc};
use crate::harness::agent_loop::{AgentLoop, AssistantDelta, RunError};
use crate::harness::approval::ApprovalRequest;
use crate::harness::llm::Delta;
use crate::harness::persistence::Persistence;
use crate::harness::session::event::EventBody;
use crate::harness::session::{Session, SessionEvent, Sessions};

const PROMPT: &str = "you> ";

/// Config of `cli`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// How long a question waits for an answer when standard input is a pipe.
    #[serde(default = "default_answer_wait_ms")]
    answer_wait_ms: u64,
}

fn default_answer_wait_ms() -> u64 {
    10_000
}

/// The plugin. The conversation runs in a task of its own: a body that waited for lines would never be active.
pub async fn apply(
    ctx: Context,
    config: Config,
    console: Svc<Console>,
    sessions: Svc<Sessions>,
    agent_loop: Svc<AgentLoop>,
    persistence: Optional<Persistence>,
    loader: Optional<Loader>,
) -> Result<(), BoxError> {
    console.lead()?;
    let printer = RefCell::new(Printer::new(&console));
    let cli = Rc::new(Cli {
        console,
        sessions,
        agent_loop,
        persistence,
        patience: Duration::from_millis(config.answer_wait_ms),
        session: RefCell::default(),
        printer,
        turn: watch::Sender::new(None),
        is_leaving: Cell::new(false),
        last_interrupt: Cell::new(None),
        model: Rc::default(),
        waiting: RefCell::default(),
    });
    cli.subscribe(&ctx)?;
    cli.add_commands(&ctx)?;
    ctx.spawn("conversation", async move |ctx| cli.lead(&ctx, loader).await)?;
    Ok(())
}

struct Cli {
    console: Svc<Console>,
    sessions: Svc<Sessions>,
    agent_loop: Svc<AgentLoop>,
    persistence: Optional<Persistence>,
    patience: Duration,
    session: RefCell<Option<Rc<Session>>>,
    printer: RefCell<Printer>,
    /// There while a turn runs; Ctrl-C pulls it.
    turn: watch::Sender<Option<CancellationToken>>,
    /// This plugin is being unloaded: no further turn begins.
    is_leaving: Cell<bool>,
    last_interrupt: Cell<Option<Instant>>,
    /// The model that the user asked for in this conversation.
    model: Rc<RefCell<Option<String>>>,
    /// What a turn waits for, for people who do.
    waiting: RefCell<Option<Waiting>>,
}

/// What it does: one turn, or one for each line.
impl Cli {
    async fn lead(self: Rc<Self>, ctx: &Context, loader: Optional<Loader>) {
        self.console.opened().await;
        if let Some(loader) = loader.get() {
            // Whatever came of it: on an agent that is not whole turns are refused, with the reason.
            drop(loader.applied().await);
        }
        if let Err(err) = self.clone().begin(ctx).await {
            self.console.fail(MISUSED, &err.to_string());
        }
    }

    async fn begin(self: Rc<Self>, ctx: &Context) -> Result<(), BoxError> {
        let is_first = self.console.begins();
        let Some(session) = self.open(is_first)? else { return Ok(()) };
        self.lead_in(ctx, &session)?;
        let prompt = if is_first { self.console.prompt().await? } else { None };
        match prompt {
            Some(text) => self.one_shot(&session, &text).await,
            None => self.converse(&session).await,
        }
        Ok(())
    }

    fn lead_in(self: &Rc<Self>, ctx: &Context, session: &Rc<Session>) -> Result<(), BoxError> {
        self.session.replace(Some(session.clone()));
        let cwd = std::env::current_dir().unwrap_or_default();
        self.console.say(&self.printer.borrow().session(session.id(), &cwd));
        // Registered after the session, so undone before it: the log is still open when a turn is closed in it.
        let leaving = self.clone();
        ctx.effect(move || async move || leaving.leave().await)?;
        Ok(())
    }

    async fn one_shot(&self, session: &Rc<Session>, text: &str) {
        let status = self.turn(session, text).await;
        if status != COMPLETED && !session.is_empty() {
            self.console.notice(&introduction(session));
        }
        self.console.finish(status);
    }

    async fn converse(&self, session: &Rc<Session>) {
        self.greet(session);
        while !self.is_leaving.get() && !self.console.is_ending() {
            match self.console.line(PROMPT).await {
                Entered::Line(text) if text.trim().is_empty() => {}
                Entered::Line(text) => self.entered(&text).await,
                Entered::Interrupt => self.stop(Signal::Interrupt),
                Entered::End => return self.console.finish(self.console.conversation_status()),
                Entered::Broken(why) => return self.console.fail(MISUSED, &why),
            }
        }
        if self.console.is_stopping() {
            self.console.finish(COMPLETED);
        }
    }

    /// One turn; the exit status if it was the last one.
    // Differs: the full-size command line takes text while a turn runs and hands it to the agent between two steps. Here
    // it waits for the prompt, where the user sees it once more before it is sent.
    async fn turn(&self, session: &Rc<Session>, text: &str) -> u8 {
        let cancel = CancellationToken::new();
        self.turn.send_replace(Some(cancel.clone()));
        self.last_interrupt.set(None);
        self.console.results().begin();
        let outcome = tokio::select! {
            biased;
            outcome = self.agent_loop.run(session, text, cancel) => outcome,
            never = self.tell_waiting() => match never {},
        };
        self.turn.send_replace(None);
        if self.is_leaving.get() && matches!(outcome, Err(RunError::Cancelled | RunError::Unloaded))
        {
            // A change is applied first, and this plugin goes with it. The one that follows takes the line.
            self.console.put_back(text.to_owned());
            return COMPLETED;
        }
        let printer = self.printer.borrow();
        if let Ok(outcome) = &outcome {
            self.console.say(&printer.end(&outcome.text));
        }
        let (status, message) = verdict(&outcome);
        if let Some(message) = message {
            self.explain(status, &message);
        }
        let result = |status| TurnResult::of(session.id(), &outcome, printer.usage(), status);
        self.console.give(result, status);
        status
    }

    /// A failure ends a one-shot; in a conversation it is the end of a turn.
    fn explain(&self, status: u8, message: &str) {
        match status {
            FAILED | MISUSED if self.console.arguments().is_one_shot() => {
                self.console.error(message);
            }
            FAILED => self.console.warn(&format!("the turn failed: {message}")),
            MISUSED => self.console.warn(&format!("refused: {message}")),
            _ => self.console.notice(message),
        }
    }
}

/// What it hears.
impl Cli {
    fn subscribe(self: &Rc<Self>, ctx: &Context) -> Result<(), BoxError> {
        let cli = self.clone();
        ctx.on(move |_, it: &SessionEvent| cli.show(it))?;
        let cli = self.clone();
        ctx.on(move |_, it: &AssistantDelta| cli.show_piece(it))?;
        let cli = self.clone();
        ctx.answer::<ApprovalRequest>(async move |ctx, call| Ok(cli.decide(&ctx, &call).await))?;
        let cli = self.clone();
        ctx.on(move |_, it: &Signal| cli.stop(*it))?;
        Ok(())
    }

    // Differs: the full-size headless bundle prints the last text and nothing else, as `--quiet` does here.
    fn show(&self, SessionEvent { session, event }: &SessionEvent) {
        let (id, kind) = (session.id(), event.body.kind());
        tracing::debug!(session = id, seq = event.seq, kind, "logged");
        if !self.is_ours(session) {
            return;
        }
        self.note(&event.body);
        if let EventBody::TurnStart { .. } = event.body {
            self.console.results().enter(id);
        }
        let text = self.printer.borrow_mut().event(event);
        self.console.say(&text);
        if self.console.is_stopping() {
            // The reader may just have gone: nothing more is begun for it.
            self.turn.borrow().iter().for_each(CancellationToken::cancel);
        }
    }

    fn show_piece(&self, AssistantDelta { session, delta }: &AssistantDelta) {
        if !self.is_ours(session) {
            return;
        }
        let text = self.printer.borrow_mut().delta(delta);
        self.console.say(&text);
        if let Delta::Retry { why, after, attempt, of } = delta {
            let after = seconds(*after);
            self.console.notice(&format!("{why}; retry {attempt} of {of} in {after}"));
        }
    }

    fn is_ours(&self, session: &Session) -> bool {
        self.session.borrow().as_ref().is_some_and(|it| it.id() == session.id())
    }
}
