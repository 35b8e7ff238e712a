//! What comes in: lines at the prompt, answers to questions, and what was typed before anybody asked.
//!
//! Part of `cli`: the half of standard input that lives on the main thread.
//! Watch for: a line that is being typed outlives whoever asked for it, and the next one who asks takes it over. A
//! question only takes what came after it was shown; all else waits in the queue for the prompt.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::Duration;

use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use tokio::time::timeout;

use super::screen::{Screen, Stream};
use super::stdin::{Got, Stdin, Want, editor};

/// What came at the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entered {
    /// A line.
    Line(String),
    /// Ctrl-C; the line that was being typed is gone.
    Interrupt,
    /// The end of input.
    End,
}

/// What came after a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// A line.
    Line(String),
    /// Nothing for so long.
    Silence,
    /// That happened before, and nobody waits a second time.
    Unread,
    /// The end of input, or no way to ask.
    End,
}

pub(super) struct Input {
    screen: Rc<Screen>,
    stdin: OnceCell<Stdin>,
    is_terminal: Cell<bool>,
    can_edit: bool,
    /// The terminal as it was found.
    cooked: Option<Termios>,
    /// The number of the line that is being read, even if nobody waits for it at the moment.
    reading: Cell<Option<u64>>,
    /// Lines that came before they were asked for.
    queue: RefCell<VecDeque<String>>,
    /// What was typed of a line before a question came; it stands at the next prompt again.
    unfinished: RefCell<String>,
    is_at_end: Cell<bool>,
    /// A question to this pipe went unanswered for too long.
    is_deaf: Cell<bool>,
}

impl Input {
    /// Without a `term` that an editor can work with, lines are plain.
    pub(super) fn new(screen: Rc<Screen>, term: Option<&str>) -> Self {
        let stdin = io::stdin();
        let is_terminal = stdin.is_terminal();
        let capable = term.is_some_and(|it| !matches!(it, "" | "dumb" | "cons25" | "emacs"));
        Input {
            can_edit: is_terminal && screen.out_is_terminal && capable,
            cooked: is_terminal.then(|| tcgetattr(stdin.as_fd()).ok()).flatten(),
            screen,
            stdin: OnceCell::new(),
            is_terminal: Cell::new(is_terminal),
            reading: Cell::new(None),
            queue: RefCell::default(),
            unfinished: RefCell::default(),
            is_at_end: Cell::new(false),
            is_deaf: Cell::new(false),
        }
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.is_terminal.get()
    }

    /// The next line. If one is being typed already it is that one, and its prompt stays.
    pub(super) async fn line(&self, prompt: &str) -> Entered {
        if let Some(line) = self.queued(prompt) {
            return Entered::Line(line);
        }
        while !self.is_at_end.get() {
            let id = self.begin_line(prompt);
            match self.received(id).await {
                Got::Text(bytes) => {
                    self.screen.was_ended();
                    return Entered::Line(self.unfinished.take() + &self.decoded(bytes));
                }
                Got::Interrupt => return Entered::Interrupt,
                Got::Garbled => self.screen.warn("what was typed is not UTF-8 and was dropped"),
                Got::GivenUp | Got::Typed(_) => {}
                Got::End => {
                    self.is_at_end.set(!self.is_terminal());
                    let _closed = self.screen.end_line();
                    return Entered::End;
                }
            }
        }
        Entered::End
    }

    /// Shows a question and waits for the line that answers it, in a pipe for so long. Dropping the future gives it up.
    pub(super) async fn answer(&self, question: &str, patience: Duration) -> Answered {
        let on = self.question_stream();
        let _closed = self.screen.end_line();
        self.screen.left_open(on);
        if self.is_deaf.get() || self.is_at_end.get() || self.screen.is_editing() {
            let _closed = on.write(question).and_then(|()| self.screen.end_line());
            return if self.is_deaf.get() { Answered::Unread } else { Answered::End };
        }
        let id = self.stdin().want(Want::Answer { question: question.into(), on });
        let asking = Asking { input: self, id, echoed: Cell::new(false) };
        let patience = if self.is_terminal() { Duration::MAX } else { patience };
        match timeout(patience, self.received(id)).await {
            Ok(Got::Text(bytes)) => {
                asking.echoed.set(self.is_terminal());
                Answered::Line(self.decoded(bytes))
            }
            Ok(_) => {
                self.is_at_end.set(!self.is_terminal());
                Answered::End
            }
            Err(_) => {
                self.is_deaf.set(true);
                Answered::Silence
            }
        }
    }

    /// All of standard input. Questions are then put to the terminal that the person looks at, if there is one.
    pub(super) async fn everything(&self) -> String {
        let device = self
            .screen
            .err_is_terminal
            .then(|| File::options().read(true).open("/dev/tty").ok())
            .flatten();
        let has_device = device.is_some();
        let id = self.stdin().want(Want::All { then: device });
        let got = self.received(id).await;
        self.is_terminal.set(has_device);
        self.is_at_end.set(!has_device);
        match got {
            Got::Text(bytes) => self.decoded(bytes),
            _ => String::new(),
        }
    }

    /// Waits while no plugin asks for lines: Ctrl-C and the end of input are heard, lines are kept.
    pub(super) async fn unattended(&self) -> Entered {
        loop {
            let id = self.reading.get().unwrap_or_else(|| self.stdin().want(Want::Line));
            let _asking = Asking { input: self, id, echoed: Cell::new(true) };
            match self.received(id).await {
                Got::Text(bytes) => self.queue.borrow_mut().push_back(self.decoded(bytes)),
                Got::Interrupt => return Entered::Interrupt,
                Got::End => return Entered::End,
                _ => {}
            }
        }
    }

    /// Puts a line back: it is the next one.
    pub(super) fn put_back(&self, line: String) {
        self.queue.borrow_mut().push_front(line);
    }

    /// Whether the end of input means that the terminal has gone. The signal that says so may come a moment later.
    pub(super) fn has_lost_terminal(&self) -> bool {
        self.is_terminal() && tcgetattr(io::stdin()).is_err()
    }

    /// Leaves the terminal as it was found.
    pub(super) fn restore(&self) {
        if let (Some(cooked), true) = (&self.cooked, self.screen.is_editing()) {
            let _gone = tcsetattr(io::stdin().as_fd(), SetArg::TCSANOW, cooked);
            // What the editor has switched on beside the mode: bracketed paste.
            let _closed = Stream::Out.write("\x1b[?2004l\n");
            self.screen.set_editing(false);
        }
        let _closed = self.screen.end_line();
    }

    fn queued(&self, prompt: &str) -> Option<String> {
        if self.reading.get().is_some() {
            return None;
        }
        let line = self.queue.borrow_mut().pop_front()?;
        if self.is_terminal() {
            let _closed = self.question_stream().write(&format!("{prompt}{line}\n"));
        }
        Some(line)
    }

    /// Takes over the line that is being read, or begins one.
    fn begin_line(&self, prompt: &str) -> u64 {
        self.show_plain(prompt);
        let id = self.reading.get().unwrap_or_else(|| {
            self.screen.set_editing(self.can_edit);
            let typed = self.can_edit.then(|| self.unfinished.take());
            let edit = typed.map(|typed| Want::Edit { prompt: prompt.into(), typed });
            self.stdin().want(edit.unwrap_or(Want::Line))
        });
        self.reading.set(Some(id));
        id
    }

    /// Where nothing can be edited the prompt is plain text, and a pipe gets none.
    fn show_plain(&self, prompt: &str) {
        if self.is_terminal() && !self.can_edit {
            let _closed =
                self.question_stream().write(&format!("{prompt}{}", self.unfinished.borrow()));
            self.screen.left_open(self.question_stream());
        }
    }

    /// The answer to request `id`. What belongs to an earlier one is put where it is not lost.
    async fn received(&self, id: u64) -> Got {
        loop {
            match self.stdin().next().await {
                (_, Got::Typed(bytes)) => self.keep(bytes),
                (from, got) if from == id => {
                    if self.reading.get() == Some(id) {
                        self.reading.set(None);
                        self.screen.set_editing(false);
                    }
                    return got;
                }
                (_, Got::Text(late)) if !self.is_terminal() => {
                    self.queue.borrow_mut().push_back(self.decoded(late));
                }
                _ => {}
            }
        }
    }

    /// Typed before a question: whole lines are turns to come, the rest waits for the prompt.
    fn keep(&self, bytes: Vec<u8>) {
        let text = self.decoded(bytes).replace('\r', "\n");
        let mut lines: Vec<_> = text.split('\n').collect();
        let rest = lines.pop().unwrap_or_default();
        let turns = lines.into_iter().filter(|it| !it.trim().is_empty()).map(str::to_owned);
        self.queue.borrow_mut().extend(turns);
        self.unfinished.borrow_mut().extend(rest.chars().filter(|it| !it.is_control()));
    }

    fn decoded(&self, bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap_or_else(|err| {
            self.screen.warn("the input is not UTF-8; each broken byte became U+FFFD");
            String::from_utf8_lossy(err.as_bytes()).into_owned()
        })
    }

    /// Questions belong to the conversation, unless the person at the terminal would not see them there.
    fn question_stream(&self) -> Stream {
        let unseen = self.is_terminal() && !self.screen.out_is_terminal;
        if unseen || self.screen.is_quiet { Stream::Err } else { Stream::Out }
    }

    fn stdin(&self) -> &Stdin {
        self.stdin.get_or_init(|| {
            let editor = self.can_edit.then(editor).flatten().map(|(editor, printer)| {
                self.screen.print_above_with(printer);
                editor
            });
            let started = Stdin::start(self.is_terminal(), editor);
            started.expect("one thread and one pipe are to be had")
        })
    }
}

/// A question that is open: however it ends, nobody waits for the line any longer and the cursor is on a new one.
struct Asking<'a> {
    input: &'a Input,
    /// The number of the request for the line.
    id: u64,
    /// Whether the terminal went to a new line by itself, because Enter was typed.
    echoed: Cell<bool>,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.input.stdin().give_up(self.id);
        if self.echoed.get() {
            self.input.screen.was_ended();
        } else {
            let _closed = self.input.screen.end_line();
        }
    }
}
