//! Events: how plugins hear of each other, in four ways of dispatch.
//!
//! | call | what happens |
//! |---|---|
//! | `ctx.emit(&event)` | each listener in order; what fails is reported, and the rest still runs |
//! | `ctx.parallel::<E>(input)` | all at the same time; waits for all, then one error holds all failures |
//! | `ctx.serial::<E>(input)` | one after the other; the first meaningful answer wins |
//! | `ctx.waterfall::<E>(input, default)` | each listener wraps the rest, and may run it never, once or twice |
//!
//! The way of dispatch is part of the type of an event, so the wrong one does not compile. A listener is an effect.
//! Full-size counterpart: cordis `packages/core/src/events.ts`.
//! Watch for: a listener of a waterfall that only watches must call `next`, or nothing after it happens.
//!
//! Omitted: `bail` and `once`; filters by context, by which DeepSeek Harness gives each agent its own listeners.
//! Differs: in Cordis the first listener that throws ends an `emit`, a parallel dispatch gives up at the first failure,
//! and `next` moves one cursor that all listeners of a waterfall share.

mod bus;
mod meaning;

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

pub(super) use self::bus::Bus;
use self::bus::Listener;
pub use self::meaning::Meaningful;
use super::context::Context;
use super::effect::{Outcome, Undo};
use super::error::{BoxError, Error, ParallelError};
use super::guard::{self, Foreign, Guarded};
use super::report::{Report, What};

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
type Wrapping<E> =
    dyn Fn(Context, Rc<<E as Waterfall>::Input>, Next<E>) -> Foreign<<E as Waterfall>::Output>;

impl Context {
    /// Listens to an event that is told. The closure returns `()` or a `Result`.
    ///
    /// # Errors
    /// [`Error::Inactive`] if this plugin is not running, [`Error::EventMismatch`].
    pub fn on<E: Emit, O: Outcome>(
        &self,
        listener: impl Fn(&Self, &E) -> O + 'static,
    ) -> Result<Undo, Error> {
        self.on_at(0, listener)
    }

    /// As [`on`](Self::on), at a place: ascending, ties by registration.
    ///
    /// # Errors
    /// As [`on`](Self::on).
    pub fn on_at<E: Emit, O: Outcome>(
        &self,
        order: i32,
        listener: impl Fn(&Self, &E) -> O + 'static,
    ) -> Result<Undo, Error> {
        let call = move |ctx: &Self, event: &E| listener(ctx, event).outcome();
        self.listen::<Told<E>>(E::NAME, order, |ctx, live| Rc::new(Listener { ctx, live, call }))
    }

    /// Takes part in a parallel event.
    ///
    /// # Errors
    /// As [`on`](Self::on).
    pub fn on_parallel<E: Parallel>(
        &self,
        listener: impl AsyncFn(Self, Rc<E::Input>) -> Result<(), BoxError> + 'static,
    ) -> Result<Undo, Error> {
        self.on_parallel_at::<E>(0, listener)
    }

    /// As [`on_parallel`](Self::on_parallel), at a place.
    ///
    /// # Errors
    /// As [`on`](Self::on).
    pub fn on_parallel_at<E: Parallel>(
        &self,
        order: i32,
        listener: impl AsyncFn(Self, Rc<E::Input>) -> Result<(), BoxError> + 'static,
    ) -> Result<Undo, Error> {
        self.listen::<Asked<E::Input, ()>>(E::NAME, order, |ctx, live| {
            Rc::new(Listener { ctx, live, call: boxed(listener) })
        })
    }

    /// Answers a question; `None` (or another value without meaning) leaves it to the next.
    ///
    /// # Errors
    /// As [`on`](Self::on).
    pub fn answer<E: Serial>(
        &self,
        listener: impl AsyncFn(Self, Rc<E::Input>) -> Result<E::Answer, BoxError> + 'static,
    ) -> Result<Undo, Error> {
        self.answer_at::<E>(0, listener)
    }

    /// As [`answer`](Self::answer), at a place.
    ///
    /// # Errors
    /// As [`on`](Self::on).
    pub fn answer_at<E: Serial>(
        &self,
        order: i32,
        listener: impl AsyncFn(Self, Rc<E::Input>) -> Result<E::Answer, BoxError> + 'static,
    ) -> Result<Undo, Error> {
        self.listen::<Asked<E::Input, E::Answer>>(E::NAME, order, |ctx, live| {
            Rc::new(Listener { ctx, live, call: boxed(listener) })
        })
    }

    /// Wraps the work of a waterfall: `next.run()` is the rest of the chain.
    ///
    /// # Errors
    /// As [`on`](Self::on).
    pub fn intercept<E: Waterfall>(
        &self,
        listener: impl AsyncFn(Self, Rc<E::Input>, Next<E>) -> Result<E::Output, BoxError> + 'static,
    ) -> Result<Undo, Error> {
        self.intercept_at::<E>(0, listener)
    }

    /// As [`intercept`](Self::intercept), at a place: the lowest is the outermost.
    ///
    /// # Errors
    /// As [`on`](Self::on).
    pub fn intercept_at<E: Waterfall>(
        &self,
        order: i32,
        listener: impl AsyncFn(Self, Rc<E::Input>, Next<E>) -> Result<E::Output, BoxError> + 'static,
    ) -> Result<Undo, Error> {
        let listener = Rc::new(listener);
        let call = move |ctx: Self, input: Rc<E::Input>, next: Next<E>| -> Foreign<_> {
            let listener = listener.clone();
            Box::pin(async move { listener(ctx, input, next).await })
        };
        self.listen::<Wrapping<E>>(E::NAME, order, |ctx, live| {
            Rc::new(Listener { ctx, live, call })
        })
    }

    /// Tells all listeners. They have run when this returns; a failure is reported and stops nobody.
    pub fn emit<E: Emit>(&self, event: &E) {
        let Some(list) = self.kernel.listeners::<Told<E>>(E::NAME) else { return };
        list.walk(self.kernel.number(), |listener| {
            let outcome = guard::call(|| (listener.call)(&listener.ctx, event));
            if let Err(err) = outcome.unwrap_or_else(|panic| Err(panic.into())) {
                let (plugin, what) =
                    (listener.ctx.path(), What::ListenerFailed { event: E::NAME.into() });
                self.kernel.report(&Report { plugin, what, error: Some(err.into()) });
            }
        });
    }

    /// Starts all listeners, then waits for all of them.
    ///
    /// # Errors
    /// All failures, in the order of the listeners.
    pub async fn parallel<E: Parallel>(&self, input: Rc<E::Input>) -> Result<(), ParallelError> {
        let listeners = self.kernel.snapshot::<Asked<E::Input, ()>>(E::NAME);
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
        let failures = listeners
            .iter()
            .zip(failed)
            .filter_map(|(listener, err)| Some(listener.error(E::NAME, err?)));
        let failures: Vec<_> = failures.collect();
        if failures.is_empty() { Ok(()) } else { Err(ParallelError(failures)) }
    }

    /// Asks one listener after the other until one gives a meaningful answer.
    ///
    /// # Errors
    /// The first failure; later listeners are not asked.
    pub async fn serial<E: Serial>(
        &self,
        input: Rc<E::Input>,
    ) -> Result<Option<<E::Answer as Meaningful>::Value>, BoxError> {
        for listener in &*self.kernel.snapshot::<Asked<E::Input, E::Answer>>(E::NAME) {
            if !listener.live.get() {
                continue;
            }
            if let Some(answer) = listener.ask(input.clone()).await?.meaningful() {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    /// Runs the chain of listeners around `default`, the innermost.
    ///
    /// # Errors
    /// What the outermost listener returns, or the default if there is none.
    pub async fn waterfall<E: Waterfall>(
        &self,
        input: Rc<E::Input>,
        default: impl AsyncFn(Rc<E::Input>) -> Result<E::Output, BoxError> + 'static,
    ) -> Result<E::Output, BoxError> {
        let default = Rc::new(default);
        let tail = move |input| -> Foreign<_> {
            let default = default.clone();
            Box::pin(async move { default(input).await })
        };
        let listeners = self.kernel.snapshot::<Wrapping<E>>(E::NAME);
        Next { chain: Rc::new(Chain { listeners, tail: Box::new(tail) }), at: 0, input }.run().await
    }

    /// Number of listeners to an event.
    pub fn listener_count(&self, event: &str) -> usize {
        self.kernel.bus.lists.borrow().get(event).map_or(0, |list| list.len())
    }

    fn listen<F: ?Sized + 'static>(
        &self,
        event: &'static str,
        order: i32,
        listener: impl FnOnce(Self, Cell<bool>) -> Rc<Listener<F>>,
    ) -> Result<Undo, Error> {
        self.running()?;
        let list = self.kernel.bus.list::<F>(event)?;
        let key = (order, self.kernel.number());
        let listener = listener(self.clone(), Cell::new(true));
        self.effect(|| {
            list.slots.borrow_mut().insert(key, listener);
            let kernel = self.kernel.clone();
            move || kernel.bus.remove(event, &list, key)
        })
    }
}

/// The rest of a waterfall, as seen by one listener. It can be called again, kept, and called later.
pub struct Next<E: Waterfall> {
    chain: Rc<Chain<E>>,
    at: usize,
    input: Rc<E::Input>,
}

type Tail<E> = dyn Fn(Rc<<E as Waterfall>::Input>) -> Foreign<<E as Waterfall>::Output>;

struct Chain<E: Waterfall> {
    listeners: Rc<[Rc<Listener<Wrapping<E>>>]>,
    tail: Box<Tail<E>>,
}

impl<E: Waterfall> Clone for Next<E> {
    fn clone(&self) -> Self {
        Self { chain: self.chain.clone(), at: self.at, input: self.input.clone() }
    }
}

impl<E: Waterfall> Next<E> {
    /// Runs the rest of the chain.
    ///
    /// # Errors
    /// What the next listener, or the default, returns; it may be caught.
    pub async fn run(&self) -> Result<E::Output, BoxError> {
        self.run_with(self.input.clone()).await
    }

    /// Runs the rest of the chain with another input.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_with(
        &self,
        input: Rc<E::Input>,
    ) -> impl Future<Output = Result<E::Output, BoxError>> + use<E> {
        let live =
            (self.at..self.chain.listeners.len()).find(|at| self.chain.listeners[*at].live.get());
        let future = match live {
            None => (self.chain.tail)(input),
            Some(at) => {
                let listener = &self.chain.listeners[at];
                let next = Self { chain: self.chain.clone(), at: at + 1, input: input.clone() };
                (listener.call)(listener.ctx.clone(), input, next)
            }
        };
        Guarded::inherit(future)
    }
}

fn boxed<I: 'static, O: 'static>(
    listener: impl AsyncFn(Context, Rc<I>) -> Result<O, BoxError> + 'static,
) -> impl Fn(Context, Rc<I>) -> Foreign<O> {
    let listener = Rc::new(listener);
    move |ctx, input| {
        let listener = listener.clone();
        Box::pin(async move { listener(ctx, input).await })
    }
}

impl<I: 'static, O: 'static> Listener<Asked<I, O>> {
    fn ask(&self, input: Rc<I>) -> Guarded<O> {
        Guarded::inherit((self.call)(self.ctx.clone(), input))
    }
}
