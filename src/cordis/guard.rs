//! The border to foreign code: bodies, listeners, cleanups, tasks, validators.
//!
//! Two things happen at this border. A panic becomes an error with its message and place, and prints nothing. And the
//! *run* is noted, the piece of plugin code that is being executed, because a wait must know who waits (`waits.rs`).
//! Watch for: what foreign code leaves behind is foreign too. A future is dropped inside the border, and so is what a
//! panic carried.

mod panics;

use std::cell::Cell;
use std::future::{Future, pending};
use std::pin::Pin;
use std::task::{self, Poll};

pub(crate) use self::panics::call;
pub(super) use self::panics::install_panic_hook;
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
}

impl Run {
    /// The run whose code is being executed now, if any.
    pub(super) fn current() -> Option<Self> {
        RUN.get()
    }
}

/// Calls foreign code as part of a run.
pub(super) fn call_in<T>(run: Run, f: impl FnOnce() -> T) -> Result<T, Panic> {
    let outer = RUN.replace(Some(run));
    let outcome = call(f);
    RUN.set(outer);
    outcome
}

type Heard<T> = dyn FnOnce(&Result<T, BoxError>);

/// A future of foreign code: each poll is guarded, and is part of the run.
pub(super) struct Guarded<T> {
    run: Option<Run>,
    future: Foreign<T>,
    /// Told what came of it.
    heard: Option<Box<Heard<T>>>,
}

impl<T> Guarded<T> {
    pub(super) fn new(run: Run, future: Foreign<T>) -> Self {
        Self { run: Some(run), future, heard: None }
    }

    /// In whatever run polls it: a listener belongs to the run that dispatches.
    pub(super) fn inherit(future: Foreign<T>) -> Self {
        Self { run: None, future, heard: None }
    }

    pub(super) fn heard_by(self, heard: impl FnOnce(&Result<T, BoxError>) + 'static) -> Self {
        Self { heard: Some(Box::new(heard)), ..self }
    }
}

impl<T: 'static> Future for Guarded<T> {
    type Output = Result<T, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        let (run, future) = (self.run, &mut self.future);
        let poll = || {
            let poll = future.as_mut().poll(cx);
            if poll.is_ready() {
                // Its end is part of it: what it holds is dropped here.
                *future = Box::pin(pending());
            }
            poll
        };
        let outcome = match run {
            Some(run) => call_in(run, poll),
            None => call(poll),
        };
        let poll = outcome.unwrap_or_else(|panic| {
            drop(call(|| self.future = Box::pin(pending())));
            Poll::Ready(Err(panic.into()))
        });
        poll.map(|outcome| {
            if let Some(heard) = self.heard.take() {
                heard(&outcome);
            }
            outcome
        })
    }
}

/// Awaits foreign code that the kernel does not call itself (the body of a tool, say); a panic comes back as an error.
pub fn catch_panic<T: 'static>(
    future: impl Future<Output = Result<T, BoxError>> + 'static,
) -> impl Future<Output = Result<T, BoxError>> {
    Guarded::inherit(Box::pin(future))
}
