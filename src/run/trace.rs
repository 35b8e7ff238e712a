//! `--verbose`: what the program says to itself, on stderr.
//!
//! Part of `run`.
//! Watch for: such a line may repeat what a server or a file said, so it is made harmless like everything else. And while
//! a line is typed or half-written, only the console knows where on the screen there is room.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::{Rc, Weak};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::harness::cli::console::Console;
use crate::harness::cli::text::harmless;

thread_local! {
    /// The console of this thread, once there is one: whoever shows events is the same for all threads.
    static CONSOLE: RefCell<Weak<Console>> = const { RefCell::new(Weak::new()) };
}

/// Shows the events of this crate, none of others.
pub(super) fn show(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let only_ours = Targets::new().with_target(env!("CARGO_CRATE_NAME"), level);
    let lines =
        tracing_subscriber::fmt::layer().with_writer(|| Lines).with_ansi(false).without_time();
    tracing_subscriber::registry().with(only_ours).with(lines).init();
}

/// From now on the lines of this thread go through its console.
pub(super) fn through(console: &Rc<Console>) {
    CONSOLE.set(Rc::downgrade(console));
}

/// Each write is one whole line.
struct Lines;

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        match CONSOLE.try_with(|it| it.borrow().upgrade()) {
            Ok(Some(console)) => console.trace(&text),
            Ok(None) | Err(_) => io::stderr().write_all(harmless(&text).as_bytes())?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
