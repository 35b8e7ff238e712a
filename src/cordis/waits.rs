//! Who may wait for whom, so that nobody waits for ever.
//!
//! The kernel itself waits in three places: a parent for its children, a provider for those who use its services, and an
//! unload for an undo in flight. These waits form no circle by themselves. Code of plugins can close one: a body that
//! awaits its own dispose, two cleanups that await each other. So before plugin code waits, the graph is asked whether
//! what it wants to wait for is (or may come to be) waiting for it; then it does not wait, and is told so.
//! Full-size counterpart: none. In Cordis such a wait hangs.
//! Watch for: nodes are fibers and *runs* (a body, a cleanup, an undo by hand, a task), because it is a run that waits.

mod long;
mod wakers;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use slotmap::{Key, SlotMap};
use tokio::time::Instant;

pub(super) use self::wakers::Wakers;
use super::fiber::FiberId;
use super::guard::Run;
use super::kernel::Kernel;
use super::refresh;

/// How a wait for the lifecycle ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waited {
    /// What was awaited has happened.
    Done,
    /// Waiting would never have ended: it is requested, and happens after the caller has given way.
    Requested,
}

/// What can be waited for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Target {
    Fiber(FiberId),
    Run(Run),
    /// All users of a provision, by its id.
    Users(u64),
}

slotmap::new_key_type! { struct WaitId; }

#[derive(Default)]
pub(super) struct Waits {
    /// All waits that are going on.
    going: RefCell<SlotMap<WaitId, Wait>>,
    /// Those of plugin code, by target: the edges of the graph that are not always there.
    runs: RefCell<BTreeMap<(Target, u64), Run>>,
    watched: Cell<bool>,
}

struct Wait {
    fiber: FiberId,
    target: Target,
    since: Instant,
    reported: bool,
}

/// A wait of the kernel: it never gives way. `fiber` is the one that waits.
pub(super) fn hold(
    kernel: &Rc<Kernel>,
    fiber: FiberId,
    target: Target,
    mut end: impl Future<Output = ()> + Unpin,
) -> impl Future<Output = ()> {
    let mut entered = None;
    poll_fn(move |cx| {
        let poll = Pin::new(&mut end).poll(cx);
        if poll.is_pending() && entered.is_none() {
            entered = Some(Entered::new(kernel, kernel.current_run(), fiber, target));
        }
        poll
    })
}

/// A wait of whoever calls. It gives way if it would close a circle.
pub(super) fn give_way(
    kernel: &Rc<Kernel>,
    target: Target,
    mut end: impl Future<Output = ()> + Unpin,
) -> impl Future<Output = Waited> {
    let mut entered = None;
    poll_fn(move |cx| match Pin::new(&mut end).poll(cx) {
        Poll::Ready(()) => Poll::Ready(Waited::Done),
        Poll::Pending if entered.is_some() => Poll::Pending,
        Poll::Pending => match kernel.current_run() {
            Some(run) if kernel.is_waiting_for(target, run) => Poll::Ready(Waited::Requested),
            run => {
                entered = run.map(|run| Entered::new(kernel, Some(run), run.fiber, target));
                Poll::Pending
            }
        },
    })
}

/// A wait on the list, for as long as it goes on.
struct Entered {
    kernel: Rc<Kernel>,
    id: WaitId,
}

impl Entered {
    fn new(kernel: &Rc<Kernel>, run: Option<Run>, fiber: FiberId, target: Target) -> Self {
        let wait = Wait { fiber, target, since: Instant::now(), reported: false };
        let id = kernel.waits.going.borrow_mut().insert(wait);
        if let Some(run) = run {
            kernel.waits.runs.borrow_mut().insert((target, id.data().as_ffi()), run);
        }
        if !kernel.waits.watched.replace(true) {
            refresh::spawn(long::watch(kernel.clone()));
        }
        Self { kernel: kernel.clone(), id }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let waits = &self.kernel.waits;
        if let Some(wait) = waits.going.borrow_mut().remove(self.id) {
            waits.runs.borrow_mut().remove(&(wait.target, self.id.data().as_ffi()));
        }
    }
}

impl Kernel {
    /// The piece of this kernel's plugin code that is being executed. Another kernel on the same thread has runs of its own.
    fn current_run(&self) -> Option<Run> {
        Run::current().filter(|run| run.kernel == self.id)
    }

    /// Whether `target` waits for `run`, directly or through others, or may come to do so: the search goes from the run
    /// upwards, to its fiber, to the parents, to the providers the fiber has committed to, and to all runs that wait for
    /// any of these.
    fn is_waiting_for(&self, target: Target, run: Run) -> bool {
        let runs = self.waits.runs.borrow();
        let waiting = |node| runs.range((node, 0)..=(node, u64::MAX)).map(|(_, run)| *run);
        let (mut seen, mut todo) = (HashSet::new(), vec![Target::Run(run)]);
        while let Some(node) = todo.pop() {
            if node == target {
                return true;
            }
            if seen.insert(node) {
                todo.extend(waiting(node).map(Target::Run));
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
}
