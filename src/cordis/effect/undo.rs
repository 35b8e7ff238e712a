//! The handle by which one effect is undone before its plugin unloads.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{self, Poll};

use super::{Done, Step, start};
use crate::cordis::error::Error;
use crate::cordis::fiber::FiberId;
use crate::cordis::guard::LocalBoxFuture;
use crate::cordis::kernel::Kernel;
use crate::cordis::refresh;
use crate::cordis::waits::{self, Target, Waited};

/// Undoes one effect. Dropping it does nothing.
#[derive(Clone)]
pub struct Undo {
    kernel: Rc<Kernel>,
    fiber: FiberId,
    key: u64,
}

impl Undo {
    pub(in crate::cordis) fn new(kernel: &Rc<Kernel>, fiber: FiberId, key: u64) -> Self {
        Self { kernel: kernel.clone(), fiber, key }
    }

    /// Undoes the effect now; awaiting the result is optional, the cleanup runs to its end in any case.
    ///
    /// The result is [`Waited::Done`] when the cleanup has run, and at once if it ran before or is running. A failure of
    /// the cleanup comes back as [`Error::Cleanup`]; if nobody awaits it, it is reported.
    pub fn call(&self) -> Undoing {
        let fiber = self.kernel.fiber(self.fiber);
        let ending = match fiber.and_then(|fiber| start(&self.kernel, &fiber, self.key)) {
            None => Ending::Now(Ok(())),
            Some(Step::Ended(result)) => Ending::Now(result),
            Some(Step::Going(finish, done)) => {
                done.heard.set(true);
                refresh::run_or_spawn(Box::pin(finish));
                let (kernel, going) = (self.kernel.clone(), done.clone());
                let wait = async move {
                    waits::give_way(&kernel, Target::Run(going.run), going.ended()).await
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
    Now(Result<(), Error>),
    Later(Rc<Done>, LocalBoxFuture<'static, Waited>),
}

impl Ending {
    /// The result, once: an error is told to one.
    fn take_result(&mut self) -> Result<(), Error> {
        match self {
            Self::Now(result) => std::mem::replace(result, Ok(())),
            Self::Later(done, _) => done.result.replace(Ok(())),
        }
    }
}

impl Future for Undoing {
    type Output = Result<Waited, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        let waited = match &mut self.ending {
            Ending::Now(_) => Waited::Done,
            Ending::Later(_, wait) => task::ready!(wait.as_mut().poll(cx)),
        };
        Poll::Ready(match waited {
            Waited::Done => self.ending.take_result().map(|()| Waited::Done),
            Waited::Requested => Ok(Waited::Requested),
        })
    }
}

impl Drop for Undoing {
    fn drop(&mut self) {
        if let Ending::Later(done, _) = &self.ending {
            done.heard.set(false);
        }
        if let Err(err) = self.ending.take_result() {
            self.kernel.report_cleanup(self.fiber, err);
        }
    }
}
