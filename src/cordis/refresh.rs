//! The scheduler: starts and stops fibers as services come and go.
//!
//! A change marks the fibers it concerns; one task of the kernel takes the marked ones in turn and moves each until it
//! rests. Nothing starts inside the call that caused it: what follows `ctx.plugin()` in the same block runs first.
//! Full-size counterpart: cordis `packages/core/src/fiber.ts` (refresh) and `reflect.ts`.
//! Watch for: nothing here calls itself, however many plugins depend on each other. A driver is polled once in place, and
//! becomes a task of its own only if it has to wait.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::rc::{Rc, Weak};
use std::task::{self, Poll, Waker};

use tokio::task::JoinHandle;

use super::fiber::{self, Fiber, FiberId};
use super::guard::LocalBoxFuture;
use super::kernel::Kernel;
use super::service::Provision;

/// So many fibers the scheduler moves before it lets others run.
const AT_A_TIME: usize = 1_000;

/// The fibers that may have to move.
#[derive(Default)]
pub(super) struct Queue {
    marked: RefCell<VecDeque<FiberId>>,
    waker: RefCell<Option<Waker>>,
}

impl Queue {
    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Drop for Queue {
    /// With the kernel its scheduler ends.
    fn drop(&mut self) {
        self.wake();
    }
}

impl Kernel {
    /// Notes that a fiber may have to move.
    pub(super) fn mark(&self, fiber: &Fiber) {
        fiber.status.rests.set(false);
        if !fiber.queued.replace(true) {
            self.queue.marked.borrow_mut().push_back(fiber.id);
            self.queue.wake();
        }
    }

    /// Requests a dispose; false if that was done before.
    pub(super) fn retire(&self, fiber: &Fiber) -> bool {
        let first = !fiber.retired.replace(true);
        if first {
            self.mark(fiber);
        }
        first
    }

    /// A service comes or goes: everybody who requires it is marked.
    pub(super) fn announce(&self, provision: &Provision, available: bool) {
        if provision.available.replace(available) == available {
            return;
        }
        for id in provision.slot.dependents.borrow().iter() {
            if let Some(fiber) = self.fiber(*id) {
                self.mark(&fiber);
            }
        }
    }

    /// All services of a fiber come or go, because it becomes or ceases to be ACTIVE.
    pub(super) fn announce_all(&self, fiber: &Fiber, available: bool) {
        for provision in fiber.provisions.borrow().iter() {
            self.announce(provision, available);
        }
    }

    /// Moves those that are marked, but not for ever: plugins that restart each other must leave time for everything else.
    fn run_marked(self: &Rc<Self>) {
        for _ in 0..AT_A_TIME {
            let next = self.queue.marked.borrow_mut().pop_front();
            let Some(id) = next else { break };
            let Some(fiber) = self.fiber(id) else { continue };
            fiber.queued.set(false);
            if fiber.driven.replace(true) {
                // Its driver compares again when the step that runs now has ended; a body may want to know before.
                fiber.status.wakers.wake();
            } else {
                run_or_spawn(Box::pin(fiber::drive(self.clone(), fiber)));
            }
        }
    }

    /// The task that moves what is marked, for as long as the kernel is in use.
    pub(super) async fn schedule(kernel: Weak<Self>) {
        poll_fn(move |cx| {
            let Some(kernel) = kernel.upgrade() else { return Poll::Ready(()) };
            kernel.run_marked();
            if !kernel.queue.marked.borrow().is_empty() {
                cx.waker().wake_by_ref();
            }
            kernel.queue.waker.replace(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}

/// Polls once in place; only what has to wait costs a task.
pub(super) fn run_or_spawn(mut future: LocalBoxFuture<'static, ()>) {
    // A future polled with this waker may wake nobody; the task polls it again, with its own.
    let mut cx = task::Context::from_waker(Waker::noop());
    if future.as_mut().poll(&mut cx).is_pending() {
        spawn(future);
    }
}

/// A task of the kernel itself: it ends by itself, with what it drives.
#[expect(clippy::disallowed_methods, reason = "the kernel's own tasks; plugins use `ctx.spawn`")]
pub(super) fn spawn<T: 'static>(future: impl Future<Output = T> + 'static) -> JoinHandle<T> {
    tokio::task::spawn_local(tokio::task::unconstrained(future))
}
