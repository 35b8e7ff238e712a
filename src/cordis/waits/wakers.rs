//! Those who wait for one thing to change.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

use crate::cordis::effect::Slots;

/// A list of those who wait. Empty, it takes no room on the heap.
#[derive(Default)]
pub(in crate::cordis) struct Wakers {
    waiting: RefCell<Slots<u64, Waker>>,
    last: Cell<u64>,
}

impl Wakers {
    /// Wakes all of them.
    pub(in crate::cordis) fn wake(&self) {
        if self.waiting.borrow().len() > 0 {
            self.waiting.take().into_values().for_each(Waker::wake);
        }
    }

    /// Waits until `reached` holds; it is asked again at each wake.
    pub(in crate::cordis) async fn until(&self, reached: impl Fn() -> bool) {
        let mut place = Place { wakers: self, key: 0 };
        poll_fn(|cx| {
            if reached() {
                return Poll::Ready(());
            }
            place.take(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// The place of one who waits. It is given up when the wait ends, however it ends: a list must not grow with those who
/// have left.
struct Place<'a> {
    wakers: &'a Wakers,
    key: u64,
}

impl Place<'_> {
    fn take(&mut self, waker: Waker) {
        self.leave();
        self.key = self.wakers.last.get() + 1;
        self.wakers.last.set(self.key);
        self.wakers.waiting.borrow_mut().insert(self.key, waker);
    }

    fn leave(&self) {
        let waker = self.wakers.waiting.borrow_mut().remove(self.key);
        // A waker is foreign code: it is dropped with no borrow open.
        drop(waker);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}
