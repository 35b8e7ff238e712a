//! What comes in: lines at the prompt, answers to questions, and what was typed before anybody asked.
//!
//! Part of `cli`: the half of standard input that lives on the main thread.
//! Watch for: a line that is being typed outlives whoever asked for it, and the next one who asks takes it over. A
//! question only takes what came after it was shown; all else waits in the queue for the prompt.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use super::asking::Asking;
use super::commands::Names;
use super::editor::LineEditor;
use super::screen::{Screen, Stream};
use super::stdin::{Got, Stdin, Want};
use super::text;
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};

/// What came at the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entered {
    /// A line.
    Line(String),
    /// Ctrl-C; the line that was being typed is gone.
    Interrupt,
    /// The end of input.
    End,
    /// The input cannot be read: why.
    Broken(String),
}

pub(super) const END_OF_INPUT: &str = "end of input";

pub(super) struct Input {
    pub(super) screen: Rc<Screen>,
    stdin: OnceCell<Stdin>,
    is_terminal: Cell<bool>,
    /// The terminal that answers where stdin is none.
    device: OnceCell<File>,
    can_edit: bool,
    /// What the editor completes beside paths.
    names: Names,
    /// The terminal as it was found.
    cooked: Option<Termios>,
    has_edited: Cell<bool>,
    /// The number of the line that is being read, even if nobody waits for it at the moment.
    reading: Cell<Option<u64>>,
    /// Lines that came before they were asked for.
    queue: RefCell<VecDeque<String>>,
    /// What was typed of a line before a question came; it stands at the next prompt again.
    unfinished: RefCell<String>,
    /// Why nothing more comes, once that is so.
    pub(super) ended: RefCell<Option<String>>,
    /// A question to this pipe went unanswered for too long.
    pub(super) is_deaf: Cell<bool>,
}

impl Input {
    /// Where the terminal is not `capable` of more, lines are plain.
    pub(super) fn new(screen: Rc<Screen>, capable: bool, names: Names) -> Self {
        let stdin = io::stdin();
        let is_terminal = stdin.is_terminal();
        Input {
            can_edit: is_terminal && screen.out_is_terminal && capable,
            cooked: is_terminal.then(|| tcgetattr(stdin.as_fd()).ok()).flatten(),
            names,
            screen,
            stdin: OnceCell::new(),
            is_terminal: Cell::new(is_terminal),
            device: OnceCell::new(),
            has_edited: Cell::new(false),
            reading: Cell::new(None),
            queue: RefCell::default(),
            unfinished: RefCell::default(),
            ended: RefCell::default(),
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
        while self.ended.borrow().is_none() {
            let id = self.begin_line(prompt);
            match self.received(id).await {
                Got::Text(bytes) => {
                    self.screen.was_ended();
                    return Entered::Line(self.unfinished.take() + &self.decoded(bytes));
                }
                Got::Interrupt => return Entered::Interrupt,
                Got::Garbled => self.screen.warn("what was typed is not UTF-8 and was dropped"),
                Got::GivenUp | Got::Typed(_) => {}
                Got::Broken(why) if !self.is_terminal() => {
                    self.ended.replace(Some(why.clone()));
                    return Entered::Broken(why);
                }
                Got::End | Got::Broken(_) => {
                    self.has_ended(END_OF_INPUT);
                    let _closed = self.screen.end_line();
                    return Entered::End;
                }
            }
        }
        Entered::End
    }

    /// All of standard input. Questions are then put to the terminal that the person looks at, if there is one.
    pub(super) async fn everything(&self) -> Result<String, String> {
        let device = self
            .screen
            .err_is_terminal
            .then(|| File::options().read(true).open("/dev/tty").ok())
            .flatten();
        let copy = device.as_ref().and_then(|it| it.try_clone().ok());
        let has_device = copy.is_some();
        copy.map(|it| self.device.set(it));
        let id = self.stdin().want(Want::All { then: device });
        let got = self.received(id).await;
        self.is_terminal.set(has_device);
        self.has_ended("standard input was read for the prompt");
        match got {
            Got::Text(bytes) => Ok(self.decoded(bytes)),
            Got::Broken(why) => Err(why),
            _ => Ok(String::new()),
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
                Got::End | Got::Broken(_) => return Entered::End,
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
        let gone = |it: BorrowedFd| tcgetattr(it).is_err();
        let device = self.device.get();
        self.is_terminal()
            && device.map_or_else(|| gone(io::stdin().as_fd()), |it| gone(it.as_fd()))
    }

    /// Leaves the terminal as it was found.
    pub(super) fn restore(&self) {
        if self.screen.is_editing() {
            self.restore_modes();
            // What the editor has switched on beside the mode: bracketed paste.
            let _closed = Stream::Out.write("\x1b[?2004l\n");
            self.screen.set_editing(false);
        }
        let _closed = self.screen.end_line();
    }

    /// A terminal may go on after Ctrl-D; nothing else does after its end.
    pub(super) fn has_ended(&self, why: &str) {
        if !self.is_terminal() {
            self.ended.replace(Some(why.into()));
        }
    }

    /// The same for its modes alone: the editor may have begun a line in the instant in which everything ended.
    pub(super) fn restore_modes(&self) {
        if let (Some(cooked), true) = (&self.cooked, self.has_edited.get()) {
            let _gone = tcsetattr(io::stdin().as_fd(), SetArg::TCSANOW, cooked);
        }
    }

    fn queued(&self, prompt: &str) -> Option<String> {
        if self.reading.get().is_some() {
            return None;
        }
        // What a question that was given up had found typed before it.
        while let Some((_, late)) = self.stdin.get().and_then(Stdin::said) {
            self.keep_late(late);
        }
        let line = self.queue.borrow_mut().pop_front()?;
        if self.is_terminal() {
            let _closed = self.question_stream().write(&format!("{prompt}{}\n", text::line(&line)));
        }
        Some(line)
    }

    /// Takes over the line that is being read, or begins one.
    fn begin_line(&self, prompt: &str) -> u64 {
        self.show_plain(prompt);
        let id = self.reading.get().unwrap_or_else(|| {
            self.screen.set_editing(self.can_edit);
            self.has_edited.set(self.can_edit);
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
            let prompt = format!("{prompt}{}", self.unfinished.borrow());
            self.screen.show_prompt(self.question_stream(), prompt);
        }
    }

    /// The answer to request `id`. What belongs to an earlier one is put where it is not lost.
    pub(super) async fn received(&self, id: u64) -> Got {
        loop {
            match self.stdin().next().await {
                (from, got) if from == id && !matches!(got, Got::Typed(_)) => {
                    if self.reading.get() == Some(id) {
                        self.reading.set(None);
                        self.screen.set_editing(false);
                    }
                    return got;
                }
                (_, late) => self.keep_late(late),
            }
        }
    }

    fn keep_late(&self, got: Got) {
        match got {
            Got::Typed(bytes) => self.keep(bytes),
            Got::Text(line) if !self.is_terminal() => {
                self.queue.borrow_mut().push_back(self.decoded(line));
            }
            _ => {}
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

    pub(super) fn decoded(&self, bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap_or_else(|err| {
            self.screen.warn("the input is not UTF-8; each broken byte became U+FFFD");
            String::from_utf8_lossy(err.as_bytes()).into_owned()
        })
    }

    pub(super) fn stdin(&self) -> &Stdin {
        self.stdin.get_or_init(|| {
            let editor = self.can_edit.then(|| LineEditor::new(self.names.clone())).flatten().map(
                |(editor, printer)| {
                    self.screen.print_above_with(printer);
                    editor
                },
            );
            let started = Stdin::start(self.is_terminal(), self.screen.cursor.clone(), editor);
            started.expect("one thread and one pipe are to be had")
        })
    }
}
