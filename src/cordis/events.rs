//! Events: how plugins hear of each other, in four ways of dispatch.
//!
//! | call | what happens |
//! |---|---|
//! | `ctx.emit(&event)` | each listener in order; what fails is reported, and the rest still runs |
//! | `ctx.parallel::<E>(input)` | all at the same time; waits for all, then one error holds all failures |
//! | `ctx.serial::<E>(input)` | one after the other; the first meaningful answer wins |
//! | `ctx.waterfall::<E>(input, default)` | each listener wraps the rest, and may run it never, once or twice |
//!
//! The way of dispatch is part of the type of an event, so the wrong one does not compile. A listener is an effect: `on`,
//! `on_parallel`, `answer` and `intercept` register one, and fail with [`Error::Inactive`] if the plugin is not running,
//! and with [`Error::EventMismatch`] if the name is in use with other types. Listeners are called in ascending `order`, 0
//! unless said otherwise; ties by registration.
//! Events that only scripts know have a name and no type (`events/named.rs`).
//! Full-size counterpart: cordis `packages/core/src/events.ts`.
//! Watch for: a listener of a waterfall that only watches must call `next`, or nothing after it happens.
//!
//! Omitted: `bail` and `once`; filters by context, by which DeepSeek Harness gives each agent its own listeners.

mod bus;
mod meaning;
mod named;
mod waterfall;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

pub(super) use self::bus::Bus;
use self::bus::Listener;
pub use self::meaning::Meaningful;
pub use self::named::NamedListener;
pub use self::waterfall::Next;
use self::waterfall::Wrapping;
use super::context::Context;
use super::effect::{Outcome, Undo};
use super::error::{BoxError, Error, ParallelError};
use super::guard::{self, Foreign};
use super::report::What;

/// An event that is told. The value of the type is what listeners get.
pub trait Emit: 'static {
    /// Its name: `area/what`.
    const NAME: &'static str;
}

/// An event that several may work on at the same time.
pub trait Parallel: 'static {
    /// Its name: `area/what`.
    const NAME: &'static str;
    /// What listeners get.
    type Input: 'static;
}

/// A question: the first meaningful answer wins.
pub trait Serial: 'static {
    /// Its name: `area/what`.
    const NAME: &'static str;
    /// What listeners get.
    type Input: 'static;
    /// What a listener returns.
    type Answer: Meaningful;
}

/// Work that listeners wrap: each gets the input and `next`, the rest of the chain.
pub trait Waterfall: 'static {
    /// Its name: `area/what`.
    const NAME: &'static str;
    /// What listeners get.
    type Input: 'static;
    /// What the whole chain returns.
    type Output: 'static;
}

type Told<E> = dyn Fn(&Context, &E) -> Result<(), BoxError>;
type Asked<I, O> = dyn Fn(Context, Rc<I>) -> Foreign<O>;

impl Context {
    /// Listens to an event that is told. The closure returns `()` or a `Result`.
    pub fn on<E: Emit, O: Outcome>(
        &self,
        listener: impl Fn(&Self, &E) -> O + 'static,
    ) -> Result<Undo, Error> {
        self.on_at(0, listener)
    }

    /// As [`on`](Self::on), at a place.
    pub fn on_at<E: Emit, O: Outcome>(
        &self,
        order: i32,
        listener: impl Fn(&Self, &E) -> O + 'static,
    ) -> Result<Undo, Error> {
        let call = move |ctx: &Self, event: &E| listener(ctx, event).outcome();
        self.listen::<Told<E>>(E::NAME, order, |ctx, live| Rc::new(Listener { ctx, live, call }))
    }

    /// Takes part in a parallel event.
    pub fn on_parallel<E: Parallel>(
        &self,
        listener: impl AsyncFn(Self, Rc<E::Input>) -> Result<(), BoxError> + 'static,
    ) -> Result<Undo, Error> {
        self.asked_at(E::NAME, 0, listener)
    }

    /// As [`on_parallel`](Self::on_parallel), at a place.
    pub fn on_parallel_at<E: Parallel>(
        &self,
        order: i32,
        listener: impl AsyncFn(Self, Rc<E::Input>) -> Result<(), BoxError> + 'static,
    ) -> Result<Undo, Error> {
        self.asked_at(E::NAME, order, listener)
    }

    /// Answers a question; `None` (or another value without meaning) leaves it to the next.
    pub fn answer<E: Serial>(
        &self,
        listener: impl AsyncFn(Self, Rc<E::Input>) -> Result<E::Answer, BoxError> + 'static,
    ) -> Result<Undo, Error> {
        self.asked_at(E::NAME, 0, listener)
    }

    /// As [`answer`](Self::answer), at a place.
    pub fn answer_at<E: Serial>(
        &self,
        order: i32,
        listener: impl AsyncFn(Self, Rc<E::Input>) -> Result<E::Answer, BoxError> + 'static,
    ) -> Result<Undo, Error> {
        self.asked_at(E::NAME, order, listener)
    }

    fn asked_at<I: 'static, O: 'static>(
        &self,
        event: &'static str,
        order: i32,
        listener: impl AsyncFn(Self, Rc<I>) -> Result<O, BoxError> + 'static,
    ) -> Result<Undo, Error> {
        let listener = Rc::new(listener);
        let call = move |ctx, input| -> Foreign<O> {
            let listener = listener.clone();
            Box::pin(async move { listener(ctx, input).await })
        };
        self.listen::<Asked<I, O>>(event, order, |ctx, live| Rc::new(Listener { ctx, live, call }))
    }

    /// Wraps the work of a waterfall: `next.run()` is the rest of the chain.
    pub fn intercept<E: Waterfall>(
        &self,
        listener: impl AsyncFn(Self, Rc<E::Input>, Next<E>) -> Result<E::Output, BoxError> + 'static,
    ) -> Result<Undo, Error> {
        self.intercept_at(0, listener)
    }

    /// As [`intercept`](Self::intercept), at a place: the lowest is the outermost.
    pub fn intercept_at<E: Waterfall>(
        &self,
        order: i32,
        listener: impl AsyncFn(Self, Rc<E::Input>, Next<E>) -> Result<E::Output, BoxError> + 'static,
    ) -> Result<Undo, Error> {
        let listener = Rc::new(listener);
        let call = move |ctx, input, next| -> Foreign<_> {
            let listener = listener.clone();
            Box::pin(async move { listener(ctx, input, next).await })
        };
        self.listen::<Wrapping<E>>(E::NAME, order, |ctx, live| {
            Rc::new(Listener { ctx, live, call })
        })
    }

    /// Tells all listeners. They have run when this returns; a failure is reported and stops nobody.
    // Differs: in Cordis the first listener that throws ends the dispatch, and the caller gets the error.
    pub fn emit<E: Emit>(&self, event: &E) {
        let Some(list) = self.listeners::<Told<E>>(E::NAME) else { return };
        list.walk(self.kernel.number(), |listener| {
            let owner = listener.ctx.owner;
            // A listener that has just undone itself is dropped in here, inside the border.
            let outcome = guard::call(move || (listener.call)(&listener.ctx, event));
            if let Err(err) = outcome.unwrap_or_else(|panic| Err(panic.into())) {
                let what = What::ListenerFailed { event: E::NAME.into() };
                self.kernel.report(owner, what, Some(err.into()));
            }
        });
    }

    /// Starts all listeners, then waits for all of them. The error holds all failures, in the order of the listeners.
    // Differs: Cordis gives up at the first failure and leaves the others running.
    pub async fn parallel<E: Parallel>(&self, input: Rc<E::Input>) -> Result<(), ParallelError> {
        let listeners = self.snapshot::<Asked<E::Input, ()>>(E::NAME);
        let mut going = Vec::with_capacity(listeners.len());
        let mut failed: Vec<Option<BoxError>> = listeners.iter().map(|_| None).collect();
        poll_fn(|cx| {
            for (at, listener) in listeners.iter().enumerate() {
                if at == going.len() {
                    going.push(listener.live.get().then(|| listener.ask(input.clone())));
                }
                let Some(future) = &mut going[at] else { continue };
                if let Poll::Ready(outcome) = Pin::new(future).poll(cx) {
                    (going[at], failed[at]) = (None, outcome.err());
                }
            }
            if going.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let failures = listeners.iter().zip(failed);
        let failures: Vec<_> =
            failures.filter_map(|(listener, err)| Some(listener.error(E::NAME, err?))).collect();
        if failures.is_empty() { Ok(()) } else { Err(ParallelError(failures)) }
    }

    /// Asks one listener after the other until one gives a meaningful answer. The first failure ends it, too.
    pub async fn serial<E: Serial>(
        &self,
        input: Rc<E::Input>,
    ) -> Result<Option<<E::Answer as Meaningful>::Value>, BoxError> {
        for listener in &*self.snapshot::<Asked<E::Input, E::Answer>>(E::NAME) {
            if !listener.live.get() {
                continue;
            }
            if let Some(answer) = listener.ask(input.clone()).await?.meaningful() {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    /// Runs the chain of listeners around `default`, the innermost. The result is what the outermost returns.
    pub async fn waterfall<E: Waterfall>(
        &self,
        input: Rc<E::Input>,
        default: impl AsyncFn(Rc<E::Input>) -> Result<E::Output, BoxError> + 'static,
    ) -> Result<E::Output, BoxError> {
        let listeners = self.snapshot::<Wrapping<E>>(E::NAME);
        Next::first(listeners, default, None, input).run().await
    }
}
