//! What can go wrong in the kernel: one enum, each variant a fact with its evidence.
//!
//! A plugin's own error crosses the kernel unread, as the source of `Body`, `Setup` or `Cleanup`. Errors are cheap to
//! clone, because whoever awaits a failed plugin gets the same one, each time.

use std::{error::Error as StdError, fmt, ops::Deref, rc::Rc};

/// An error of somebody else's code on its way through the kernel. Not `Send`: everything here lives on one thread.
pub type BoxError = Box<dyn StdError>;

/// What the kernel refuses or reports.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Something was registered on a context whose plugin is not running, or is running anew.
    #[error("`{plugin}` is not running, so nothing can be registered on it")]
    Inactive {
        /// Path of the plugin.
        plugin: String,
    },
    /// A service was read that neither the plugin nor one that encloses it declares.
    #[error("`{plugin}` reads the service `{service}` without declaring it")]
    Undeclared {
        /// Name of the service.
        service: String,
        /// Path of the reader.
        plugin: String,
    },
    /// A declared service is not there now.
    #[error("the service `{service}`, which `{plugin}` needs, is not there")]
    Unavailable {
        /// Name of the service.
        service: String,
        /// Path of the reader.
        plugin: String,
    },
    /// The service exists, but is of another type than the reader expects.
    #[error("the service `{service}` is not of the type that `{plugin}` expects")]
    TypeMismatch {
        /// Name of the service.
        service: String,
        /// Path of the reader.
        plugin: String,
    },
    /// Two plugins provide one name.
    #[error("the service `{service}` is provided by `{owner}` already")]
    DuplicateService {
        /// Name of the service.
        service: String,
        /// Path of the plugin that holds the name.
        owner: String,
    },
    /// The name would shadow a part of the context.
    #[error("a service cannot be called `{service}`, because a context has a method of that name")]
    ReservedName {
        /// The refused name.
        service: String,
    },
    /// One event name is used with two payload types or two ways of dispatch.
    #[error("the event `{event}` is in use with another payload or another way of dispatch")]
    EventMismatch {
        /// Name of the event.
        event: String,
    },
    /// The setup closure of an effect failed; nothing was registered.
    #[error("`{plugin}` could not set up an effect: {source}")]
    Setup {
        /// Path of the plugin.
        plugin: String,
        /// What the closure returned.
        source: Shared,
    },
    /// The config does not fit the plugin; its body never ran.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The body of a plugin returned an error or panicked; what it had registered is undone.
    #[error("`{plugin}` failed: {source}")]
    Body {
        /// Path of the plugin.
        plugin: String,
        /// What the body returned.
        source: Shared,
    },
    /// A cleanup failed; the cleanups after it ran all the same.
    #[error("`{plugin}` failed to clean up: {source}")]
    Cleanup {
        /// Path of the plugin.
        plugin: String,
        /// What the cleanup returned.
        source: Shared,
    },
    /// A wait would never end, because what is awaited waits for the one who asks.
    #[error("`{plugin}` waits, directly or through others, for the one who would wait for it")]
    WouldDeadlock {
        /// Path of the plugin that was to be awaited.
        plugin: String,
    },
}

/// All faults of one config, found in one pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("config of `{plugin}`: {}", faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("; "))]
pub struct ConfigError {
    /// Name of the plugin.
    pub plugin: String,
    /// At least one.
    pub faults: Vec<Fault>,
}

/// One fault in a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Dotted path, list indexes as numbers: `inner.deep`, `list.2`; empty for the config as a whole.
    pub path: String,
    /// What is wanted and what was found; never the value of a secret.
    pub problem: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.problem),
            path => write!(f, "{path}: {}", self.problem),
        }
    }
}

/// An error of somebody else's code that several may hold.
#[derive(Clone)]
pub struct Shared(Rc<dyn StdError>);

impl<E: Into<BoxError>> From<E> for Shared {
    fn from(err: E) -> Self {
        Self(Rc::from(err.into()))
    }
}

impl Deref for Shared {
    type Target = dyn StdError;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A panic that was caught at the border of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("panicked{}: {message}", if place.is_empty() { String::new() } else { format!(" at {place}") })]
pub struct Panic {
    /// What was said.
    pub message: String,
    /// File, line and column; empty if plugin code resumed a panic that it had caught.
    pub place: String,
}

/// A listener failed.
#[derive(Debug, thiserror::Error)]
#[error("`{plugin}` failed on `{event}`: {source}")]
pub struct ListenerError {
    /// Name of the event.
    pub event: String,
    /// Path of the plugin that listens.
    pub plugin: String,
    /// What the listener returned.
    pub source: Shared,
}

/// All that failed in one parallel dispatch, in the order of the listeners; never empty.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(ListenerError::to_string).collect::<Vec<_>>().join("; "))]
pub struct ParallelError(pub Vec<ListenerError>);
