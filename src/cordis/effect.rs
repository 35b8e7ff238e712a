//! Effects: everything a plugin registers, and how it is undone.
//!
//! One list per plugin holds listeners, services, children, tasks and effects of the plugin's own; unloading undoes them
//! one by one, newest first. That is all there is to hot reload: unload, then load.
//! Full-size counterpart: cordis `packages/core/src/fiber.ts` (effects and disposables).
//! Watch for: the first call of an undo does the work, every later one returns at once, and an unload always waits for
//! an undo in flight.
//!
//! Omitted: generators as effects and setups that can be awaited; a body can await first and register then.
//! Differs: Cordis starts all cleanups together. Here each one ends before the next begins, so that a cleanup may rely on
//! everything that was registered before it.

mod cleanup;
mod slots;
mod undo;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

use self::cleanup::Work;
pub use self::cleanup::{Cleanup, IntoCleanup, Outcome, mark};
pub(super) use self::slots::Slots;
pub use self::undo::{Undo, Undoing};
use super::error::{Error, Panic};
use super::fiber::Fiber;
use super::guard::{self, Foreign, Guarded, Run};
use super::kernel::Kernel;
use super::waits::{self, Target, Wakers};

/// The effects of one fiber, oldest first. Keys rise and are never used again, so an undo of an earlier load finds nothing.
#[derive(Default)]
pub(super) struct Effects {
    slots: Slots<u64, Effect>,
    last: u64,
}

enum Effect {
    Armed(Cleanup),
    Running(Rc<Done>),
}

impl Effects {
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// A place in the order. Reserved before the setup runs: what the setup registers is undone before the effect itself.
    pub(super) fn reserve(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(super) fn insert(&mut self, key: u64, cleanup: Cleanup) {
        self.slots.insert(key, Effect::Armed(cleanup));
    }

    pub(super) fn add(&mut self, cleanup: Cleanup) -> u64 {
        let key = self.reserve();
        self.insert(key, cleanup);
        key
    }

    /// Takes an effect off the list, to undo it or to forget it; none if its undo is in flight.
    pub(super) fn take(&mut self, key: u64) -> Option<Cleanup> {
        if let Effect::Running(_) = self.slots.get_mut(key)? {
            return None;
        }
        match self.slots.remove(key)? {
            Effect::Armed(cleanup) => Some(cleanup),
            Effect::Running(_) => None,
        }
    }

    /// The key of the newest, and the undo of it that is in flight, if any.
    fn newest(&mut self) -> Option<(u64, Option<Rc<Done>>)> {
        self.slots.last_mut().map(|(key, effect)| match effect {
            Effect::Armed(_) => (key, None),
            Effect::Running(done) => (key, Some(done.clone())),
        })
    }
}

/// An undo that takes time, and who waits for its end.
struct Done {
    run: Run,
    ended: Cell<bool>,
    /// Somebody will ask for the result, so a failure need not be reported.
    heard: Cell<bool>,
    result: RefCell<Result<(), Error>>,
    wakers: Wakers,
}

impl Done {
    fn ended(&self) -> impl Future<Output = ()> + Unpin {
        self.wakers.until(|| self.ended.get())
    }
}

/// An undo that has begun.
enum Step<F> {
    Ended(Result<(), Error>),
    Going(F, Rc<Done>),
}

/// Begins to undo one effect, unless that has happened before. A cleanup that takes time stays on the list until it ends,
/// so that an unload meets it there.
fn start(
    kernel: &Rc<Kernel>,
    fiber: &Rc<Fiber>,
    key: u64,
) -> Option<Step<impl Future<Output = ()> + use<>>> {
    let Cleanup(work) = fiber.effects.borrow_mut().take(key)?;
    let run = kernel.run(fiber.id);
    let begin = match work {
        Work::Call(call) => {
            let result = guard::call_in(run, call).unwrap_or_else(|panic| Err(panic.into()));
            return Some(Step::Ended(result.map_err(|err| kernel.cleanup_error(fiber.id, err))));
        }
        Work::Future(begin) => begin,
    };
    let (ended, heard, result) = (Cell::new(false), Cell::new(false), RefCell::new(Ok(())));
    let done = Rc::new(Done { run, ended, heard, result, wakers: Wakers::default() });
    fiber.effects.borrow_mut().slots.insert(key, Effect::Running(done.clone()));
    let cleanup = guard::call_in(run, begin);
    Some(Step::Going(finish(kernel.clone(), fiber.clone(), key, done.clone(), cleanup), done))
}

async fn finish(
    kernel: Rc<Kernel>,
    fiber: Rc<Fiber>,
    key: u64,
    done: Rc<Done>,
    cleanup: Result<Foreign<()>, Panic>,
) {
    let result = match cleanup {
        Ok(cleanup) => Guarded::new(done.run, cleanup).await,
        Err(panic) => Err(panic.into()),
    };
    fiber.effects.borrow_mut().slots.remove(key);
    match result.map_err(|err| kernel.cleanup_error(fiber.id, err)) {
        Err(err) if !done.heard.get() => kernel.report_cleanup(fiber.id, err),
        result => drop(done.result.replace(result)),
    }
    done.ended.set(true);
    done.wakers.wake();
}

/// Undoes everything a fiber has registered, newest first, one after the other. Failures are reported; the rest goes on.
pub(super) async fn undo_all(kernel: &Rc<Kernel>, fiber: &Rc<Fiber>) {
    loop {
        let newest = fiber.effects.borrow_mut().newest();
        let Some((key, in_flight)) = newest else { break };
        if let Some(done) = in_flight {
            waits::hold(kernel, fiber.id, Target::Run(done.run), done.ended()).await;
            continue;
        }
        match start(kernel, fiber, key) {
            Some(Step::Going(finish, _)) => finish.await,
            Some(Step::Ended(Err(err))) => kernel.report_cleanup(fiber.id, err),
            Some(Step::Ended(Ok(()))) | None => {}
        }
    }
}
