//! What the console says: the conversation, news, and results for programs.
//!
//! Part of `cli`.
//! Watch for: while the program runs nobody else writes to stdout or to stderr. News is made harmless here; the
//! conversation was before.

use std::io::{Error, ErrorKind};

use super::arguments::OutputFormat;
use super::console::Console;
use super::results::{Results, TurnResult};
use super::status::{COMPLETED, FAILED, STDOUT_CLOSED};
use crate::cordis::Report;

/// What is said where stdout takes nothing, for another reason than that nobody reads it.
pub(crate) fn unwritten(err: &Error) -> String {
    format!("cannot write to stdout: {err}")
}

impl Console {
    /// Conversation on stdout, made harmless before. A reader that has gone ends the program in order.
    pub fn say(&self, text: &str) {
        let Err(err) = self.screen.say(text) else { return };
        if err.kind() == ErrorKind::BrokenPipe {
            self.is_quiet.set(true);
            return self.request_stop(STDOUT_CLOSED);
        }
        if !self.is_stopping() {
            self.error(&unwritten(&err));
        }
        self.request_stop(FAILED);
    }

    /// What is waited for, if somebody looks who can see it go again.
    pub(super) fn tell_status(&self, text: &str) {
        if self.has_looks && self.is_terminal() && !self.is_quiet.get() {
            self.screen.show_status(text);
        }
    }

    /// News on stderr, with `[nano-cordis]` before it.
    pub fn notice(&self, text: &str) {
        if !self.is_quiet.get() {
            self.screen.warn(text);
        }
    }

    /// The same for what is said even with `--quiet`.
    pub fn warn(&self, text: &str) {
        self.screen.warn(text);
    }

    /// What ends the program or a turn.
    pub fn error(&self, text: &str) {
        self.screen.note("nano-cordis: ", text);
    }

    /// What the program says to itself, where somebody wants to hear it.
    pub fn trace(&self, line: &str) {
        self.screen.note("", line);
    }

    /// What the kernel reports: failures always, hints unless `--quiet`.
    pub fn report(&self, report: &Report) {
        match report.error {
            Some(_) => self.warn(&report.to_string()),
            None => self.notice(&report.to_string()),
        }
    }

    /// Ctrl-C was pressed, and the terminal may have echoed it.
    pub fn was_interrupted(&self) {
        self.screen.was_interrupted();
    }

    /// What stdout is for.
    pub fn format(&self) -> OutputFormat {
        self.arguments.format()
    }

    /// What turns came to, for programs.
    pub(super) fn results(&self) -> &Results {
        &self.results
    }

    /// Gives a program what a turn came to; `status` is that of the turn, unless something ends the whole program.
    pub(super) fn give(&self, result: impl FnOnce(u8) -> TurnResult, status: u8) {
        let status = self.stop.borrow().unwrap_or(status);
        self.say(&self.results.give(result(status)));
    }

    /// The very end: gives a program what this run came to, if no turn did. The status is that of the process: what could
    /// not be written did not happen.
    pub fn settle(&self, status: u8) -> u8 {
        self.input.restore_modes();
        let was_stopping = self.is_stopping();
        self.say(&self.results.last(status));
        // Who asked for a stop before has been heard, or came too late.
        self.stop.borrow().filter(|_| !was_stopping && status == COMPLETED).unwrap_or(status)
    }

    /// Leaves the terminal as it was found.
    pub fn close(&self) {
        self.input.restore();
    }
}
