//! Those who wait for one thing to change.

use std::cell::{Cell, RefCell};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

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

    /// Notes whom to wake: at the place that is held, or at a new one if all have been woken since.
    fn wait(&self, key: u64, waker: Waker) -> u64 {
        let mut waiting = self.waiting.borrow_mut();
        if let Some(place) = waiting.get_mut(key) {
            let before = mem::replace(place, waker);
            drop(waiting);
            drop(before);
            return key;
        }
        let key = self.last.get() + 1;
        self.last.set(key);
        waiting.insert(key, waker);
        key
    }

    /// Waits until `reached` holds; it is asked again at each wake.
    pub(in crate::cordis) fn until<F: Fn() -> bool + Unpin>(&self, reached: F) -> Until<'_, F> {
        Until { wakers: self, key: 0, reached }
    }
}

/// One who waits. Its place is given up when the wait ends, however it ends: a list must not grow with those who have left.
// By hand, because as many of these may be on the heap as there are plugins, and an `async fn` keeps all of it twice.
pub(in crate::cordis) struct Until<'a, F> {
    wakers: &'a Wakers,
    key: u64,
    reached: F,
}

impl<F: Fn() -> bool + Unpin> Future for Until<'_, F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if (self.reached)() {
            return Poll::Ready(());
        }
        self.key = self.wakers.wait(self.key, cx.waker().clone());
        Poll::Pending
    }
}

impl<F> Drop for Until<'_, F> {
    fn drop(&mut self) {
        let waker = self.wakers.waiting.borrow_mut().remove(self.key);
        // A waker is foreign code: it is dropped with no borrow open.
        drop(waker);
    }
}
