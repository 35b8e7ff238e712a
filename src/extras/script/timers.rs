//! Part of `script`: when the engine is to be woken, and how long its thread has worked.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use nix::time::{ClockId, clock_gettime};

/// Nobody needs more at a time.
const MOST: usize = 10_000;
/// Later than this is never.
const LONGEST: f64 = 1e12;

/// All timers that are set, by number and by time.
#[derive(Default)]
pub(super) struct Timers(RefCell<Set>);

#[derive(Default)]
struct Set {
    order: BTreeSet<(Instant, u32)>,
    due: HashMap<u32, Instant>,
}

impl Timers {
    /// Sets one, or sets it anew.
    pub(super) fn set(&self, timer: u32, ms: f64) -> Result<(), String> {
        self.clear(timer);
        let mut set = self.0.borrow_mut();
        if set.due.len() >= MOST {
            return Err(format!("{MOST} timers are set already"));
        }
        let ms = if ms.is_nan() { 0.0 } else { ms.clamp(0.0, LONGEST) };
        let due = Instant::now() + Duration::from_secs_f64(ms / 1e3);
        set.due.insert(timer, due);
        set.order.insert((due, timer));
        Ok(())
    }

    /// It will not come any more.
    pub(super) fn clear(&self, timer: u32) {
        let mut set = self.0.borrow_mut();
        if let Some(due) = set.due.remove(&timer) {
            set.order.remove(&(due, timer));
        }
    }

    /// How long until the next one, if there is one.
    pub(super) fn pause(&self) -> Option<Duration> {
        let due = self.0.borrow().order.first()?.0;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// Takes one that is due.
    pub(super) fn take_due(&self) -> Option<u32> {
        let mut set = self.0.borrow_mut();
        let (due, timer) = *set.order.first()?;
        if due > Instant::now() {
            return None;
        }
        set.order.pop_first();
        set.due.remove(&timer);
        Some(timer)
    }
}

/// What this thread has used of a processor.
pub(super) fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}
