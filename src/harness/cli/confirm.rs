//! Asking about a change of the configuration that may be the agent's own.
//!
//! Part of `cli`: of the console, because what is asked about may be that the command line goes away.
//! Watch for: a question must not come while a line is being typed, whose end would answer it. So either the prompt waits
//! for the question, or the question for the end of the line.

use std::cell::Cell;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::answer::{Who, judge};
use super::console::{Console, OUTLIVED};
use super::text;
use crate::harness::approval::Answer;
use crate::harness::trust::Confirm;

/// Who waits for whom.
#[derive(Default)]
pub(super) struct Turns {
    /// Questions that are due, or will be when the turn has ended.
    questions: watch::Sender<usize>,
    /// Prompts at which a line is being typed.
    prompts: watch::Sender<usize>,
    /// A question is on the screen.
    is_asking: Cell<bool>,
    refused: Notify,
}

/// One of something, until this is dropped.
pub(super) struct One<'a>(&'a watch::Sender<usize>);

impl<'a> One<'a> {
    fn more(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|it| *it += 1);
        One(count)
    }
}

impl Drop for One<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|it| *it -= 1);
    }
}

impl Turns {
    /// A prompt that may be shown now.
    pub(super) async fn prompt(&self) -> One<'_> {
        none(&self.questions).await;
        One::more(&self.prompts)
    }
}

impl Console {
    /// Asks the person at the terminal, if there is one and a conversation is led: nobody else may say yes.
    pub async fn confirm(&self, asked: &Confirm) -> Option<Answer> {
        let turns = self.turns();
        let _question = One::more(&turns.questions);
        asked.is_due().await;
        if !self.is_terminal() || !self.is_led() {
            return None;
        }
        if *turns.prompts.borrow() > 0 {
            self.warn(&format!("{}; press Enter to be asked", asked.text));
            none(&turns.prompts).await;
        }
        let question = format!("{}. Apply? [y/N] ", text::line(&asked.text));
        turns.is_asking.set(true);
        let answered = tokio::select! {
            biased;
            () = turns.refused.notified() => None,
            answered = self.answer(&question, Duration::MAX) => Some(answered),
        };
        turns.is_asking.set(false);
        let Some(answered) = answered else { return Some(Answer::No) };
        let verdict = judge(answered, Who::Asked, Duration::MAX);
        if let Some(why) = verdict.why {
            self.notice(&format!("refused: {why}"));
        }
        Some(verdict.answer)
    }

    /// Ctrl-C: whether such a question was on the screen. It is answered with no.
    pub fn takes_back_question(&self) -> bool {
        let turns = self.turns();
        turns.refused.notify_waiters();
        turns.is_asking.get()
    }
}

async fn none(count: &watch::Sender<usize>) {
    let waited = count.subscribe().wait_for(|it| *it == 0).await.map(drop);
    waited.expect(OUTLIVED);
}
