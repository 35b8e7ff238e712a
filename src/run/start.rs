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
use super::list::{self, notices_saves};
use crate::cordis::{Applied, Loader, LoaderOptions, loader, plain_name};
use crate::harness::cli::console::Entered;
use crate::harness::cli::status::{INTERRUPTED, MISUSED};

/// A plugin that starts for so long is named.
const SLOW_START: Duration = Duration::from_secs(10);
/// A one-shot waits so much longer, then gives up.
const LAST_CHANCE: Duration = Duration::from_secs(20);

impl Program {
    pub(super) async fn lead(&self, options: LoaderOptions) -> Infallible {
        let mount = self.root.plugin(&loader::plugin(options), Value::Null);
        if let Err(err) = mount.expect("the root context is active").ready().await {
            let cause = err.source().map_or_else(|| err.to_string(), ToString::to_string);
            return self.refuse(&cause).await;
        }
        let loader = self.root.get::<Loader>().expect("an active loader provides itself");
        let is_at_rest = self.has_come_to_rest(&loader).await;
        if self.console.arguments().check {
            return self.check(&loader).await;
        }
        if !is_at_rest {
            let problem = problem_of(&loader);
            self.reports.release(Some(&problem));
            return self.refuse(&problem).await;
        }
        let problem = loader.problem().or_else(|| self.is_leaderless());
        self.reports.release(problem.as_deref());
        match &problem {
            Some(problem) if self.must_be_whole(&loader) => return self.refuse(problem).await,
            Some(problem) => self.console.warn(problem),
            None => {}
        }
        for entry in loader.entries() {
            tracing::debug!(id = entry.id, name = entry.name, standing = ?entry.standing, "entry");
        }
        let saved = self.root.on(|_, Applied { file, changed, .. }: &Applied| {
            tracing::debug!(file, ?changed, "applied");
        });
        saved.expect("the root context is active");
        self.console.open();
        self.stand_in(&loader, problem.is_some()).await
    }

    /// Waits until no entry is starting. Who is slow is named; a one-shot waits only so long.
    async fn has_come_to_rest(&self, loader: &Loader) -> bool {
        let mut at_rest = pin!(loader.applied());
        if timeout(SLOW_START, &mut at_rest).await.is_ok() {
            return true;
        }
        self.console.warn(&problem_of(loader));
        if self.console.arguments().is_one_shot() {
            return timeout(LAST_CHANCE, at_rest).await.is_ok();
        }
        drop(at_rest.await);
        true
    }

    /// Only a person at a terminal can mend the list, and only if a save of it is noticed.
    fn must_be_whole(&self, loader: &Loader) -> bool {
        self.console.arguments().is_one_shot()
            || !self.console.is_terminal()
            || !notices_saves(loader)
    }

    pub(super) fn is_leaderless(&self) -> Option<String> {
        let file = list::file(self.console.arguments());
        let whose = file.map(|it| format!("{}: ", it.display())).unwrap_or_default();
        let problem = format!("{whose}no entry leads a conversation; `name: cli` does");
        (!self.console.is_led()).then_some(problem)
    }

    async fn refuse(&self, problem: &str) -> Infallible {
        self.console.fail_with("configuration", MISUSED, problem);
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
                // What it waits for was said when the save was applied.
                false if leader_waits(loader) => {}
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

fn leader_waits(loader: &Loader) -> bool {
    let is_leader = |name: &str| plain_name(name) == "cli";
    loader.entries().iter().any(|it| is_leader(&it.name) && !it.missing.is_empty())
}

fn problem_of(loader: &Loader) -> String {
    loader.problem().unwrap_or_else(|| "the list of plugins is not at rest".into())
}
