//! How long a wait may last, and who watches over it.

use std::{future::Future, pin::Pin, time::Duration};

use tokio::{
    select,
    time::{Instant, Sleep, sleep_until},
};

/// No number of milliseconds may be too large to be added to a time.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);

/// How long a wait may last, and which setting says so.
pub(super) struct Limit {
    pub left: Duration,
    pub millis: u64,
    pub setting: &'static str,
}

impl Limit {
    pub(super) fn of(millis: u64, setting: &'static str) -> Self {
        Self { left: Duration::from_millis(millis), millis, setting }
    }

    /// When the wait that began then is too long.
    pub(super) fn end(&self, then: Instant) -> Instant {
        then + self.left.min(FOR_EVER)
    }
}

/// A timer for many short waits, one after another. It is set anew when it rings too early, not with each wait.
pub(super) struct Alarm(Pin<Box<Sleep>>);

impl Alarm {
    pub(super) fn new(end: Instant) -> Self {
        Self(Box::pin(sleep_until(end)))
    }

    /// What the event brings, unless it comes too late.
    pub(super) async fn before<T>(
        &mut self,
        end: Instant,
        event: impl Future<Output = T>,
    ) -> Option<T> {
        if end < self.0.deadline() {
            self.0.as_mut().reset(end);
        }
        select! {
            biased;
            it = event => Some(it),
            () = self.rings(end) => None,
        }
    }

    async fn rings(&mut self, end: Instant) {
        loop {
            self.0.as_mut().await;
            if Instant::now() >= end {
                return;
            }
            self.0.as_mut().reset(end);
        }
    }
}
