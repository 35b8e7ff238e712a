//! Part of `script`: looking for a moment before falling asleep.
//!
//! Two threads that take turns would wake each other for every word, which takes several times as long as what most
//! scripts do. So the thread of a script stays awake for a moment after it heard something, and as long as it is awake
//! the agent looks a few times for an answer before it waits; meanwhile it works on everything else. Who has nothing to
//! hear sleeps.

use std::{
    sync::LazyLock,
    thread::{self, available_parallelism},
    time::{Duration, Instant},
};

use tokio::{
    sync::oneshot::{Receiver, error::TryRecvError},
    task::yield_now,
};

/// The thread of a script stays awake for so long.
const SCRIPT: Duration = Duration::from_micros(50);
/// And the agent looks for an answer for so long.
const AGENT: Duration = Duration::from_micros(30);
/// On a single processor the other one cannot work while somebody looks.
static IS_ALONE: LazyLock<bool> =
    LazyLock::new(|| available_parallelism().is_ok_and(|it| it.get() == 1));

/// Looks for something, at least once, and until then at the longest. Whoever else wants the processor gets it.
pub(super) fn look<T>(until: Option<Duration>, mut at: impl FnMut() -> Option<T>) -> Option<T> {
    let longest = if *IS_ALONE { Duration::ZERO } else { until.unwrap_or(SCRIPT).min(SCRIPT) };
    let began = Instant::now();
    loop {
        let found = at();
        if found.is_some() || began.elapsed() >= longest {
            return found;
        }
        thread::yield_now();
    }
}

/// What comes, which is looked for a few times first. None if nothing can come any more.
pub(super) async fn receive<T>(mut from: Receiver<T>) -> Option<T> {
    let began = Instant::now();
    while !*IS_ALONE && began.elapsed() < AGENT {
        match from.try_recv() {
            Ok(it) => return Some(it),
            Err(TryRecvError::Closed) => return None,
            Err(TryRecvError::Empty) => yield_now().await,
        }
    }
    from.await.ok()
}
