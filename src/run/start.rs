//! From the list of plugins to a conversation, or to the reason why there is none.
//!
//! Part of `run`.
//! Watch for: a conversation begins only when the whole list is mounted, because the policy that is not there yet must not
//! mean "no policy". What is wrong ends the program wherever nobody could mend it.

use std::convert::Infallible;
use std::error::Error as _;
use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use super::Program;
use super::list::notices_saves;
use crate::cordis::{Loader, LoaderOptions, Mount, Service, State, loader};
use crate::harness::cli::console::Entered;
use crate::harness::cli::status::{INTERRUPTED, MISUSED};

/// A plugin that starts for so long is named.
const SLOW_START: Duration = Duration::from_secs(10);
/// A one-shot waits so many times as long, then gives up.
const PATIENCE: u32 = 3;

impl Program {
    pub(super) async fn lead(&self, options: LoaderOptions) -> Infallible {
        let loader = self
            .root
            .plugin(&loader::plugin(options), Value::Null)
            .expect("the root context is active");
        if let Err(problem) = self.started(&loader).await {
            return self.refuse(&problem).await;
        }
        let Some(loader) = self.root.get::<Loader>() else {
            return self.refuse("the loader has gone").await;
        };
        let problem = loader.problem().or_else(|| self.is_leaderless());
        match &problem {
            Some(problem) if self.must_be_whole(&loader) => return self.refuse(problem).await,
            Some(problem) => self.console.warn(problem),
            None => {}
        }
        for entry in loader.entries() {
            tracing::debug!(id = entry.id, name = entry.name, standing = ?entry.standing, "entry");
        }
        self.console.open();
        self.stand_in(&loader, problem.is_some()).await
    }

    /// Waits until every entry is at rest. Who is slow is named.
    async fn started(&self, loader: &Mount) -> Result<(), String> {
        let mut ready = pin!(loader.ready());
        for waited in 1.. {
            match timeout(SLOW_START, &mut ready).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(err)) => {
                    return Err(err.source().map_or_else(|| err.to_string(), ToString::to_string));
                }
                Err(_) if waited >= PATIENCE && self.console.arguments().is_one_shot() => {
                    let seconds = (SLOW_START * PATIENCE).as_secs();
                    return Err(format!("still starting after {seconds} s: {}", self.starting()));
                }
                Err(_) => self.console.warn(&format!("still starting: {}", self.starting())),
            }
        }
        unreachable!("the loop above has no end")
    }

    fn starting(&self) -> String {
        let fibers = self
            .root
            .fibers()
            .into_iter()
            .filter(|it| it.state == State::Loading && it.name != Loader::NAME);
        fibers.map(|it| it.name).collect::<Vec<_>>().join(", ")
    }

    /// Only a person at a terminal can mend the list, and only if a save of it is noticed.
    fn must_be_whole(&self, loader: &Loader) -> bool {
        self.console.arguments().is_one_shot()
            || !self.console.is_terminal()
            || !notices_saves(loader)
    }

    fn is_leaderless(&self) -> Option<String> {
        (!self.console.is_led()).then(|| "no entry leads a conversation; `name: cli` does".into())
    }

    async fn refuse(&self, problem: &str) -> Infallible {
        self.console.fail(MISUSED, problem);
        pending().await
    }

    /// While no plugin leads the conversation, somebody has to hear Ctrl-C and the end of input.
    async fn stand_in(&self, loader: &Loader, mut is_known: bool) -> Infallible {
        loop {
            self.console.until_led(false).await;
            drop(loader.applied().await);
            let Some(problem) = self.is_leaderless() else { continue };
            match is_known {
                _ if !notices_saves(loader) => return self.refuse(&problem).await,
                true => is_known = false,
                false => self.console.warn(&loader.problem().unwrap_or(problem)),
            }
            let entered = tokio::select! {
                // First: what is typed belongs to the plugin that leads as soon as there is one.
                biased;
                () = self.console.until_led(true) => continue,
                entered = self.console.unattended(), if self.console.is_terminal() => entered,
            };
            self.console.finish(if entered == Entered::Interrupt { INTERRUPTED } else { MISUSED });
            return pending().await;
        }
    }
}
