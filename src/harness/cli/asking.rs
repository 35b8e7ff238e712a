//! A question on the screen, and the line that answers it.
//!
//! Part of `cli`: what `input` does while a question is open.
//! Watch for: only what came after the question was shown counts, and however the question ends nobody waits for its line
//! any longer.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::timeout;

use super::input::{END_OF_INPUT, Input};
use super::screen::Stream;
use super::stdin::{Got, Want};

/// What came after a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// A line.
    Line(String),
    /// Nothing for so long.
    Silence,
    /// That happened before, and nobody waits a second time.
    Unread,
    /// Nobody can answer, and why: the end of input, or no way to ask.
    Nobody(String),
}

impl Input {
    /// Shows a question and waits for the line that answers it, in a pipe for so long. Dropping the future gives it up.
    pub(super) async fn answer(&self, question: &str, patience: Duration) -> Answered {
        let on = self.question_stream();
        if let Some(unanswered) = self.cannot_be_asked() {
            let shown = self.screen.cursor.ask(on, question, || Ok(true));
            let _closed = shown.and_then(|_| self.screen.end_line());
            return unanswered;
        }
        let id = self.stdin().want(Want::Answer { question: question.into(), on });
        let asking = Asking { input: self, id, echoed: Cell::new(false) };
        let patience = if self.is_terminal() { Duration::MAX } else { patience };
        match timeout(patience, self.received(id)).await {
            Ok(Got::Text(bytes)) => {
                asking.echoed.set(self.is_terminal());
                Answered::Line(self.decoded(bytes))
            }
            Ok(Got::Broken(why)) => {
                self.has_ended(&why);
                Answered::Nobody(why)
            }
            Ok(_) => {
                self.has_ended(END_OF_INPUT);
                Answered::Nobody(END_OF_INPUT.into())
            }
            Err(_) => {
                self.is_deaf.set(true);
                Answered::Silence
            }
        }
    }

    /// Why a question is shown and not waited for.
    fn cannot_be_asked(&self) -> Option<Answered> {
        if self.is_deaf.get() {
            return Some(Answered::Unread);
        }
        let is_taken = "a line is being typed there already";
        let why = self.ended.borrow().clone();
        why.or_else(|| self.screen.is_editing().then(|| is_taken.into())).map(Answered::Nobody)
    }

    /// Questions belong to the conversation, unless the person at the terminal would not see them there.
    pub(super) fn question_stream(&self) -> Stream {
        let unseen = self.is_terminal() && !self.screen.out_is_terminal;
        if unseen || self.screen.is_out_reserved { Stream::Err } else { Stream::Out }
    }
}

/// A question that is open: however it ends, nobody waits for the line any longer and the cursor is on a new one.
pub(super) struct Asking<'a> {
    pub(super) input: &'a Input,
    /// The number of the request for the line.
    pub(super) id: u64,
    /// Whether the terminal went to a new line by itself, because Enter was typed.
    pub(super) echoed: Cell<bool>,
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
