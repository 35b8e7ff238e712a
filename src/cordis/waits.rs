//! Who may wait for whom, so that nobody waits for ever.
//!
//! The kernel itself waits in three places: a parent for its children, a provider for those who use its services, and an
//! unload for an undo in flight. These waits form no circle by themselves. Code of plugins can close one: a body that
//! awaits its own dispose, two cleanups that await each other. So before plugin code waits, the graph is asked whether
//! what it wants to wait for is (or may come to be) waiting for it; then it does not wait, and is told so.
//! Full-size counterpart: none. In Cordis such a wait hangs.
//! Watch for: nodes are fibers and *runs* (a body, a cleanup, an undo by hand, a task), because it is a run that waits.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use slotmap::SlotMap;
use tokio::time::Instant;

use super::fiber::{Fiber, FiberId};
use super::guard::Run;
use super::kernel::Kernel;
use super::refresh;
use super::report::{Report, What};

/// How a wait for the lifecycle ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waited {
    /// What was awaited has happened.
    Done,
    /// Waiting would never have ended: it is requested, and happens after the caller has given way.
    Requested,
}

/// What can be waited for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Target {
    Fiber(FiberId),
    Run(Run),
    /// All users of a provision, by its id.
    Users(u64),
}

/// A wait this long is reported. Nothing else happens: a limit would change what a program means.
const LONG: Duration = Duration::from_secs(5);

slotmap::new_key_type! { struct WaitId; }

/// All waits that are going on.
#[derive(Default)]
pub(super) struct Waits {
    going: RefCell<SlotMap<WaitId, Wait>>,
    watched: Cell<bool>,
}

struct Wait {
    run: Option<Run>,
    fiber: FiberId,
    target: Target,
    since: Instant,
    reported: bool,
}

/// A wait of the kernel: it never gives way. `fiber` is the one that waits.
pub(super) async fn hold<T>(
    kernel: &Rc<Kernel>,
    fiber: FiberId,
    target: Target,
    mut ready: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> T {
    let mut entered = None;
    poll_fn(|cx| {
        let poll = ready(cx);
        if poll.is_pending() && entered.is_none() {
            entered = Some(Entered::new(kernel, Run::current(), fiber, target));
        }
        poll
    })
    .await
}

/// A wait of whoever calls. It gives way if it would close a circle.
pub(super) async fn give_way(
    kernel: &Rc<Kernel>,
    target: Target,
    mut ready: impl FnMut(&mut Context<'_>) -> Poll<()>,
) -> Waited {
    let mut entered = None;
    poll_fn(|cx| match ready(cx) {
        Poll::Ready(()) => Poll::Ready(Waited::Done),
        Poll::Pending if entered.is_some() => Poll::Pending,
        Poll::Pending => match Run::current() {
            Some(run) if kernel.is_waiting_for(target, run) => Poll::Ready(Waited::Requested),
            run => {
                entered = run.map(|run| Entered::new(kernel, Some(run), run.fiber, target));
                Poll::Pending
            }
        },
    })
    .await
}

/// A wait on the list, for as long as it goes on.
struct Entered {
    kernel: Rc<Kernel>,
    id: WaitId,
}

impl Entered {
    fn new(kernel: &Rc<Kernel>, run: Option<Run>, fiber: FiberId, target: Target) -> Self {
        let wait = Wait { run, fiber, target, since: Instant::now(), reported: false };
        let id = kernel.waits.going.borrow_mut().insert(wait);
        if !kernel.waits.watched.replace(true) {
            refresh::spawn(watch(kernel.clone()));
        }
        Self { kernel: kernel.clone(), id }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.kernel.waits.going.borrow_mut().remove(self.id);
    }
}

impl Kernel {
    /// Whether `target` waits for `run`, directly or through others, or may come to do so: the search goes from the run
    /// upwards, to its fiber, to the parents, to the providers the fiber has committed to, and to all runs that wait for
    /// any of these.
    fn is_waiting_for(&self, target: Target, run: Run) -> bool {
        let mut waiting: HashMap<Target, Vec<Target>> = HashMap::new();
        for wait in self.waits.going.borrow().values() {
            waiting.entry(wait.target).or_default().extend(wait.run.map(Target::Run));
        }
        let (mut seen, mut todo) = (HashSet::new(), vec![Target::Run(run)]);
        while let Some(node) = todo.pop() {
            if node == target {
                return true;
            }
            if seen.insert(node) {
                todo.extend(waiting.get(&node).into_iter().flatten());
                self.add_above(node, &mut todo);
            }
        }
        false
    }

    /// Who always waits for a node: its fiber, the parent, the providers.
    fn add_above(&self, node: Target, todo: &mut Vec<Target>) {
        match node {
            Target::Run(run) => todo.push(Target::Fiber(run.fiber)),
            Target::Users(_) => {}
            Target::Fiber(id) => {
                let Some(fiber) = self.fiber(id) else { return };
                todo.extend(fiber.parent.map(Target::Fiber));
                for provision in fiber.committed.borrow().iter() {
                    todo.push(Target::Fiber(provision.owner));
                    todo.push(Target::Users(provision.id));
                }
            }
        }
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

/// Reports each wait that has become long, once. Ends when nobody waits.
async fn watch(kernel: Rc<Kernel>) {
    loop {
        let oldest = kernel
            .waits
            .going
            .borrow()
            .values()
            .filter(|wait| !wait.reported)
            .map(|wait| wait.since)
            .min();
        let Some(oldest) = oldest else { break };
        tokio::time::sleep_until(oldest + LONG).await;
        let long = |wait: &&mut Wait| !wait.reported && wait.since.elapsed() >= LONG;
        let mut reports = Vec::new();
        for wait in kernel.waits.going.borrow_mut().values_mut().filter(long) {
            wait.reported = true;
            reports.push((wait.fiber, wait.target, wait.since.elapsed().as_secs()));
        }
        for (fiber, target, seconds) in reports {
            let what = What::LongWait { on: kernel.describe(target), seconds };
            kernel.report(&Report { plugin: kernel.path(fiber), what, error: None });
        }
    }
    kernel.waits.watched.set(false);
}

/// Those who wait for one thing. Empty, it takes no room on the heap.
#[derive(Default)]
pub(super) struct Wakers(RefCell<Vec<Waker>>);

impl Wakers {
    /// Notes the caller to be woken.
    pub(super) fn wait<T>(&self, cx: &mut Context<'_>) -> Poll<T> {
        let mut wakers = self.0.borrow_mut();
        if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Wakes all of them.
    pub(super) fn wake(&self) {
        self.0.take().into_iter().for_each(Waker::wake);
    }
}
