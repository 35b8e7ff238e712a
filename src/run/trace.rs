//! `--verbose`: what the program says to itself, on stderr.
//!
//! Part of `run`.
//! Watch for: such a line may repeat what a server or a file said, so it is made harmless like everything else.

use std::io::{self, Write};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::harness::cli::text::harmless;

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

/// Each write is one whole line.
struct Lines;

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        io::stderr().write_all(harmless(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
