//! The border to foreign code: bodies, listeners, cleanups, tasks, validators.
//!
//! Two things happen at this border. A panic becomes an error with its message and place, and prints nothing. And the
//! *run* is noted, the piece of plugin code that is being executed, because a wait must know who waits (`waits.rs`).
//! Watch for: what foreign code leaves behind is foreign too. A future is dropped inside the border, and so is what a
//! panic carried.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::{Future, pending};
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::Once;
use std::task::{self, Poll};

use super::error::{BoxError, Panic};
use super::fiber::FiberId;

/// A boxed future of this one thread.
pub type LocalBoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// What foreign code gives back when it takes time.
pub(super) type Foreign<T> = LocalBoxFuture<'static, Result<T, BoxError>>;

/// One execution of plugin code: a body, a cleanup, an undo by hand or a spawned task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Run {
    pub(super) id: u64,
    pub(super) fiber: FiberId,
    /// The kernel in whose name it runs.
    pub(super) kernel: u64,
}

thread_local! {
    static RUN: Cell<Option<Run>> = const { Cell::new(None) };
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static CAUGHT: RefCell<Option<Panic>> = const { RefCell::new(None) };
}

impl Run {
    /// The run whose code is being executed now, if any.
    pub(super) fn current() -> Option<Self> {
        RUN.get()
    }
}

/// Calls foreign code; a panic comes back as an error.
pub(super) fn call<T>(f: impl FnOnce() -> T) -> Result<T, Panic> {
    DEPTH.set(DEPTH.get() + 1);
    let outcome = panic::catch_unwind(AssertUnwindSafe(f)).map_err(caught);
    DEPTH.set(DEPTH.get() - 1);
    outcome
}

/// What a panic said. The hook notes the place; it does not see a panic that plugin code caught and resumed.
fn caught(payload: Box<dyn Any + Send>) -> Panic {
    let seen = CAUGHT.take();
    let said = describe(&*payload, String::new());
    if let Err(bomb) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // What panics when it is dropped might do so again.
        std::mem::forget(bomb);
    }
    seen.filter(|seen| seen.message == said.message).unwrap_or(said)
}

/// Calls foreign code as part of a run.
pub(super) fn call_in<T>(run: Run, f: impl FnOnce() -> T) -> Result<T, Panic> {
    let outer = RUN.replace(Some(run));
    let outcome = call(f);
    RUN.set(outer);
    outcome
}

/// A future of foreign code: each poll is guarded, and is part of the run.
pub(super) struct Guarded<T> {
    run: Option<Run>,
    future: Foreign<T>,
}

impl<T> Guarded<T> {
    pub(super) fn new(run: Run, future: Foreign<T>) -> Self {
        Self { run: Some(run), future }
    }

    /// In whatever run polls it: a listener belongs to the run that dispatches.
    pub(super) fn inherit(future: Foreign<T>) -> Self {
        Self { run: None, future }
    }
}

impl<T: 'static> Future for Guarded<T> {
    type Output = Result<T, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        let (run, future) = (self.run, &mut self.future);
        let poll = || {
            let poll = future.as_mut().poll(cx);
            if poll.is_ready() {
                *future = Box::pin(pending());
            }
            poll
        };
        let outcome = match run {
            Some(run) => call_in(run, poll),
            None => call(poll),
        };
        outcome.unwrap_or_else(|panic| {
            drop(call(|| self.future = Box::pin(pending())));
            Poll::Ready(Err(panic.into()))
        })
    }
}

/// Awaits foreign code that the kernel does not call itself (the body of a tool, say); a panic comes back as an error.
pub fn catch_panic<T: 'static>(
    future: impl Future<Output = Result<T, BoxError>> + 'static,
) -> impl Future<Output = Result<T, BoxError>> {
    Guarded::inherit(Box::pin(future))
}

/// Inside guarded code a panic is recorded and prints nothing; outside, everything is as it was. Idempotent.
pub(super) fn install_panic_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if DEPTH.get() == 0 {
                return previous(panic);
            }
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            let caught = describe(panic.payload(), place);
            CAUGHT.with(|slot| slot.replace(Some(caught)));
        }));
    });
}

fn describe(payload: &(dyn Any + Send), place: String) -> Panic {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    Panic { message: text.unwrap_or_else(|| "a panic without a message".into()), place }
}
