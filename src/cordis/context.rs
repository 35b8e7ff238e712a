//! The context: what a plugin holds of the world. It is the container of services, and the door to everything that can
//! be registered: `plugin()`, `provide()`, `effect()`, `spawn()`, and the listeners of `events.rs`.
//!
//! A program is a set of plugins mounted into one tree of contexts. All of them share one kernel; a context only says
//! whose it is: the *owner* pays for what is registered, the *origin* is the one whose declarations a read is checked
//! against. The two differ only inside a service that was called by another plugin (`service.rs`).
//! Full-size counterpart: cordis `packages/core/src/context.ts` and `reflect.ts`.
//! Watch for: a context belongs to one *load* of its plugin. After a restart the old one still reads, but registers
//! nothing.
//!
//! Omitted: isolated realms of services, `set`, accessors and mixins; one table of names is enough for one agent.

use std::any::Any;
use std::future::{Future, IntoFuture};
use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;

use super::effect::{Cleanup, IntoCleanup, Outcome, Undo};
use super::error::{BoxError, Error};
use super::fiber::{Fiber, FiberId, Phase, State};
use super::guard::{self, Foreign, Guarded, Run};
use super::kernel::Kernel;
use super::mount::{self, Mount};
use super::plugin::{self, NoConfig, PluginDef};
use super::refresh::{self, Provision, Stopping};
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

/// One fiber in a list of all.
#[derive(Debug, Clone)]
pub struct FiberStatus {
    /// Names from the root down: `loader > bash`.
    pub path: String,
    /// Its own name.
    pub name: String,
    /// Where it stands.
    pub state: State,
    /// Required services that are not there.
    pub missing: Vec<String>,
    /// Why it failed.
    pub error: Option<Error>,
}

/// How a shutdown ended.
#[derive(Debug, Default)]
pub struct Shutdown {
    /// Paths of plugins that had not ended when the grace was over.
    pub hung: Vec<String>,
    /// Cleanups that failed.
    pub failures: Vec<Error>,
}

/// Names that a service cannot have: in a script they would hide a part of the context.
const RESERVED: [&str; 15] = [
    "answer",
    "effect",
    "emit",
    "get",
    "intercept",
    "on",
    "parallel",
    "path",
    "plugin",
    "provide",
    "serial",
    "service",
    "spawn",
    "stopping",
    "waterfall",
];

impl Context {
    /// A new kernel and the context of its root, which is always running. Reports go to `tracing`.
    ///
    /// # Panics
    /// Outside a `LocalSet`.
    pub fn root() -> Self {
        Self::root_with(|report| tracing::error!("{report}"))
    }

    /// As [`root`](Self::root), with a place for reports.
    pub fn root_with(reports: impl Fn(&Report) + 'static) -> Self {
        guard::install_panic_hook();
        let kernel = Rc::new(Kernel::new(Box::new(reports)));
        refresh::spawn(Kernel::schedule(Rc::downgrade(&kernel)));
        let def = plugin::plugin(async |_: Self, _: NoConfig| Ok::<(), BoxError>(())).named("root");
        let root = kernel.insert(None, None, &def, Value::Null);
        root.start_as_root();
        Self::of(&kernel, &root)
    }

    pub(super) fn of(kernel: &Rc<Kernel>, fiber: &Fiber) -> Self {
        Self { kernel: kernel.clone(), owner: fiber.id, run: fiber.run.get(), origin: fiber.id }
    }

    /// Mounts a plugin as a child of this one. It starts after the current block, once all that it requires is there.
    ///
    /// # Errors
    /// [`Error::Inactive`] if this plugin is not running. A config that does not fit shows in [`Mount::ready`].
    pub fn plugin(&self, def: &PluginDef, config: Value) -> Result<Mount, Error> {
        self.mount(None, def, config)
    }

    /// As [`plugin`](Self::plugin), under a name of the caller's choice, which stands in paths and reports.
    pub fn plugin_named(
        &self,
        label: &str,
        def: &PluginDef,
        config: Value,
    ) -> Result<Mount, Error> {
        self.mount(Some(label.into()), def, config)
    }

    fn mount(
        &self,
        label: Option<Rc<str>>,
        def: &PluginDef,
        config: Value,
    ) -> Result<Mount, Error> {
        let owner = self.running()?;
        let child = self.kernel.insert(Some(owner.id), label, def, config);
        let mount =
            Mount { kernel: self.kernel.clone(), id: child.id, status: child.status.clone() };
        let key = owner.effects.borrow_mut().reserve();
        owner.effects.borrow_mut().insert(key, mount::dispose_child(owner.id, mount.clone()));
        child.key.set(key);
        self.kernel.mark(&child);
        Ok(mount)
    }

    /// Registers something that can be undone. `setup` does it and returns the cleanup: a closure, an async closure, or
    /// a `Result` of one. The cleanup runs when the plugin unloads, or when the undo is called, once.
    ///
    /// # Errors
    /// [`Error::Inactive`] if this plugin is not running; `setup` is not called then. [`Error::Setup`] if it fails.
    pub fn effect<C: IntoCleanup<M>, M>(&self, setup: impl FnOnce() -> C) -> Result<Undo, Error> {
        let owner = self.running()?;
        let key = owner.effects.borrow_mut().reserve();
        let cleanup =
            guard::call(|| setup().into_cleanup()).unwrap_or_else(|panic| Err(panic.into()));
        match cleanup {
            Ok(cleanup) => owner
                .effects
                .borrow_mut()
                .insert(key, cleanup.unwrap_or_else(|| Cleanup::sync(|| Ok(())))),
            Err(err) => return Err(Error::Setup { plugin: self.path(), source: err.into() }),
        }
        Ok(Undo::new(&self.kernel, owner.id, key))
    }

    /// Runs a task that belongs to this plugin: unloading aborts it and waits for its end. A failure is reported once.
    ///
    /// # Errors
    /// [`Error::Inactive`] if this plugin is not running.
    pub fn spawn<O: Outcome>(
        &self,
        name: &str,
        task: impl AsyncFnOnce(Self) -> O + 'static,
    ) -> Result<Undo, Error> {
        let owner = self.running()?;
        let key = owner.effects.borrow_mut().reserve();
        let (ctx, kernel, id, name) =
            (self.clone(), self.kernel.clone(), owner.id, name.to_owned());
        let work: Foreign<()> = Box::pin(async move { task(ctx).await.outcome() });
        let work = Guarded::new(Run::new(id), work);
        let handle = refresh::spawn(async move {
            let outcome = work.await;
            let finished = kernel.fiber(id).and_then(|fiber| fiber.effects.borrow_mut().take(key));
            drop(finished);
            if let Err(err) = outcome {
                let what = What::TaskFailed { task: name };
                kernel.report(&Report { plugin: kernel.path(id), what, error: Some(err.into()) });
            }
        });
        let cleanup = Cleanup::future(move || {
            handle.abort();
            async move {
                // A task that was aborted ends with an error that says so.
                drop(handle.await);
                Ok(())
            }
        });
        owner.effects.borrow_mut().insert(key, cleanup);
        Ok(Undo::new(&self.kernel, id, key))
    }

    /// Resolves when this plugin is to stop: a service has gone, or a dispose was requested. A long body can listen to it.
    pub fn stopping(&self) -> impl Future<Output = ()> + 'static {
        Stopping { kernel: self.kernel.clone(), fiber: self.owner, run: self.run }
    }

    /// Disposes the root and with it everything, for the end of the program. A second call returns at once.
    pub async fn shutdown(&self, grace: Duration) -> Shutdown {
        let root =
            self.kernel.fibers.borrow().values().find(|fiber| fiber.parent.is_none()).cloned();
        let Some(root) = root.filter(|root| !root.retired.get()) else {
            return Shutdown::default();
        };
        let root = Mount { kernel: self.kernel.clone(), id: root.id, status: root.status.clone() };
        self.kernel.failures.replace(Some(Vec::new()));
        let hung = match tokio::time::timeout(grace, root.dispose().into_future()).await {
            Ok(_) => Vec::new(),
            Err(_) => self.kernel.hung(),
        };
        Shutdown { hung, failures: self.kernel.failures.take().unwrap_or_default() }
    }

    /// Names from the root down to this plugin: `loader > bash`.
    pub fn path(&self) -> String {
        self.kernel.path(self.owner)
    }

    /// All plugins that are mounted, oldest first, without the root.
    pub fn fibers(&self) -> Vec<FiberStatus> {
        let mut fibers: Vec<_> = self.kernel.fibers.borrow().values().cloned().collect();
        fibers.sort_by_key(|fiber| fiber.serial);
        fibers
            .iter()
            .filter(|fiber| fiber.parent.is_some())
            .map(|fiber| self.kernel.status(fiber))
            .collect()
    }

    /// Number of effects this plugin has registered.
    pub fn effect_count(&self) -> usize {
        self.kernel.fiber(self.owner).map_or(0, |owner| owner.effects.borrow().len())
    }

    /// The owner, if it may register something through this context.
    pub(super) fn running(&self) -> Result<Rc<Fiber>, Error> {
        match self.kernel.fiber(self.owner) {
            Some(owner) if owner.admits(self.run) => Ok(owner),
            _ => Err(Error::Inactive { plugin: self.path() }),
        }
    }

    pub(super) fn provide_any(&self, name: &str, value: Rc<dyn Any>) -> Result<Undo, Error> {
        let owner = self.running()?;
        if RESERVED.contains(&name) {
            return Err(Error::ReservedName { service: name.into() });
        }
        let slot = self.kernel.slot(name);
        if let Some(holder) = &*slot.provision.borrow() {
            return Err(Error::DuplicateService {
                service: name.into(),
                owner: self.kernel.path(holder.owner),
            });
        }
        let provision = Provision::new(self.kernel.number(), owner.id, &slot, value);
        slot.provision.replace(Some(provision.clone()));
        owner.provisions.borrow_mut().push(provision.clone());
        if owner.phase.get() == Phase::Active {
            self.kernel.announce_all(&owner, true);
        }
        let key = owner.effects.borrow_mut().reserve();
        let kernel = self.kernel.clone();
        owner
            .effects
            .borrow_mut()
            .insert(key, Cleanup::future(move || withdraw(kernel, provision)));
        Ok(Undo::new(&self.kernel, owner.id, key))
    }
}

/// Frees the name, tells those who used it, and waits until they have stopped. During an unload they have stopped before.
fn withdraw(
    kernel: Rc<Kernel>,
    provision: Rc<Provision>,
) -> impl Future<Output = Result<(), BoxError>> {
    provision.slot.provision.replace(None);
    if let Some(owner) = kernel.fiber(provision.owner) {
        owner.provisions.borrow_mut().retain(|other| other.id != provision.id);
    }
    if provision.available.replace(false) {
        kernel.announce(&provision.slot);
    }
    async move {
        provision.unused(&kernel).await;
        kernel.prune(&provision.slot);
        Ok(())
    }
}
