//! How a plugin learns that it is to stop: before its turn comes, so that what takes long can begin to end.

use std::future::{Future, poll_fn};
use std::iter::successors;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use crate::cordis::fiber::{Fiber, FiberId};
use crate::cordis::kernel::Kernel;

/// Resolves when this load is to end, or that of a fiber around it: what it leaves or undoes ends all that is inside.
pub(in crate::cordis) async fn stopping(kernel: Rc<Kernel>, owner: FiberId, run: u32) {
    let outwards = successors(kernel.fiber(owner), |it| kernel.fiber(it.parent?));
    let ends = outwards.map(|fiber| {
        // A fiber around another one cannot begin another load before that one has ended.
        let run = if fiber.id == owner { run } else { fiber.run.get() };
        Box::pin(to_end(kernel.clone(), fiber.id, run))
    });
    let mut ends: Vec<Pin<Box<_>>> = ends.collect();
    poll_fn(|cx| {
        let is_ended = ends.iter_mut().any(|it| it.as_mut().poll(cx).is_ready());
        if is_ended || ends.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

async fn to_end(kernel: Rc<Kernel>, id: FiberId, run: u32) {
    let Some(status) = kernel.fiber(id).map(|it| it.status.clone()) else { return };
    let goes_on = |fiber: Rc<Fiber>| fiber.admits(run) && fiber.is_on_target();
    status.wakers.until(|| !kernel.fiber(id).is_some_and(goes_on)).await;
}
