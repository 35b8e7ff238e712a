//! What the program is waiting for, while a turn runs and nothing else is to be seen.
//!
//! Part of `cli`. Only on a terminal that can take a line back; there the answer of the model, or a question, takes its place.

use std::{convert::Infallible, time::Duration};

use tokio::time::{Instant, interval_at};

use super::{Cli, text::line};
use crate::harness::session::event::EventBody;

/// What takes less is not told.
const PATIENCE: Duration = Duration::from_secs(2);
/// And it is told anew each time so much has passed.
const BEAT: Duration = Duration::from_millis(250);
const SIGNS: [char; 4] = ['|', '/', '-', '\\'];
/// The name of a tool may be long.
const NAME: usize = 40;

/// The last thing that began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waiting {
    since: Instant,
    what: String,
}

impl Cli {
    /// Notes what is waited for from now on.
    pub(super) fn note(&self, body: &EventBody) {
        match body {
            EventBody::StepStart { .. } => self.wait_for("the model"),
            EventBody::ToolCall { name, .. } => self.wait_for(&line(name)),
            _ => {}
        }
    }

    pub(super) fn wait_for(&self, what: &str) {
        let what = what.chars().take(NAME).collect();
        self.waiting.replace(Some(Waiting { since: Instant::now(), what }));
    }

    /// Tells it, again and again, until it is dropped.
    pub(super) async fn tell_waiting(&self) -> Infallible {
        let begun = Instant::now();
        let mut beat = interval_at(begun + PATIENCE, BEAT);
        for sign in SIGNS.into_iter().cycle() {
            beat.tick().await;
            let waiting = self.waiting.borrow().clone();
            let Some(Waiting { since, what }) = waiting else { continue };
            if since.elapsed() >= PATIENCE {
                let (so_far, all) = (since.elapsed().as_secs(), begun.elapsed().as_secs());
                let whole = if so_far == all { String::new() } else { format!(", {all} s in all") };
                self.console.tell_status(&format!("{sign} {what}, {so_far} s{whole}"));
            }
        }
        std::future::pending().await
    }
}
