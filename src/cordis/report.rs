//! Who says that something failed: the kernel, once, when it happens.
//!
//! Whoever awaits a failed plugin gets the error as well, but does not report it again. Where reports go is decided at
//! the root: a test records them, the program shows them on stderr.
//!
//! Omitted: Cordis has a service for logging. Plugins here use `tracing`.

use std::fmt;

use super::error::{BoxError, Error, Shared};
use super::fiber::FiberId;
use super::guard;
use super::kernel::Kernel;

/// One thing that went wrong without anybody there to be told.
#[derive(Debug, Clone)]
pub struct Report {
    /// Path of the plugin concerned: `loader > bash`.
    pub plugin: String,
    /// What happened.
    pub what: What,
    /// The cause, where there is one.
    pub error: Option<Shared>,
}

/// The kinds of reports.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "what is shown below says what the fields are")]
pub enum What {
    /// The config does not fit; the body never ran.
    ConfigRefused,
    /// A key of the config that the plugin does not know, and the nearest that it does.
    UnknownKey { path: String, near: Option<String> },
    /// The body returned an error or panicked.
    BodyFailed,
    /// The body failed in a load that no longer mattered: its service had gone, or a dispose had come.
    Superseded,
    /// A cleanup failed; the others ran.
    CleanupFailed,
    /// A listener of an `emit` failed; the others ran.
    ListenerFailed { event: String },
    /// A spawned task failed.
    TaskFailed { task: String },
    /// Something has been waiting for a long time. Nothing is done about it.
    LongWait { on: String, seconds: u64 },
    /// An event is in use with two payload types; a dispatch reached nobody.
    EventMismatch { event: String },
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.plugin, self.what)?;
        self.error.as_ref().map_or(Ok(()), |error| write!(f, ": {error}"))
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConfigRefused => f.write_str("cannot start"),
            Self::UnknownKey { path, near } => {
                let hint = near.iter().map(|near| format!("; did you mean `{near}`?"));
                write!(f, "does not know the config key `{path}`{}", hint.collect::<String>())
            }
            Self::BodyFailed => f.write_str("failed"),
            Self::Superseded => f.write_str("failed in a start that was no longer wanted"),
            Self::CleanupFailed => f.write_str("failed to clean up"),
            Self::ListenerFailed { event } => write!(f, "failed on `{event}`"),
            Self::TaskFailed { task } => write!(f, "failed in its task `{task}`"),
            Self::LongWait { on, seconds } => write!(f, "has been waiting {seconds} s for {on}"),
            Self::EventMismatch { event } => write!(f, "uses `{event}` with another payload"),
        }
    }
}

impl Kernel {
    pub(super) fn report(&self, fiber: FiberId, what: What, error: Option<Shared>) {
        self.send(&Report { plugin: self.path(fiber), what, error });
    }

    pub(super) fn send(&self, report: &Report) {
        // A place for reports that panics cannot be told so.
        drop(guard::call(|| (self.reports)(report)));
    }

    /// The path of the plugin stands in the report, so of the error only the cause is told.
    pub(super) fn report_error(&self, fiber: FiberId, what: What, error: &Error) {
        let cause = match error {
            Error::Body { source, .. } | Error::Cleanup { source, .. } => source.clone(),
            other => other.clone().into(),
        };
        self.report(fiber, what, Some(cause));
    }

    /// A cleanup that fails during a shutdown is also part of its result.
    pub(super) fn report_cleanup(&self, fiber: FiberId, error: Error) {
        self.report_error(fiber, What::CleanupFailed, &error);
        if let Some(failures) = &mut *self.failures.borrow_mut() {
            failures.push(error);
        }
    }

    pub(super) fn cleanup_error(&self, fiber: FiberId, source: BoxError) -> Error {
        Error::Cleanup { plugin: self.path(fiber), source: source.into() }
    }
}
