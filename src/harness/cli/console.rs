//! The console of this process: what it was started with, its input, its screen, and its end.
//!
//! Provided as `console` by the root context, before the loader is mounted. Whoever runs the program emits `console/signal`.
//! Full-size counterpart: none; there the terminal belongs to the application and not to a plugin.
//! Watch for: all of this outlives the `cli` plugin. A restarted one takes over the line that is being typed, and the
//! prompt of the command line is handed out once.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::watch;

use super::arguments::{Arguments, OutputFormat, Prompt};
pub use super::asking::Answered;
use super::commands::Commands;
use super::confirm::Turns;
pub use super::input::Entered;
use super::input::Input;
use super::results::Results;
use super::screen::Screen;
use super::status::{COMPLETED, FAILED, HANGUP, LIMIT_REACHED, MISUSED};
use crate::cordis::{Emit, Error, Service, Svc, Undo};

/// Why waiting for a change in the console cannot fail.
pub(super) const OUTLIVED: &str =
    "the sender lives as long as the console, and whoever waits borrows it";

/// Service `console`.
pub struct Console {
    pub(super) arguments: Arguments,
    has_begun: Cell<bool>,
    /// News is left out: the user wants none, or nobody listens any more.
    pub(super) is_quiet: Cell<bool>,
    pub(super) screen: Rc<Screen>,
    pub(super) input: Input,
    pub(super) commands: Commands,
    /// Whether the screen shows more than letters.
    pub(super) has_looks: bool,
    turns: Turns,
    is_open: watch::Sender<bool>,
    /// How many plugins lead a conversation here.
    leaders: watch::Sender<usize>,
    /// The session that the newest of them works on.
    session: RefCell<Option<String>>,
    failed: Cell<u8>,
    pub(super) results: Results,
    is_hurried: Cell<bool>,
    pub(super) stop: watch::Sender<Option<u8>>,
    end: watch::Sender<Option<u8>>,
}

impl Service for Console {
    const NAME: &'static str = "console";
}

/// `console/signal`: somebody wants this to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C: what is going on now, not the program.
    Interrupt,
    /// The program. Whoever leads the conversation ends what is open, then calls [`Console::finish`]; what status it
    /// gives does not matter any more.
    Stop,
}

impl Emit for Signal {
    const NAME: &'static str = "console/signal";
}

impl Svc<Console> {
    /// The caller leads the conversation from now on, as long as it runs.
    pub fn lead(&self) -> Result<Undo, Error> {
        let console = self.shared();
        self.ctx().effect(|| {
            console.leaders.send_modify(|it| *it += 1);
            move || console.leaders.send_modify(|it| *it -= 1)
        })
    }
}

/// The run.
impl Console {
    /// The console of this process. `env` reads a variable of its environment. Without a `TERM`, or with one that cannot do
    /// much, lines are plain, and with a `NO_COLOR` that is not empty replies are.
    pub fn new(arguments: Arguments, env: impl Fn(&str) -> Option<String>) -> Self {
        let term =
            env("TERM").filter(|it| !matches!(it.as_str(), "" | "dumb" | "cons25" | "emacs"));
        let is_colourless = env("NO_COLOR").is_some_and(|it| !it.is_empty());
        let (format, is_conversation) = (arguments.format(), !arguments.is_one_shot());
        let is_for_people = format == OutputFormat::Text;
        let screen = Rc::new(Screen::new(arguments.quiet || !is_for_people));
        let commands = Commands::default();
        Console {
            // The editor would write to stdout.
            input: Input::new(screen.clone(), term.is_some() && is_for_people, commands.names()),
            results: Results::new(format, is_conversation),
            has_looks: term.is_some() && !is_colourless && screen.out_is_terminal,
            screen,
            commands,
            turns: Turns::default(),
            is_quiet: Cell::new(arguments.quiet),
            arguments,
            has_begun: Cell::new(false),
            is_open: watch::Sender::new(false),
            leaders: watch::Sender::new(0),
            session: RefCell::default(),
            failed: Cell::new(COMPLETED),
            is_hurried: Cell::new(false),
            stop: watch::Sender::new(None),
            end: watch::Sender::new(None),
        }
    }

    /// What the program was started with.
    pub fn arguments(&self) -> &Arguments {
        &self.arguments
    }

    /// The whole list of plugins is mounted and found fit: conversations may begin.
    pub fn open(&self) {
        self.is_open.send_replace(true);
    }

    /// Resolves when [`open`](Self::open) was called. Until then a guard may still be on its way.
    pub async fn opened(&self) {
        let waited = self.is_open.subscribe().wait_for(|it| *it).await.map(drop);
        waited.expect(OUTLIVED);
    }

    /// True once: a prompt and a session to resume are used by the first who asks.
    pub fn begins(&self) -> bool {
        !self.has_begun.replace(true)
    }

    /// Remembers the session that the conversation is in now, and gives the one before it.
    pub fn enter(&self, session: &str) -> Option<String> {
        self.session.replace(Some(session.into()))
    }

    /// Whether a plugin leads the conversation.
    pub fn is_led(&self) -> bool {
        *self.leaders.borrow() > 0
    }

    /// Resolves when [`is_led`](Self::is_led) says this.
    pub async fn until_led(&self, is_led: bool) {
        let waited = self.leaders.subscribe().wait_for(|it| (*it > 0) == is_led).await.map(drop);
        waited.expect(OUTLIVED);
    }

    /// Ends the program with this status; the first one counts.
    pub fn finish(&self, status: u8) {
        self.end.send_if_modified(|end| end.is_none() && end.replace(status).is_none());
    }

    /// Ends the program with a message.
    pub fn fail(&self, status: u8, text: &str) {
        self.fail_with("usage", status, text);
    }

    /// The same, with a word for programs.
    pub fn fail_with(&self, code: &str, status: u8, text: &str) {
        if self.end.borrow().is_none() {
            self.results.failed(code, text);
            self.error(text);
        }
        self.finish(status);
    }

    /// Somebody wants the end at once: nothing is given time any more.
    pub fn hurry(&self) {
        self.is_hurried.set(true);
    }

    /// Whether somebody does.
    pub fn is_hurried(&self) -> bool {
        self.is_hurried.get()
    }

    /// Resolves when the program has ended for all who use the console.
    pub async fn finished(&self) -> u8 {
        first(&self.end).await
    }

    /// Asks for an orderly stop with this status.
    pub fn request_stop(&self, status: u8) {
        self.stop.send_if_modified(|stop| stop.is_none() && stop.replace(status).is_none());
    }

    /// Whether such a stop was asked for.
    pub fn is_stopping(&self) -> bool {
        self.stop.borrow().is_some()
    }

    /// Whether the program ends, in whatever way.
    pub fn is_ending(&self) -> bool {
        self.is_stopping() || self.end.borrow().is_some()
    }

    /// Resolves when such a stop was asked for.
    pub async fn stop_requested(&self) -> u8 {
        first(&self.stop).await
    }

    /// Remembers how a turn of a conversation went; a failure outweighs a limit, and a cancelled turn is neither.
    pub fn turn_ended(&self, status: u8) {
        match status {
            FAILED | MISUSED => self.failed.set(FAILED),
            LIMIT_REACHED if self.failed.get() == COMPLETED => self.failed.set(LIMIT_REACHED),
            _ => {}
        }
    }

    /// The status of a conversation that was left at its end: a person saw what failed, a script has to be told.
    pub fn conversation_status(&self) -> u8 {
        if self.input.is_terminal() { COMPLETED } else { self.failed.get() }
    }
}

/// Input.
impl Console {
    /// Whether a person at a terminal answers.
    pub fn is_terminal(&self) -> bool {
        self.input.is_terminal()
    }

    /// The next line. If one is being typed already, whoever asked for it, it is that one.
    pub async fn line(&self, prompt: &str) -> Entered {
        let _typing = self.turns.prompt().await;
        let entered = self.input.line(prompt).await;
        if entered == Entered::End && self.input.has_lost_terminal() {
            self.request_stop(HANGUP);
        }
        entered
    }

    /// Shows a question and waits for the line that answers it, in a pipe for so long. Dropping the future gives it up.
    pub async fn answer(&self, question: &str, patience: Duration) -> Answered {
        let answered = self.input.answer(question, patience).await;
        if matches!(answered, Answered::Nobody(_)) && self.input.has_lost_terminal() {
            // No answer to a question: everything stops, and whoever asked gives this up.
            self.request_stop(HANGUP);
            return pending().await;
        }
        answered
    }

    /// Whose turn it is, a prompt's or a question's.
    pub(super) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Puts a line back: it is the next one.
    pub fn put_back(&self, line: String) {
        self.input.put_back(line);
    }

    /// The prompt of a one-shot; an error says why it cannot be read.
    pub async fn prompt(&self) -> Result<Option<String>, String> {
        match self.arguments.prompt() {
            None => Ok(None),
            Some(Prompt::Text(text)) => Ok(Some(text)),
            Some(Prompt::Stdin) => self.input.everything().await.map(Some),
        }
    }

    /// Waits while nobody leads: Ctrl-C and the end of input are heard, lines are kept.
    pub async fn unattended(&self) -> Entered {
        self.input.unattended().await
    }
}

async fn first(status: &watch::Sender<Option<u8>>) -> u8 {
    let mut changes = status.subscribe();
    let found = changes.wait_for(Option::is_some).await.map(|it| *it);
    found.ok().flatten().expect(OUTLIVED)
}
