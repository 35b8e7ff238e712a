//! A waterfall on its way: the chain of listeners, and `next`, the rest of it.

use std::future::Future;
use std::rc::Rc;

use super::Waterfall;
use super::bus::Listener;
use crate::cordis::context::Context;
use crate::cordis::error::BoxError;
use crate::cordis::guard::{Foreign, Guarded};

pub(super) type Wrapping<E> =
    dyn Fn(Context, Rc<<E as Waterfall>::Input>, Next<E>) -> Foreign<<E as Waterfall>::Output>;
type Tail<E> = dyn Fn(Rc<<E as Waterfall>::Input>) -> Foreign<<E as Waterfall>::Output>;
type Heard<E> = dyn Fn(&Rc<<E as Waterfall>::Input>, &Result<<E as Waterfall>::Output, BoxError>);

/// The rest of a waterfall, as seen by one listener. It can be called again, kept, and called later.
// Differs: in Cordis all listeners share one cursor, so that a second call goes on where the first ended.
pub struct Next<E: Waterfall> {
    chain: Rc<Chain<E>>,
    at: usize,
    input: Rc<E::Input>,
}

struct Chain<E: Waterfall> {
    listeners: Rc<[Rc<Listener<Wrapping<E>>>]>,
    tail: Box<Tail<E>>,
    /// Told of what each listener returns.
    heard: Box<Heard<E>>,
}

impl<E: Waterfall> Clone for Next<E> {
    fn clone(&self) -> Self {
        Self { chain: self.chain.clone(), at: self.at, input: self.input.clone() }
    }
}

impl<E: Waterfall> Next<E> {
    /// The whole chain.
    pub(super) fn first(
        listeners: Rc<[Rc<Listener<Wrapping<E>>>]>,
        default: impl AsyncFn(Rc<E::Input>) -> Result<E::Output, BoxError> + 'static,
        heard: impl Fn(&Rc<E::Input>, &Result<E::Output, BoxError>) + 'static,
        input: Rc<E::Input>,
    ) -> Self {
        let default = Rc::new(default);
        let tail = move |input| -> Foreign<_> {
            let default = default.clone();
            Box::pin(async move { default(input).await })
        };
        let (tail, heard) = (Box::new(tail), Box::new(heard));
        Self { chain: Rc::new(Chain { listeners, tail, heard }), at: 0, input }
    }

    /// Runs the rest of the chain. The result, a failure too, is the next listener's, or that of the default.
    pub fn run(&self) -> impl Future<Output = Result<E::Output, BoxError>> + use<E> {
        self.run_with(self.input.clone())
    }

    /// Runs the rest of the chain with another input.
    pub fn run_with(
        &self,
        input: Rc<E::Input>,
    ) -> impl Future<Output = Result<E::Output, BoxError>> + use<E> {
        let listeners = &self.chain.listeners;
        let live = (self.at..listeners.len()).find(|at| listeners[*at].live.get());
        let (future, heard) = match live {
            None => ((self.chain.tail)(input), None),
            Some(at) => {
                let next = Self { chain: self.chain.clone(), at: at + 1, input: input.clone() };
                let future = (listeners[at].call)(listeners[at].ctx.clone(), input.clone(), next);
                (future, Some((self.chain.clone(), input)))
            }
        };
        let guarded = Guarded::inherit(future);
        async move {
            let outcome = guarded.await;
            if let Some((chain, input)) = heard {
                (chain.heard)(&input, &outcome);
            }
            outcome
        }
    }
}
