//! What can go wrong in the kernel: one enum, each variant a fact with its evidence.
//!
//! A plugin's own error crosses the kernel unread, as the source of `Body`, `Setup` or `Cleanup`. Errors are cheap to
//! clone, because whoever awaits a failed plugin gets the same one, each time.

use std::{error::Error as StdError, fmt, ops::Deref, rc::Rc};

/// An error of somebody else's code on its way through the kernel. Not `Send`: everything here lives on one thread.
pub type BoxError = Box<dyn StdError>;

/// What the kernel refuses or reports. `plugin` and `owner` are paths: `loader > bash`.
#[derive(Debug, Clone, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum Error {
    /// Something was registered on a context whose plugin is not running, or is running anew.
    #[error("`{plugin}` is not running, so nothing can be registered on it")]
    Inactive { plugin: String },
    /// Neither the plugin nor one that encloses it declares the service.
    #[error("`{plugin}` reads the service `{service}` without declaring it")]
    Undeclared { service: String, plugin: String },
    /// It is declared, but not there now.
    #[error("the service `{service}`, which `{plugin}` needs, is not there")]
    Unavailable { service: String, plugin: String },
    #[error("the service `{service}` is not of the type that `{plugin}` expects")]
    TypeMismatch { service: String, plugin: String },
    #[error("the service `{service}` is provided by `{owner}` already")]
    DuplicateService { service: String, owner: String },
    #[error("a service cannot be called `{service}`, because a context has a method of that name")]
    ReservedName { service: String },
    #[error("the event `{event}` is in use with another payload or another way of dispatch")]
    EventMismatch { event: String },
    /// Nothing was registered.
    #[error("`{plugin}` could not set up an effect: {source}")]
    Setup { plugin: String, source: Shared },
    /// The config does not fit the plugin; its body never ran.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The body returned an error or panicked; what it had registered is undone.
    #[error("`{plugin}` failed: {source}")]
    Body { plugin: String, source: Shared },
    /// The cleanups after it ran all the same.
    #[error("`{plugin}` failed to clean up: {source}")]
    Cleanup { plugin: String, source: Shared },
    /// Nothing was awaited.
    #[error("`{plugin}` waits, directly or through others, for the one who would wait for it")]
    WouldDeadlock { plugin: String },
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
