//! The two output streams of the process, and the line that may be half-typed below them.
//!
//! Part of `cli`: the conversation goes to stdout, everything else to stderr.
//! Watch for: while the editor holds the last line of the terminal nobody may write to it directly; whole lines are handed
//! to the editor, which prints them above what is being typed.

use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, SyncSender};

use nix::sys::termios::{LocalFlags, tcgetattr};
use rustyline::ExternalPrinter;

use super::cursor::Cursor;
use super::text;

/// Lines that wait to be printed above the editor; more than this at once is not worth waiting for.
const WAITING_LINES: usize = 256;

/// Where a piece of text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

impl Stream {
    /// Writes all of it now: what was said is on the screen before anything else happens.
    pub(super) fn write(self, text: &str) -> io::Result<()> {
        match self {
            Stream::Out => put(&mut io::stdout().lock(), text),
            Stream::Err => put(&mut io::stderr().lock(), text),
        }
    }
}

fn put(stream: &mut impl Write, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes())?;
    stream.flush()
}

/// Both streams.
pub(super) struct Screen {
    /// Stdout is for the final text or for programs, so questions go to stderr.
    pub(super) is_out_reserved: bool,
    pub(super) out_is_terminal: bool,
    pub(super) err_is_terminal: bool,
    pub(super) cursor: Cursor,
    /// The prompt behind which a plain line is being typed, and its stream.
    prompt: RefCell<Option<(Stream, String)>>,
    editing: Cell<bool>,
    above: Cell<Option<SyncSender<String>>>,
}

impl Screen {
    pub(super) fn new(is_out_reserved: bool) -> Self {
        Screen {
            is_out_reserved,
            out_is_terminal: io::stdout().is_terminal(),
            err_is_terminal: io::stderr().is_terminal(),
            cursor: Cursor::default(),
            prompt: RefCell::default(),
            editing: Cell::new(false),
            above: Cell::new(None),
        }
    }

    /// Conversation text, which may end in the middle of a line.
    pub(super) fn say(&self, text: &str) -> io::Result<()> {
        if text.is_empty() || self.hand_to_editor(text, self.out_is_terminal) {
            return Ok(());
        }
        let mut place = self.cursor.hold();
        if self.prompt.take().is_some() || place.open == Some(Stream::Err) {
            place.end()?;
        }
        Stream::Out.write(text)?;
        place.open = (!text.ends_with('\n')).then_some(Stream::Out);
        Ok(())
    }

    /// News for the user.
    pub(super) fn warn(&self, text: &str) {
        self.note("[nano-cordis] ", text);
    }

    /// A whole line for stderr. Nobody can be told that stderr is gone, so failure has no consequence.
    pub(super) fn note(&self, prefix: &str, text: &str) {
        let line = format!("{prefix}{}\n", text::message(text));
        if self.hand_to_editor(&line, self.err_is_terminal) {
            return;
        }
        let mut place = self.cursor.hold();
        if self.shares_line_with_err(place.open) {
            let _closed = place.end();
        }
        let _closed = Stream::Err.write(&line);
        if let Some((on, prompt)) = &*self.prompt.borrow() {
            let _closed = on.write(prompt);
            place.open = Some(*on);
        }
    }

    /// Shows a prompt for a plain line. It stays the last thing on the screen until the line is there.
    pub(super) fn show_prompt(&self, on: Stream, prompt: String) {
        let mut place = self.cursor.hold();
        let _closed = on.write(&prompt);
        place.open = Some(on);
        drop(place);
        self.prompt.replace(Some((on, prompt)));
    }

    /// The terminal itself has gone to a new line: it echoed the newline that was typed.
    pub(super) fn was_ended(&self) {
        self.prompt.take();
        self.cursor.hold().open = None;
    }

    /// The terminal shows `^C` where the cursor was. A line that is open ends as it would have; else a new one begins.
    pub(super) fn was_interrupted(&self) {
        if self.is_editing() || self.cursor.hold().open.is_some() {
            return;
        }
        let (stream, modes) = match (self.out_is_terminal, self.err_is_terminal) {
            (true, _) => (Stream::Out, tcgetattr(io::stdout())),
            (false, true) => (Stream::Err, tcgetattr(io::stderr())),
            (false, false) => return,
        };
        let echo = LocalFlags::ECHO | LocalFlags::ECHOCTL;
        if modes.is_ok_and(|it| it.local_flags.contains(echo)) {
            let _closed = stream.write("\n");
        }
    }

    /// Ends the line that is open, if one is.
    pub(super) fn end_line(&self) -> io::Result<()> {
        self.prompt.take();
        self.cursor.hold().end()
    }

    /// From now on, and until `false`, the editor holds the last line of the terminal.
    pub(super) fn set_editing(&self, editing: bool) {
        if self.editing.replace(editing) != editing {
            self.was_ended();
        }
    }

    pub(super) fn is_editing(&self) -> bool {
        self.editing.get()
    }

    /// Says what is waited for, on a terminal that can take it back.
    pub(super) fn show_status(&self, text: &str) {
        if self.out_is_terminal && self.err_is_terminal && !self.is_editing() {
            self.cursor.show_status(text);
        }
    }

    /// Whole lines go through this printer while the editor is at work.
    ///
    /// On a thread of its own: the printer blocks when the editor has just been left, and then nothing would move again.
    pub(super) fn print_above_with(&self, mut printer: impl ExternalPrinter + Send + 'static) {
        let (tx, rx) = mpsc::sync_channel::<String>(WAITING_LINES);
        self.above.set(Some(tx));
        std::thread::spawn(move || rx.into_iter().try_for_each(|line| printer.print(line)));
    }

    fn hand_to_editor(&self, text: &str, shown_on_terminal: bool) -> bool {
        if !(shown_on_terminal && self.editing.get()) {
            return false;
        }
        let above = self.above.take();
        let taken = above.as_ref().is_some_and(|it| it.try_send(text.to_owned()).is_ok());
        self.above.set(above);
        taken
    }

    fn shares_line_with_err(&self, open: Option<Stream>) -> bool {
        match open {
            Some(Stream::Out) => self.out_is_terminal && self.err_is_terminal,
            Some(Stream::Err) => true,
            None => false,
        }
    }
}
