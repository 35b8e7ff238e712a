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
        let plugin = &self.plugin;
        match &self.what {
            What::ConfigRefused => {}
            What::UnknownKey { path, near: None } => {
                write!(f, "{plugin}: unknown config key `{path}`")?
            }
            What::UnknownKey { path, near: Some(near) } => {
                write!(f, "{plugin}: unknown config key `{path}`; did you mean `{near}`?")?;
            }
            What::BodyFailed => write!(f, "{plugin} failed")?,
            What::Superseded => write!(f, "{plugin} failed in a start that was no longer wanted")?,
            What::CleanupFailed => write!(f, "{plugin} failed to clean up")?,
            What::ListenerFailed { event } => write!(f, "{plugin} failed on `{event}`")?,
            What::TaskFailed { task } => write!(f, "{plugin}: the task `{task}` failed")?,
            What::LongWait { on, seconds } => {
                write!(f, "{plugin} has been waiting {seconds} s for {on}")?
            }
            What::EventMismatch { event } => {
                write!(f, "{plugin}: the event `{event}` is in use with another payload")?;
            }
        }
        match &self.error {
            Some(error) if self.what == What::ConfigRefused => write!(f, "{plugin}: {error}"),
            Some(error) => write!(f, ": {error}"),
            None => Ok(()),
        }
    }
}
