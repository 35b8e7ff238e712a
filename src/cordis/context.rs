//! The context: what a plugin holds of the world. It is the container of services, and the door to everything that can
//! be registered: `plugin()`, `provide()`, `effect()`, `spawn()`, and the listeners of `events.rs`.
//!
//! A program is a set of plugins mounted into one tree of contexts. All of them share one kernel; a context only says
//! whose it is: the *owner* pays for what is registered, the *origin* is the one whose declarations a read is checked
//! against. The two differ only inside a service that was called by another plugin (`service.rs`).
//! Full-size counterpart: cordis `packages/core/src/context.ts` and `reflect.ts`.
//! Watch for: a context belongs to one *load* of its plugin. After a restart the old one still reads, but registers
//! nothing: everything that registers here fails with [`Error::Inactive`] if the plugin is not running.

mod status;

use std::future::{Future, IntoFuture};
use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;

pub use self::status::{FiberStatus, Registered};
use super::effect::{Cleanup, IntoCleanup, Outcome, Undo};
use super::error::{BoxError, Error};
use super::events::Emit;
use super::fiber::{Fiber, FiberId};
use super::guard::{self, Foreign, Guarded};
use super::kernel::Kernel;
use super::mount::{self, Mount};
use super::plugin::{self, NoConfig, PluginDef};
use super::refresh;
use super::report::{Report, What};

/// What a plugin holds of the world. Cloning is cheap.
#[derive(Clone)]
pub struct Context {
    pub(super) kernel: Rc<Kernel>,
    /// Who pays for what is registered.
    pub(super) owner: FiberId,
    /// The load of the owner that this context belongs to.
    pub(super) run: u32,
    /// Whose declarations a read is checked against.
    pub(super) origin: FiberId,
}

/// How a shutdown ended.
#[derive(Debug, Default)]
pub struct Shutdown {
    /// Paths of plugins that had not ended when the grace was over.
    pub hung: Vec<String>,
    /// Cleanups that failed.
    pub failures: Vec<Error>,
}

/// `cordis/hurry`: the program ends and nobody wants to wait. Raised before or during [`Context::shutdown`]; whoever gives
/// others time to end takes it back.
pub struct Hurry;

impl Emit for Hurry {
    const NAME: &'static str = "cordis/hurry";
}

impl Context {
    /// A new kernel and the context of its root, which is always running. Reports go to `tracing`. It must be called
    /// inside a `LocalSet` or a `LocalRuntime`, and panics elsewhere.
    pub fn root() -> Self {
        Self::root_with(|report| tracing::error!("{report}"))
    }

    /// As [`root`](Self::root), with a place for reports.
    pub fn root_with(reports: impl Fn(&Report) + 'static) -> Self {
        guard::install_panic_hook();
        let kernel = Rc::new(Kernel::new(Box::new(reports)));
        refresh::spawn(Kernel::schedule(Rc::downgrade(&kernel)));
        let def = plugin::plugin(async |_: Self, _: NoConfig| Ok::<(), BoxError>(()));
        let root = kernel.insert(None, "root".into(), &def, Value::Null);
        root.start_as_root();
        Self::of(&kernel, &root)
    }

    pub(super) fn of(kernel: &Rc<Kernel>, fiber: &Fiber) -> Self {
        Self { kernel: kernel.clone(), owner: fiber.id, run: fiber.run.get(), origin: fiber.id }
    }

    /// Mounts a plugin as a child of this one. It starts after the current block, once all that it requires is there. A
    /// config that does not fit shows in [`Mount::ready`].
    pub fn plugin(&self, def: &PluginDef, config: Value) -> Result<Mount, Error> {
        self.mount(def.shared_name(), def, config)
    }

    /// As [`plugin`](Self::plugin), under a name of the caller's choice, which stands in paths and reports.
    pub fn plugin_named(&self, name: &str, def: &PluginDef, config: Value) -> Result<Mount, Error> {
        self.mount(name.into(), def, config)
    }

    fn mount(&self, name: Rc<str>, def: &PluginDef, config: Value) -> Result<Mount, Error> {
        let owner = self.running()?;
        let child = self.kernel.insert(Some(owner.id), name, def, config);
        let mount = Mount::of(&self.kernel, &child);
        let dispose = mount::dispose_child(owner.id, mount.clone());
        child.key.set(owner.effects.borrow_mut().add(dispose));
        self.kernel.mark(&child);
        Ok(mount)
    }

    /// Registers something that can be undone. `setup` does it and returns the cleanup: a closure, an async closure, or
    /// a `Result` of one. The cleanup runs when the plugin unloads, or when the undo is called, once.
    ///
    /// If the plugin is not running, `setup` is not called. If `setup` fails, the error is [`Error::Setup`].
    pub fn effect<C: IntoCleanup<M>, M>(&self, setup: impl FnOnce() -> C) -> Result<Undo, Error> {
        let owner = self.running()?;
        let key = owner.effects.borrow_mut().reserve();
        let cleanup = guard::call(|| setup().into_cleanup())
            .unwrap_or_else(|panic| Err(panic.into()))
            .map_err(|err| Error::Setup { plugin: self.path(), source: err.into() })?
            .unwrap_or_else(|| Cleanup::sync(|| Ok(())));
        owner.effects.borrow_mut().insert(key, cleanup);
        Ok(Undo::new(&self.kernel, owner.id, key))
    }

    /// Runs a task that belongs to this plugin: unloading aborts it and waits for its end. A failure is reported once.
    pub fn spawn<O: Outcome>(
        &self,
        name: &str,
        task: impl AsyncFnOnce(Self) -> O + 'static,
    ) -> Result<Undo, Error> {
        let owner = self.running()?;
        let key = owner.effects.borrow_mut().reserve();
        let ctx = self.clone();
        let work: Foreign<()> = Box::pin(async move { task(ctx).await.outcome() });
        let handle =
            refresh::spawn(run_task(self.kernel.clone(), owner.id, key, name.into(), work));
        let cleanup = Cleanup::future(move || {
            handle.abort();
            async move {
                match handle.await {
                    Err(err) if err.is_panic() => Err(err.into()),
                    // A task that was aborted ends with an error that says so.
                    _ => Ok(()),
                }
            }
        });
        owner.effects.borrow_mut().insert(key, cleanup);
        Ok(Undo::new(&self.kernel, owner.id, key))
    }

    /// Resolves when this plugin is to stop: a service has gone, or a dispose was requested. A long body can listen to it.
    pub fn stopping(&self) -> impl Future<Output = ()> + 'static {
        let Self { kernel, owner, run, .. } = self.clone();
        async move {
            let Some(status) = kernel.fiber(owner).map(|owner| owner.status.clone()) else {
                return;
            };
            let goes_on = |owner: Rc<Fiber>| owner.admits(run) && owner.is_on_target();
            status.wakers.until(|| !kernel.fiber(owner).is_some_and(goes_on)).await;
        }
    }

    /// Disposes the root and with it everything, for the end of the program; waits for it no longer than `grace`. A second
    /// call returns at once, and so does one by a plugin, which would wait for its own end.
    pub async fn shutdown(&self, grace: Duration) -> Shutdown {
        let is_root = |fiber: &&Rc<Fiber>| fiber.parent.is_none();
        let root = self.kernel.fibers.borrow().values().find(is_root).cloned();
        let Some(root) = root.filter(|root| !root.retired.get()) else {
            return Shutdown::default();
        };
        self.kernel.failures.replace(Some(Vec::new()));
        let disposing = Mount::of(&self.kernel, &root).dispose().into_future();
        let hung = match tokio::time::timeout(grace, disposing).await {
            Ok(_) => Vec::new(),
            Err(_) => self.kernel.hung(),
        };
        Shutdown { hung, failures: self.kernel.failures.take().unwrap_or_default() }
    }

    /// Names from the root down to this plugin: `loader > bash`.
    pub fn path(&self) -> String {
        self.kernel.path(self.owner)
    }

    /// The owner, if it may register something through this context.
    pub(super) fn running(&self) -> Result<Rc<Fiber>, Error> {
        match self.kernel.fiber(self.owner) {
            Some(owner) if owner.admits(self.run) => Ok(owner),
            _ => Err(Error::Inactive { plugin: self.path() }),
        }
    }
}

/// Runs a task to its end. Then its effect leaves the list, and a failure is reported.
async fn run_task(kernel: Rc<Kernel>, owner: FiberId, key: u64, task: String, work: Foreign<()>) {
    let outcome = Guarded::new(kernel.run(owner), work).await;
    let finished = kernel.fiber(owner).and_then(|owner| owner.effects.borrow_mut().take(key));
    drop(finished);
    if let Err(err) = outcome {
        kernel.report(owner, What::TaskFailed { task }, Some(err.into()));
    }
}
