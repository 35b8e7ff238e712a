//! What ends a turn, or the conversation: Ctrl-C, a signal, and the end of this plugin.
//!
//! Part of `cli`.
//! Watch for: nothing is cut off. A turn is cancelled and then closes what it has opened in the log.

use std::time::Duration;

use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::Cli;
use super::console::Signal;
use super::status::{COMPLETED, INTERRUPTED};

/// A second Ctrl-C within this time ends a conversation that waits for a line.
const TWICE: Duration = Duration::from_secs(2);
/// A turn that was cancelled has so long to close its log.
const LAST_WORDS: Duration = Duration::from_secs(5);

impl Cli {
    pub(super) fn stop(&self, signal: Signal) {
        let turn = self.turn.borrow().clone();
        match (turn, signal) {
            (Some(turn), _) if !turn.is_cancelled() => turn.cancel(),
            (Some(_), Signal::Interrupt) => {
                self.console.hurry();
                self.console.finish(INTERRUPTED);
            }
            (Some(_), Signal::Stop) => {}
            (None, Signal::Stop) => self.console.finish(COMPLETED),
            (None, Signal::Interrupt) => self.hint_or_end(),
        }
    }

    fn hint_or_end(&self) {
        let before = self.last_interrupt.replace(Some(Instant::now()));
        let is_second = before.is_some_and(|it| it.elapsed() < TWICE);
        if is_second || self.console.arguments().is_one_shot() {
            return self.console.finish(INTERRUPTED);
        }
        self.console.notice("Ctrl-C once more within 2 s ends the program; so does Ctrl-D");
    }

    /// The plugin is being unloaded: a turn that runs is closed in the log first.
    pub(super) async fn leave(&self) {
        self.is_leaving.set(true);
        let turn = self.turn.borrow().clone();
        turn.inspect(CancellationToken::cancel);
        let mut turn = self.turn.subscribe();
        drop(timeout(LAST_WORDS, turn.wait_for(Option::is_none)).await);
    }
}
