//! Who says that something failed: the kernel, once, when it happens.
//!
//! Whoever awaits a failed plugin gets the error as well, but does not report it again. Where reports go is decided at
//! the root: a test records them, the program shows them on stderr.

use std::fmt;

use super::error::Shared;

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
pub enum What {
    /// The config does not fit; the body never ran.
    ConfigRefused,
    /// A key of the config is not known to the plugin.
    UnknownKey {
        /// Dotted path of the key.
        path: String,
        /// The nearest key that is known.
        near: Option<String>,
    },
    /// The body returned an error or panicked.
    BodyFailed,
    /// The body failed in a load that no longer mattered: its service had gone, or a dispose had come.
    Superseded,
    /// A cleanup failed; the others ran.
    CleanupFailed,
    /// A listener of an `emit` failed; the others ran.
    ListenerFailed {
        /// Name of the event.
        event: String,
    },
    /// A spawned task failed.
    TaskFailed {
        /// Name of the task.
        task: String,
    },
    /// Something has been waiting for a long time. Nothing is done about it.
    LongWait {
        /// What it waits for.
        on: String,
        /// For how long.
        seconds: u64,
    },
    /// An event is in use with two payload types; a dispatch reached nobody.
    EventMismatch {
        /// Name of the event.
        event: String,
    },
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
