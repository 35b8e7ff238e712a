//! The handle of a mounted plugin: what whoever mounted it can ask and do.
//!
//! Watch for: `ready()` takes PENDING for rest, or a parent that awaits a child which needs what the parent provides
//! would wait for ever.

use std::future::IntoFuture;
use std::rc::Rc;
use std::task::{self, Poll};

use super::effect::Cleanup;
use super::error::Error;
use super::fiber::{FiberId, State, Status};
use super::guard::LocalBoxFuture;
use super::kernel::Kernel;
use super::waits::{self, Target, Waited};

/// The handle of a mounted plugin. Dropping it does nothing.
#[derive(Clone)]
pub struct Mount {
    pub(super) kernel: Rc<Kernel>,
    pub(super) id: FiberId,
    pub(super) status: Rc<Status>,
}

impl Mount {
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
        self.status.error.get().map(|err| (**err).clone())
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
        self.status.observers.borrow_mut().push(Rc::new(observer));
    }

    /// Waits until the plugin rests. Waiting for services is rest, too, or a parent could not await a child that needs
    /// what the parent provides.
    ///
    /// # Errors
    /// The error of the config or the body, at each call; [`Error::WouldDeadlock`] if the plugin waits for the caller.
    pub async fn ready(&self) -> Result<State, Error> {
        match self.settled().await {
            Waited::Requested => Err(Error::WouldDeadlock { plugin: self.kernel.path(self.id) }),
            Waited::Done => self.error().map_or_else(|| Ok(self.state()), Err),
        }
    }

    /// Waits until the plugin rests, whatever has become of it.
    pub async fn settled(&self) -> Waited {
        waits::give_way(&self.kernel, Target::Fiber(self.id), |cx| {
            self.status.poll(cx, |it| it.rests.get())
        })
        .await
    }

    /// Unmounts the plugin for good: acts now, awaiting the end is optional. A second call returns at once.
    pub fn dispose(&self) -> Disposing {
        let first = self.kernel.fiber(self.id).is_some_and(|fiber| self.kernel.retire(&fiber));
        Disposing { mount: first.then(|| self.clone()) }
    }
}

impl Status {
    fn poll(&self, cx: &mut task::Context<'_>, reached: impl Fn(&Self) -> bool) -> Poll<()> {
        if reached(self) { Poll::Ready(()) } else { self.wakers.wait(cx) }
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
            let Some(mount) = self.mount else { return Waited::Done };
            let gone = |status: &Status| status.state.get() == State::Disposed;
            waits::give_way(&mount.kernel, Target::Fiber(mount.id), |cx| {
                mount.status.poll(cx, gone)
            })
            .await
        })
    }
}

/// The cleanup of the effect that a child is to its parent.
pub(super) fn dispose_child(parent: FiberId, mount: Mount) -> Cleanup {
    Cleanup::future(move || {
        if let Some(fiber) = mount.kernel.fiber(mount.id) {
            mount.kernel.retire(&fiber);
        }
        async move {
            let gone = |status: &Status| status.state.get() == State::Disposed;
            let target = Target::Fiber(mount.id);
            waits::hold(&mount.kernel, parent, target, |cx| mount.status.poll(cx, gone)).await;
            Ok(())
        }
    })
}
