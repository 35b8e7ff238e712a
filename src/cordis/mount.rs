//! The handle of a mounted plugin: what whoever mounted it can ask and do.
//!
//! Watch for: `ready()` takes PENDING for rest, or a parent that awaits a child which needs what the parent provides
//! would wait for ever.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::IntoFuture;
use std::rc::Rc;

use super::effect::Cleanup;
use super::error::Error;
use super::fiber::{Fiber, FiberId, State};
use super::guard::{self, LocalBoxFuture};
use super::kernel::Kernel;
use super::waits::{self, Target, Waited, Wakers};

/// The handle of a mounted plugin. Dropping it does nothing.
#[derive(Clone)]
pub struct Mount {
    kernel: Rc<Kernel>,
    id: FiberId,
    status: Rc<Status>,
}

impl Mount {
    pub(super) fn of(kernel: &Rc<Kernel>, fiber: &Fiber) -> Self {
        Self { kernel: kernel.clone(), id: fiber.id, status: fiber.status.clone() }
    }

    pub(super) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Names the fiber.
    pub fn id(&self) -> FiberId {
        self.id
    }

    /// Where the plugin stands now.
    pub fn state(&self) -> State {
        self.status.state.get()
    }

    /// Why the plugin failed, if it did.
    pub fn error(&self) -> Option<Error> {
        self.status.error()
    }

    /// Names of required services that are not there.
    pub fn missing(&self) -> Vec<String> {
        self.kernel.fiber(self.id).map(|fiber| fiber.missing()).unwrap_or_default()
    }

    /// Number of effects the plugin has registered.
    pub fn effect_count(&self) -> usize {
        self.kernel.fiber(self.id).map_or(0, |fiber| fiber.effects.borrow().len())
    }

    /// Calls `observer` at every change of state. It cannot influence the plugin.
    pub fn observe(&self, observer: impl Fn(State) + 'static) {
        if self.state() != State::Disposed {
            self.status.observers.borrow_mut().push(Rc::new(observer));
        }
    }

    /// Waits until the plugin rests, and says how. Waiting for services is rest, too. The error of the config or the body
    /// comes back at each call; [`Error::WouldDeadlock`] if the plugin waits for the caller.
    pub async fn ready(&self) -> Result<State, Error> {
        match self.settled().await {
            Waited::Requested => Err(Error::WouldDeadlock { plugin: self.kernel.path(self.id) }),
            Waited::Done => self.error().map_or_else(|| Ok(self.state()), Err),
        }
    }

    /// Waits until the plugin rests, whatever has become of it.
    pub async fn settled(&self) -> Waited {
        let rests = self.status.wakers.until(|| self.status.rests.get());
        waits::give_way(&self.kernel, Target::Fiber(self.id), rests).await
    }

    /// Unmounts the plugin for good: acts now, awaiting the end is optional. A second call returns at once.
    pub fn dispose(&self) -> Disposing {
        let first = self.kernel.fiber(self.id).is_some_and(|fiber| self.kernel.retire(&fiber));
        Disposing { mount: first.then(|| self.clone()) }
    }
}

/// A dispose that has been requested.
pub struct Disposing {
    mount: Option<Mount>,
}

impl IntoFuture for Disposing {
    type Output = Waited;
    type IntoFuture = LocalBoxFuture<'static, Waited>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Some(Mount { kernel, id, status }) = self.mount else { return Waited::Done };
            waits::give_way(&kernel, Target::Fiber(id), status.gone()).await
        })
    }
}

/// The cleanup of the effect that a child is to its parent.
pub(super) fn dispose_child(parent: FiberId, child: Mount) -> Cleanup {
    Cleanup::future(move || {
        drop(child.dispose());
        async move {
            let Mount { kernel, id, status } = child;
            waits::hold(&kernel, parent, Target::Fiber(id), status.gone()).await;
            Ok(())
        }
    })
}

/// The part of a fiber that outlives it, shared with its handles.
pub(super) struct Status {
    pub(super) state: Cell<State>,
    /// Nothing moves, and nothing is marked to move.
    pub(super) rests: Cell<bool>,
    pub(super) error: OnceCell<Box<Error>>,
    /// Woken whenever one of these changes, or the target moves.
    pub(super) wakers: Wakers,
    observers: RefCell<Vec<Observer>>,
}

type Observer = Rc<dyn Fn(State)>;

impl Default for Status {
    fn default() -> Self {
        let (state, rests) = (Cell::new(State::Pending), Cell::new(false));
        let (error, wakers, observers) = Default::default();
        Self { state, rests, error, wakers, observers }
    }
}

impl Status {
    pub(super) fn error(&self) -> Option<Error> {
        self.error.get().map(|error| (**error).clone())
    }

    /// Tells everybody where the fiber stands. An observer is foreign code: it can neither fail the fiber nor hold a borrow
    /// open; and after the last state none is kept, or one that holds a handle would keep itself alive.
    pub(super) fn show(&self, state: State) {
        if self.state.replace(state) == state {
            return;
        }
        self.wakers.wake();
        let observers = match state {
            State::Disposed => self.observers.take(),
            _ => self.observers.borrow().clone(),
        };
        for observer in observers {
            drop(guard::call(move || observer(state)));
        }
    }

    /// Nothing moves any more: those who wait are told.
    pub(super) fn rest(&self) {
        self.rests.set(true);
        self.wakers.wake();
    }

    fn gone(&self) -> impl Future<Output = ()> + Unpin {
        self.wakers.until(|| self.state.get() == State::Disposed)
    }
}
