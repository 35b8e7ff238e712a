//! `--verbose`: what the program says to itself, on stderr.
//!
//! Part of `run`.
//! Watch for: such a line may repeat what a server, a file or a script said, so it is made harmless like everything else,
//! and holds no secret. And while a line is typed or half-written, only the console knows where there is room.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::{Rc, Weak};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::harness::cli::console::Console;
use crate::harness::cli::text::harmless;
use crate::harness::env::{Env, mask::Mask};

thread_local! {
    /// The console of this thread, once there is one, and who knows what is secret: whoever shows events is the same for
    /// all threads.
    static CONSOLE: RefCell<(Weak<Console>, Weak<Env>)> = const { RefCell::new((Weak::new(), Weak::new())) };
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
pub(super) fn through(console: &Rc<Console>, env: &Rc<Env>) {
    CONSOLE.set((Rc::downgrade(console), Rc::downgrade(env)));
}

/// Each write is one whole line.
struct Lines;

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let here = CONSOLE.try_with(|it| it.borrow().clone()).unwrap_or_default();
        let secrets = here.1.upgrade().map(|it| it.secrets()).unwrap_or_default();
        let text = Mask::new(secrets).text(&text).into_owned();
        match here.0.upgrade() {
            Some(console) => console.trace(&text),
            None => io::stderr().write_all(harmless(&text).as_bytes())?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
