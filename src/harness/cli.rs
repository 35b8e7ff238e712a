//! The command line: prints what is logged, answers what is asked, and gives what is typed to the agent loop.
//!
//! Needs `console`, `session`, `agentLoop`; uses `persistence` and `loader` if they are there. Listens to `session/event`,
//! `assistant/delta`, `console/signal`; answers `approval/request`. The parts in its folder: `console` belongs to the process
//! (arguments, input, screen), `transcript` lays a turn out, `answer` says what a line means, `text` makes text harmless.
//! Full-size counterpart: the headless bundle and the command line application.
//! Watch for: it is a subscriber and nothing else. Nothing knows that it exists, and a web page would do the same things.

mod answer;
pub mod arguments;
pub mod console;
mod input;
mod listing;
mod screen;
mod stdin;
mod text;
mod transcript;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use self::answer::{Who, judge};
use self::console::{Console, Signal};
use self::input::Entered;
use self::transcript::{Transcript, question};
use crate::cordis::loader::Loader;
use crate::cordis::{BoxError, Context, Optional, Svc};
use crate::harness::agent_loop::{AgentLoop, AssistantDelta, RunError, TurnOutcome};
use crate::harness::approval::{Answer, ApprovalRequest};
use crate::harness::llm::Delta;
use crate::harness::persistence::Persistence;
use crate::harness::session::event::{EventBody, Reason};
use crate::harness::session::{Session, SessionEvent, Sessions};
use crate::harness::tools::Call;

/// Exit statuses.
const COMPLETED: u8 = 0;
const FAILED: u8 = 1;
const MISUSED: u8 = 2;
const LIMIT_REACHED: u8 = 3;
const INTERRUPTED: u8 = 130;

const PROMPT: &str = "you> ";
/// A second Ctrl-C within this time ends a conversation that waits for a line.
const TWICE: Duration = Duration::from_secs(2);
/// A turn that was cancelled has so long to close its log.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Config of `cli`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// How long a question waits for an answer when standard input is a pipe.
    #[serde(default = "answer_wait_ms")]
    answer_wait_ms: u64,
}

fn answer_wait_ms() -> u64 {
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
    let patience = Duration::from_millis(config.answer_wait_ms);
    let cli = Rc::new(Cli::new(console, sessions, agent_loop, persistence, patience));
    let on_event = cli.clone();
    ctx.on(move |_, it: &SessionEvent| on_event.show(&it.session, &it.event.body))?;
    let on_delta = cli.clone();
    ctx.on(move |_, it: &AssistantDelta| on_delta.show_piece(&it.session, &it.delta))?;
    let on_question = cli.clone();
    ctx.answer::<ApprovalRequest>(async move |_, call| Ok(on_question.decide(&call).await))?;
    let on_signal = cli.clone();
    ctx.on(move |_, it: &Signal| on_signal.stop(*it))?;
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
    transcript: RefCell<Transcript>,
    /// There while a turn runs; Ctrl-C pulls it.
    turn: watch::Sender<Option<CancellationToken>>,
    /// No further turn begins.
    is_leaving: Cell<bool>,
    last_interrupt: Cell<Option<Instant>>,
}

/// What this run is about.
impl Cli {
    fn new(
        console: Svc<Console>,
        sessions: Svc<Sessions>,
        agent_loop: Svc<AgentLoop>,
        persistence: Optional<Persistence>,
        patience: Duration,
    ) -> Self {
        Cli {
            console,
            sessions,
            agent_loop,
            persistence,
            patience,
            session: RefCell::default(),
            transcript: RefCell::default(),
            turn: watch::Sender::new(None),
            is_leaving: Cell::new(false),
            last_interrupt: Cell::new(None),
        }
    }

    async fn lead(self: Rc<Self>, ctx: &Context, loader: Optional<Loader>) {
        self.console.opened().await;
        if let Some(loader) = loader.get() {
            // Whatever came of it: on an agent that is not whole turns are refused, with the reason.
            drop(loader.applied().await);
        }
        if let Err(err) = self.begin(ctx).await {
            self.console.fail(MISUSED, &err.to_string());
        }
    }

    async fn begin(self: &Rc<Self>, ctx: &Context) -> Result<(), BoxError> {
        let arguments = self.console.arguments();
        let is_first = self.console.begins();
        match &arguments.repair {
            Some(id) => return self.repair(id),
            None if arguments.sessions => return self.list(),
            None => {}
        }
        let session = if is_first { self.first_session()? } else { self.sessions.create()? };
        self.session.replace(Some(session.clone()));
        // Registered after the session, so undone before it: the log is still open when a turn is closed in it.
        let leaving = self.clone();
        ctx.effect(move || async move || leaving.leave().await)?;
        let prompt = if is_first { self.console.prompt().await } else { None };
        match prompt {
            Some(text) => self.one_shot(&session, &text).await,
            None => self.converse(&session).await,
        }
        Ok(())
    }

    fn first_session(&self) -> Result<Rc<Session>, BoxError> {
        let arguments = self.console.arguments();
        let loaded = match &arguments.resume {
            Some(id) => self.saved()?.load(id)?,
            None if arguments.resume_newest => {
                let saved = self.saved()?;
                saved.load(&saved.newest()?)?
            }
            None => return Ok(self.sessions.create()?),
        };
        loaded.notes.iter().for_each(|it| self.console.notice(it));
        Ok(self.sessions.restore(&loaded.id, loaded.history)?)
    }

    fn repair(&self, id: &str) -> Result<(), BoxError> {
        let repaired = self.saved()?.repair(id)?;
        repaired.notes.iter().for_each(|it| self.console.notice(it));
        self.console.say(&listing::repair(&repaired));
        Ok(self.console.finish(COMPLETED))
    }

    fn list(&self) -> Result<(), BoxError> {
        let saved = self.saved()?;
        match saved.list()?.as_slice() {
            [] => self.console.notice(&format!("no session in {}", saved.dir().display())),
            list => self.console.say(&listing::table(list)),
        }
        Ok(self.console.finish(COMPLETED))
    }

    fn saved(&self) -> Result<Svc<Persistence>, BoxError> {
        self.persistence.get().ok_or_else(|| "sessions are not saved here: no entry provides `persistence`".into())
    }
}

/// The conversation.
impl Cli {
    async fn one_shot(&self, session: &Rc<Session>, text: &str) {
        let status = self.turn(session, text).await;
        if status != COMPLETED && !session.is_empty() {
            self.console.notice(&introduction(session));
        }
        self.console.finish(status);
    }

    async fn converse(&self, session: &Rc<Session>) {
        self.greet(session);
        while !self.is_leaving.get() {
            match self.console.line(PROMPT).await {
                Entered::Line(text) if text.trim().is_empty() => {}
                Entered::Line(text) => self.console.turn_ended(self.turn(session, &text).await),
                Entered::Interrupt => self.stop(Signal::Interrupt),
                Entered::End => return self.console.finish(self.console.conversation_status()),
            }
        }
    }

    fn greet(&self, session: &Session) {
        match self.console.is_terminal() {
            true if !self.console.arguments().quiet => self.console.say(&format!("{}\n", introduction(session))),
            _ => self.console.notice(&introduction(session)),
        }
        if let Some(earlier) = self.console.enter(session.id()) {
            self.console.notice(&format!("this is a new session; the one before it was {earlier}"));
        }
    }

    /// One turn; the exit status if it was the last one.
    async fn turn(&self, session: &Rc<Session>, text: &str) -> u8 {
        let cancel = CancellationToken::new();
        self.turn.send_replace(Some(cancel.clone()));
        let outcome = self.agent_loop.run(session, text, cancel).await;
        self.turn.send_replace(None);
        match outcome {
            Ok(outcome) => self.ended(&outcome),
            Err(err) => self.refused(&err),
        }
    }

    fn ended(&self, outcome: &TurnOutcome) -> u8 {
        if self.console.arguments().quiet && !outcome.text.is_empty() {
            self.console.say(&format!("{}\n", text::harmless(outcome.text.trim_end())));
        }
        match outcome.reason {
            Reason::Completed => COMPLETED,
            Reason::Aborted | Reason::Interrupted => {
                self.console.notice("cancelled");
                INTERRUPTED
            }
            Reason::MaxSteps => {
                self.console.notice(&format!("stopped after {} steps; say \"go on\" to continue", outcome.steps));
                LIMIT_REACHED
            }
            Reason::MaxTokens => {
                self.console.notice("the reply was cut at the token limit");
                LIMIT_REACHED
            }
            Reason::Error => {
                self.complain(outcome.error.as_ref().map_or("the turn failed", |it| &it.message));
                FAILED
            }
        }
    }

    fn refused(&self, err: &RunError) -> u8 {
        self.complain(&err.to_string());
        match err {
            RunError::Empty | RunError::NotReady(_) => MISUSED,
            RunError::Cancelled => INTERRUPTED,
            RunError::Busy | RunError::Unloaded | RunError::Log(_) => FAILED,
        }
    }

    /// In a one-shot this is the end; in a conversation it is the end of a turn.
    fn complain(&self, problem: &str) {
        match self.console.arguments().is_one_shot() {
            true => self.console.error(problem),
            false => self.console.warn(&format!("refused or failed: {problem}")),
        }
    }
}

/// What interrupts it.
impl Cli {
    fn stop(&self, signal: Signal) {
        self.is_leaving.set(self.is_leaving.get() || signal == Signal::Stop);
        let turn = self.turn.borrow().clone();
        match (turn, signal) {
            (Some(turn), _) if !turn.is_cancelled() => turn.cancel(),
            (Some(_), Signal::Interrupt) => self.console.finish(INTERRUPTED),
            (Some(_), Signal::Stop) => {}
            (None, Signal::Stop) => self.console.finish(COMPLETED),
            (None, Signal::Interrupt) => self.hint_or_leave(),
        }
    }

    fn hint_or_leave(&self) {
        let before = self.last_interrupt.replace(Some(Instant::now()));
        let is_second = before.is_some_and(|it| it.elapsed() < TWICE);
        if is_second || self.console.arguments().is_one_shot() {
            return self.console.finish(INTERRUPTED);
        }
        self.console.notice("Ctrl-C once more within 2 s ends the program; so does Ctrl-D");
    }

    /// The plugin is being unloaded: the turn, if there is one, is closed in the log first.
    async fn leave(&self) {
        self.is_leaving.set(true);
        if let Some(turn) = &*self.turn.borrow() {
            turn.cancel();
        }
        let mut turn = self.turn.subscribe();
        drop(timeout(LAST_WORDS, turn.wait_for(Option::is_none)).await);
    }
}

/// What it is told and asked.
impl Cli {
    fn show(&self, session: &Session, body: &EventBody) {
        if self.shows(session) {
            let text = self.transcript.borrow_mut().event(body);
            self.console.say(&text);
        }
    }

    fn show_piece(&self, session: &Session, delta: &Delta) {
        match delta {
            Delta::Text(piece) if self.shows(session) => {
                let text = self.transcript.borrow_mut().delta(piece);
                self.console.say(&text);
            }
            _ => {}
        }
    }

    fn shows(&self, session: &Session) -> bool {
        !self.console.arguments().quiet && self.is_ours(session)
    }

    fn is_ours(&self, session: &Session) -> bool {
        self.session.borrow().as_ref().is_some_and(|it| it.id() == session.id())
    }

    /// Asks about a call of this conversation; for others somebody else may answer.
    async fn decide(&self, call: &Call) -> Option<Answer> {
        if !call.session.as_ref().is_some_and(|it| self.is_ours(it)) {
            return None;
        }
        let question = question(&call.name, &call.arguments);
        let answered = tokio::select! {
            biased;
            () = call.cancel.cancelled() => return Some(Answer::No),
            answered = self.console.answer(&question, self.patience) => answered,
        };
        let verdict = judge(answered, self.who(), self.patience);
        if let Some(why) = verdict.why {
            self.console.notice(&format!("refused: {why}"));
        }
        if let Some(line) = verdict.next_turn {
            self.console.put_back(line);
        }
        Some(verdict.answer)
    }

    fn who(&self) -> Who {
        let is_script = !self.console.is_terminal() && !self.console.arguments().is_one_shot();
        if is_script { Who::Script } else { Who::Asked }
    }
}

fn introduction(session: &Session) -> String {
    let id = session.id();
    format!("session {id} (continue later: nano-cordis --resume {id})")
}
