//! Part 1: the kernel, a port of Cordis's ideas. Read the files in the order they are declared here. A folder holds parts
//! of the file of its name; they can wait until you want to know how.
//!
//! What holds throughout:
//! - The kernel does not know that agents exist: nothing here imports from `harness`.
//! - Everything runs on one thread, to completion: between two awaits nothing else happens, so there is no lock.
//! - Every registration has an owner and is undone with it.
//! - No borrow is open while foreign code runs: a body, a listener, a cleanup, a validator, a `Drop`.
//! - Nothing starts or stops inside the call that asked for it, and nothing calls itself once for each plugin.
//! - A failure is reported once, by the kernel, when it happens; a panic in foreign code is such a failure.

mod context;
mod kernel;
mod plugin;
mod fiber;
mod mount;
mod effect;
mod refresh;
mod events;
mod service;
pub mod loader;
pub mod module;
pub mod hmr;
mod error;
mod report;
mod waits;
mod guard;

pub use self::context::{Context, FiberStatus, Hurry, Registered, Shutdown};
pub use self::effect::{Cleanup, IntoCleanup, Outcome, Undo, Undoing, mark};
pub use self::error::{
    BoxError, ConfigError, Error, Fault, ListenerError, Panic, ParallelError, Shared,
};
pub use self::events::{Emit, Meaningful, NamedListener, Next, Parallel, Serial, Waterfall};
pub use self::fiber::{FiberId, State};
pub(crate) use self::guard::call as guarded;
pub use self::guard::{LocalBoxFuture, catch_panic};
pub use self::loader::{
    Applied, BeforeApply, Change, EntryChange, Loader, LoaderOptions, Notice, Warning,
};
pub use self::module::{Builtins, ModuleError, ModuleKey, ModuleSource, is_script, plain_name};
pub use self::mount::{Disposing, Mount};
pub(crate) use self::plugin::is_checkable;
pub use self::plugin::{
    Body, Checked, ConfigType, Declared, Needs, NoConfig, Plugin, PluginDef, Secret, ServicePlugin,
    UnknownKey, Unreadable, nearest, object, plugin, secrets_in, service,
};
pub use self::report::{Report, What};
pub use self::service::{Need, Optional, Service, Svc};
pub use self::waits::Waited;
