//! `--check`: everything is mounted, and what came of it is printed. There is no session and no request.
//!
//! Part of `run`.

use std::convert::Infallible;
use std::future::pending;

use super::Program;
use crate::cordis::loader::Standing;
use crate::cordis::{Loader, State};
use crate::harness::cli::listing::entries;
use crate::harness::cli::status::{COMPLETED, MISUSED};
use crate::harness::env::Checking;

impl Program {
    /// Prints every entry; the status is 0 if all run that are not left out.
    pub(super) async fn check(&self, loader: &Loader) -> Infallible {
        let all = loader.entries();
        let table = entries(&all);
        self.reports.release(Some(&table));
        self.root.emit(&Checking);
        if let Some(problem) = self.is_leaderless() {
            self.console.warn(&problem);
        }
        self.console.say(&table);
        let runs = |it| matches!(it, Standing::Disabled | Standing::Mounted(State::Active));
        let is_whole = all.iter().all(|it| runs(it.standing));
        self.console.finish(if is_whole { COMPLETED } else { MISUSED });
        pending().await
    }
}
