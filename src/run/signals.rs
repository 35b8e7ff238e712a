//! The signals that concern a whole program.
//!
//! Part of `run`.
//! Watch for: the line editor must find a handler of Ctrl-C in place, so they are heard from the beginning.

use std::fs;
use std::future::poll_fn;
use std::task::Poll;

use nix::libc;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// All that would end a program which does not listen, and that somebody sends who wants its end: a terminal, a person,
/// a scheduler whose time is up. Of two at once the first of this list counts.
const HEARD: [SignalKind; 7] = [
    SignalKind::interrupt(),
    SignalKind::terminate(),
    SignalKind::hangup(),
    SignalKind::quit(),
    SignalKind::user_defined1(),
    SignalKind::user_defined2(),
    SignalKind::from_raw(libc::SIGXCPU),
];

pub(super) struct Signals(Vec<(u8, Signal)>);

impl Signals {
    pub(super) fn listen() -> Self {
        Signals(HEARD.into_iter().filter_map(listen).collect())
    }

    /// The next one, as the exit status that belongs to it.
    pub(super) async fn next(&mut self) -> u8 {
        poll_fn(|cx| {
            let came = self.0.iter_mut().find_map(|(status, signal)| {
                matches!(signal.poll_recv(cx), Poll::Ready(Some(()))).then_some(*status)
            });
            came.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// Nothing for a signal that the program was started to ignore: `nohup` wants that, and so do jobs in the background.
fn listen(kind: SignalKind) -> Option<(u8, Signal)> {
    let number = kind.as_raw_value();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|it| it.strip_prefix("SigIgn:\t"));
    let ignored = ignored.and_then(|it| u64::from_str_radix(it, 16).ok()).unwrap_or_default();
    let status = u8::try_from(128 + number).expect("signals have small numbers");
    let hear = || signal(kind).expect("this signal can be handled, and a runtime is there");
    (ignored >> (number - 1) & 1 == 0).then(|| (status, hear()))
}
