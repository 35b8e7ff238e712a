//! Part of `script`: what a script prints goes to the diagnostics, which `--verbose` shows.
//!
//! Watch for: the line is handed to the thread of the agent. Only there is known what of it is secret, and where on the
//! screen there is room.

use serde_json::Value;
use tracing::Level;

use super::{
    border::Border,
    engine::{Answer, Request, Telling},
};

const TARGET: &str = "nano_cordis::script";

impl Border {
    /// A script prints a line. If nobody wants to see it, that costs nothing.
    pub(super) fn print(&self, level: String, text: String) {
        if !is_shown(&level) {
            return;
        }
        let args = vec![level.into(), text.into()];
        let request = Request { operation: "log".to_owned(), args, answer: Answer::Later(0) };
        // Whoever listens may be gone.
        if self.loading.get() {
            drop(self.teller.send(Box::new(Telling::Said(request))));
        } else {
            drop(self.outbox.blocking_send(Box::new(request)));
        }
    }
}

/// One line, at a level of the console.
pub(super) fn log(args: &[Value]) {
    let [Value::String(level), Value::String(text)] = args else { return };
    match level.as_str() {
        "error" => tracing::error!(target: TARGET, "{text}"),
        "warn" => tracing::warn!(target: TARGET, "{text}"),
        "debug" => tracing::debug!(target: TARGET, "{text}"),
        _ => tracing::info!(target: TARGET, "{text}"),
    }
}

fn is_shown(level: &str) -> bool {
    match level {
        "error" => tracing::enabled!(target: TARGET, Level::ERROR),
        "warn" => tracing::enabled!(target: TARGET, Level::WARN),
        "debug" => tracing::enabled!(target: TARGET, Level::DEBUG),
        _ => tracing::enabled!(target: TARGET, Level::INFO),
    }
}
