//! The signals that concern a whole program.
//!
//! Part of `run`.
//! Watch for: the line editor must find a handler of Ctrl-C in place, so they are heard from the beginning.

use std::fs;
use std::future::pending;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::harness::cli::status::{HANGUP, INTERRUPTED, TERMINATED};

pub(super) struct Signals {
    hangup: Option<Signal>,
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
}

impl Signals {
    pub(super) fn listen() -> Self {
        Signals {
            hangup: listen(SignalKind::hangup()),
            interrupt: listen(SignalKind::interrupt()),
            terminate: listen(SignalKind::terminate()),
        }
    }

    /// The next one, as the exit status that belongs to it.
    pub(super) async fn next(&mut self) -> u8 {
        tokio::select! {
            biased;
            () = received(&mut self.interrupt) => INTERRUPTED,
            () = received(&mut self.terminate) => TERMINATED,
            () = received(&mut self.hangup) => HANGUP,
        }
    }
}

/// Nothing for a signal that the program was started to ignore: `nohup` wants that, and so do jobs in the background.
fn listen(kind: SignalKind) -> Option<Signal> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|it| it.strip_prefix("SigIgn:\t"));
    let ignored = ignored.and_then(|it| u64::from_str_radix(it, 16).ok()).unwrap_or_default();
    let is_ignored = ignored >> (kind.as_raw_value() - 1) & 1 == 1;
    (!is_ignored).then(|| signal(kind).expect("this signal can be handled, and a runtime is there"))
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => pending().await,
    }
}
