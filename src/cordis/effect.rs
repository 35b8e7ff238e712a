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

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{self, Poll};

use self::cleanup::Work;
pub use self::cleanup::{Cleanup, IntoCleanup, Outcome, mark};
use super::error::{Error, Panic};
use super::fiber::{Fiber, FiberId};
use super::guard::{self, Foreign, Guarded, LocalBoxFuture, Run};
use super::kernel::Kernel;
use super::refresh;
use super::report::What;
use super::slots::Slots;
use super::waits::{self, Target, Waited, Wakers};

/// The effects of one fiber, oldest first. Keys rise and are never used again, so an undo of an earlier load finds nothing.
pub(super) struct Effects {
    slots: Slots<u64, Effect>,
    next: u64,
}

enum Effect {
    Armed(Cleanup),
    Running(Rc<Done>),
}

/// What unloading meets at the end of the list.
enum Newest {
    Armed(u64),
    Running(Rc<Done>),
}

impl Effects {
    pub(super) const fn new() -> Self {
        Self { slots: Slots::new(), next: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// A place in the order. Reserved before the setup runs: what the setup registers is undone before the effect itself.
    pub(super) fn reserve(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(super) fn insert(&mut self, key: u64, cleanup: Cleanup) {
        self.slots.insert(key, Effect::Armed(cleanup));
    }

    /// Takes an effect off the list, to undo it or to forget it; none if its undo is in flight.
    pub(super) fn take(&mut self, key: u64) -> Option<Cleanup> {
        match self.slots.get_mut(key)? {
            Effect::Running(_) => None,
            Effect::Armed(_) => match self.slots.remove(key)? {
                Effect::Armed(cleanup) => Some(cleanup),
                Effect::Running(_) => None,
            },
        }
    }

    fn newest(&mut self) -> Option<Newest> {
        self.slots.last_mut().map(|(key, effect)| match effect {
            Effect::Armed(_) => Newest::Armed(key),
            Effect::Running(done) => Newest::Running(done.clone()),
        })
    }
}

/// Undoes one effect. Dropping it does nothing.
#[derive(Clone)]
pub struct Undo {
    kernel: Rc<Kernel>,
    fiber: FiberId,
    key: u64,
}

impl Undo {
    pub(super) fn new(kernel: &Rc<Kernel>, fiber: FiberId, key: u64) -> Self {
        Self { kernel: kernel.clone(), fiber, key }
    }

    /// Undoes the effect now; awaiting the result is optional, the cleanup runs to its end in any case.
    ///
    /// The result is [`Waited::Done`] when the cleanup has run, and at once if it ran before or is running. A failure of
    /// the cleanup comes back as [`Error::Cleanup`]; if nobody awaits it, it is reported.
    pub fn call(&self) -> Undoing {
        let step =
            self.kernel.fiber(self.fiber).and_then(|fiber| start(&self.kernel, &fiber, self.key));
        let ending = match step {
            None => Ending::Now(None),
            Some(Step::Ended(result)) => Ending::Now(Some(result)),
            Some(Step::Going(finish, done)) => {
                done.heard.set(true);
                refresh::run_or_spawn(Box::pin(finish));
                let (kernel, waiting) = (self.kernel.clone(), done.clone());
                let wait = async move {
                    waits::give_way(&kernel, Target::Run(waiting.run), |cx| waiting.poll(cx)).await
                };
                Ending::Later(done, Box::pin(wait))
            }
        };
        Undoing { kernel: self.kernel.clone(), fiber: self.fiber, ending }
    }
}

/// An undo that has been called.
pub struct Undoing {
    kernel: Rc<Kernel>,
    fiber: FiberId,
    ending: Ending,
}

enum Ending {
    Now(Option<Result<(), Error>>),
    Later(Rc<Done>, LocalBoxFuture<'static, Waited>),
}

impl Future for Undoing {
    type Output = Result<Waited, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        match &mut self.ending {
            Ending::Now(result) => {
                Poll::Ready(result.take().unwrap_or(Ok(())).map(|()| Waited::Done))
            }
            Ending::Later(done, wait) => wait.as_mut().poll(cx).map(|waited| match waited {
                Waited::Done => done.take_result().map(|()| Waited::Done),
                Waited::Requested => Ok(Waited::Requested),
            }),
        }
    }
}

impl Drop for Undoing {
    fn drop(&mut self) {
        let result = match &mut self.ending {
            Ending::Now(result) => result.take().unwrap_or(Ok(())),
            Ending::Later(done, _) => {
                done.heard.set(false);
                done.take_result()
            }
        };
        if let Err(err) = result {
            self.kernel.report_error(self.fiber, What::CleanupFailed, &err);
        }
    }
}

/// The end of an undo that takes time, and who waits for it.
struct Done {
    run: Run,
    ended: Cell<bool>,
    /// Somebody will ask for the result, so a failure need not be reported.
    heard: Cell<bool>,
    result: RefCell<Option<Result<(), Error>>>,
    wakers: Wakers,
}

impl Done {
    fn new(run: Run) -> Rc<Self> {
        let (ended, heard, result) = (Cell::new(false), Cell::new(false), RefCell::new(None));
        Rc::new(Self { run, ended, heard, result, wakers: Wakers::default() })
    }

    fn poll(&self, cx: &mut task::Context<'_>) -> Poll<()> {
        if self.ended.get() { Poll::Ready(()) } else { self.wakers.wait(cx) }
    }

    fn take_result(&self) -> Result<(), Error> {
        self.result.take().unwrap_or(Ok(()))
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
    let run = Run::new(fiber.id);
    let begin = match work {
        Work::Call(call) => {
            let result = guard::call_in(run, call).unwrap_or_else(|panic| Err(panic.into()));
            return Some(Step::Ended(result.map_err(|err| kernel.cleanup_error(fiber.id, err))));
        }
        Work::Future(begin) => begin,
    };
    let done = Done::new(run);
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
    let result = result.map_err(|err| kernel.cleanup_error(fiber.id, err));
    match result {
        Err(err) if !done.heard.get() => kernel.report_error(fiber.id, What::CleanupFailed, &err),
        result => drop(done.result.replace(Some(result))),
    }
    done.ended.set(true);
    done.wakers.wake();
}

/// Undoes everything a fiber has registered, newest first, one after the other. Failures are reported; the rest goes on.
pub(super) async fn undo_all(kernel: &Rc<Kernel>, fiber: &Rc<Fiber>) {
    loop {
        let newest = fiber.effects.borrow_mut().newest();
        match newest {
            None => break,
            Some(Newest::Running(done)) => {
                waits::hold(kernel, fiber.id, Target::Run(done.run), |cx| done.poll(cx)).await;
            }
            Some(Newest::Armed(key)) => {
                let step = start(kernel, fiber, key);
                if let Some(Step::Going(finish, _)) = step {
                    finish.await;
                } else if let Some(Step::Ended(Err(err))) = step {
                    kernel.report_error(fiber.id, What::CleanupFailed, &err);
                }
            }
        }
    }
}
