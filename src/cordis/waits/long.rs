//! Waits that take long: each is reported once, by name. Nothing else happens, because a limit would change what a program
//! means.

use std::rc::Rc;
use std::time::Duration;

use super::{Target, Wait};
use crate::cordis::fiber::{Fiber, FiberId};
use crate::cordis::kernel::Kernel;
use crate::cordis::report::What;

const LONG: Duration = Duration::from_secs(5);

/// Ends when nobody waits who has not been reported.
pub(super) async fn watch(kernel: Rc<Kernel>) {
    while let Some(oldest) = kernel.oldest_wait() {
        tokio::time::sleep_until(oldest + LONG).await;
        for (fiber, target, seconds) in kernel.take_long_waits() {
            let what = What::LongWait { on: kernel.describe(target), seconds };
            kernel.report(fiber, what, None);
        }
    }
    kernel.waits.watched.set(false);
}

impl Kernel {
    fn oldest_wait(&self) -> Option<tokio::time::Instant> {
        let going = self.waits.going.borrow();
        going.values().filter(|wait| !wait.reported).map(|wait| wait.since).min()
    }

    /// Who waits, for what, and since how many seconds; oldest first.
    fn take_long_waits(&self) -> Vec<(FiberId, Target, u64)> {
        let is_long = |wait: &Wait| !wait.reported && wait.since.elapsed() >= LONG;
        let mut going = self.waits.going.borrow_mut();
        let mut long: Vec<_> = going.values_mut().filter(|wait| is_long(wait)).collect();
        long.sort_by_key(|wait| wait.since);
        let taken = long.into_iter().map(|wait| {
            wait.reported = true;
            (wait.fiber, wait.target, wait.since.elapsed().as_secs())
        });
        taken.collect()
    }

    fn describe(&self, target: Target) -> String {
        match target {
            Target::Fiber(id) => format!("`{}`", self.path(id)),
            Target::Run(run) => format!("a cleanup of `{}`", self.path(run.fiber)),
            Target::Users(id) => {
                let is_user =
                    |fiber: &&Rc<Fiber>| fiber.committed.borrow().iter().any(|it| it.id == id);
                let users: Vec<_> =
                    self.fibers.borrow().values().filter(is_user).cloned().collect();
                let paths = users.iter().map(|fiber| format!("`{}`", self.path(fiber.id)));
                paths.collect::<Vec<_>>().join(", ")
            }
        }
    }
}
