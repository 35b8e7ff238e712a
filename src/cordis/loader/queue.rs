//! One request after the other, whoever asks and however often.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
};

use tokio::sync::Notify;

use crate::cordis::ModuleKey;

/// What is to be looked at again.
#[derive(Debug, Clone, Default)]
pub(super) struct Request {
    /// The list.
    pub(super) file: bool,
    /// Modules that were saved.
    pub(super) modules: BTreeSet<ModuleKey>,
}

impl Request {
    fn is_empty(&self) -> bool {
        !self.file && self.modules.is_empty()
    }
}

/// Requests that nobody has taken yet are one request.
#[derive(Default)]
pub(super) struct Queue {
    pending: RefCell<Request>,
    busy: Cell<bool>,
    wake: Notify,
    idle: Notify,
}

impl Queue {
    pub(super) fn add(&self, request: Request) {
        let mut pending = self.pending.take();
        pending.file |= request.file;
        pending.modules.extend(request.modules);
        self.pending.replace(pending);
        self.wake.notify_one();
    }

    /// Waits until something may have been added.
    pub(super) async fn added(&self) {
        self.wake.notified().await;
    }

    /// Works off what is there and what is added meanwhile.
    pub(super) async fn drain(&self, work: impl AsyncFn(Request)) {
        self.busy.set(true);
        while !self.pending.borrow().is_empty() {
            let request = self.pending.take();
            work(request).await;
        }
        self.busy.set(false);
        self.idle.notify_waiters();
    }

    pub(super) fn is_idle(&self) -> bool {
        !self.busy.get() && self.pending.borrow().is_empty()
    }

    /// Waits until nothing is queued and nothing is in work.
    pub(super) async fn idle(&self) {
        loop {
            let idle = self.idle.notified();
            if self.is_idle() {
                return;
            }
            idle.await;
        }
    }
}
