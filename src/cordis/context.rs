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

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;
use slotmap::SlotMap;

use super::effect::{Cleanup, Effects, IntoCleanup, Outcome, Undo};
use super::error::{BoxError, Error};
use super::events::Bus;
use super::fiber::{self, Fiber, FiberId, Mount, Phase, State, Status};
use super::guard::{self, Guarded, LocalBoxFuture, Run};
use super::plugin::{self, NoConfig, PluginDef};
use super::refresh::{Need, Provision, Queue, ServiceSlot, Stopping};
use super::report::{Report, What};
use super::waits::{Waits, Wakers};

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

/// What all contexts share.
pub(super) struct Kernel {
    pub(super) fibers: RefCell<SlotMap<FiberId, Rc<Fiber>>>,
    services: RefCell<HashMap<Rc<str>, Rc<ServiceSlot>>>,
    pub(super) bus: Bus,
    pub(super) queue: Queue,
    pub(super) waits: Waits,
    reports: Box<dyn Fn(&Report)>,
    /// Cleanups that failed since the shutdown began.
    failures: RefCell<Vec<Error>>,
    next: Cell<u64>,
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
        kernel.spawn(Kernel::schedule(Rc::downgrade(&kernel)));
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
        owner.effects.borrow_mut().insert(key, fiber::dispose_child(mount.clone()));
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
        let work: LocalBoxFuture<'static, _> = Box::pin(async move { task(ctx).await.outcome() });
        let work = Guarded::new(Run::new(id), work);
        let handle = self.kernel.spawn(async move {
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
        let hung = match tokio::time::timeout(grace, root.dispose().into_future()).await {
            Ok(_) => Vec::new(),
            Err(_) => self.kernel.hung(),
        };
        Shutdown { hung, failures: self.kernel.failures.take() }
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

    pub(super) fn provide_any(
        &self,
        name: &str,
        value: Rc<dyn std::any::Any>,
    ) -> Result<Undo, Error> {
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

impl Kernel {
    fn new(reports: Box<dyn Fn(&Report)>) -> Self {
        Self {
            fibers: RefCell::default(),
            services: RefCell::default(),
            bus: Bus::default(),
            queue: Queue::default(),
            waits: Waits::default(),
            reports,
            failures: RefCell::default(),
            next: Cell::new(0),
        }
    }

    /// A number that was not given before.
    pub(super) fn number(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    pub(super) fn fiber(&self, id: FiberId) -> Option<Rc<Fiber>> {
        self.fibers.borrow().get(id).cloned()
    }

    fn insert(
        &self,
        parent: Option<FiberId>,
        label: Option<Rc<str>>,
        def: &PluginDef,
        config: Value,
    ) -> Rc<Fiber> {
        let needs = def
            .needs()
            .iter()
            .map(|need| Need { slot: self.slot(&need.name), required: need.required })
            .collect();
        let serial = self.number();
        let fiber = |id| {
            Rc::new(Fiber {
                id,
                parent,
                serial,
                key: Cell::new(0),
                label,
                def: def.clone(),
                needs,
                config: RefCell::new(config),
                phase: Cell::new(Phase::Idle),
                run: Cell::new(0),
                checked: Cell::new(false),
                retired: Cell::new(false),
                driven: Cell::new(false),
                queued: Cell::new(false),
                committed: RefCell::default(),
                provisions: RefCell::default(),
                effects: RefCell::new(Effects::new()),
                stopping: Wakers::default(),
                status: Status::new(State::Pending),
            })
        };
        let id = self.fibers.borrow_mut().insert_with_key(fiber);
        let fiber = self.fibers.borrow()[id].clone();
        self.subscribe(&fiber);
        fiber
    }

    /// The end of a fiber: out of the table, of the parent's list and of the lists of those who wait for services.
    pub(super) fn remove(&self, fiber: &Rc<Fiber>) {
        self.unsubscribe(fiber);
        if let Some(parent) = fiber.parent.and_then(|id| self.fiber(id)) {
            let child = parent.effects.borrow_mut().take(fiber.key.get());
            drop(child);
        }
        let removed = self.fibers.borrow_mut().remove(fiber.id);
        drop(removed);
    }

    /// The record of a service name, made on first use.
    pub(super) fn slot(&self, name: &str) -> Rc<ServiceSlot> {
        let known = self.services.borrow().get(name).cloned();
        known.unwrap_or_else(|| {
            let name: Rc<str> = name.into();
            let slot = ServiceSlot::new(name.clone());
            self.services.borrow_mut().insert(name, slot.clone());
            slot
        })
    }

    pub(super) fn known_slot(&self, name: &str) -> Option<Rc<ServiceSlot>> {
        self.services.borrow().get(name).cloned()
    }

    /// Forgets a name that nobody provides or asks for, so that the table does not grow with names once used.
    pub(super) fn prune(&self, slot: &ServiceSlot) {
        if slot.is_unused() {
            self.services.borrow_mut().remove(&slot.name);
        }
    }

    /// Names of services that are provided by ACTIVE plugins, sorted.
    pub(super) fn service_names(&self) -> Vec<String> {
        let services = self.services.borrow();
        let mut names: Vec<_> = services
            .values()
            .filter(|it| it.current().is_some())
            .map(|it| it.name.to_string())
            .collect();
        names.sort();
        names
    }

    pub(super) fn path(&self, id: FiberId) -> String {
        let mut names = Vec::new();
        let mut next = self.fiber(id);
        if next.is_none() {
            return "a plugin that was unloaded".into();
        }
        while let Some(fiber) = next {
            names.push(fiber.name().to_owned());
            next = fiber.parent.and_then(|id| self.fiber(id));
        }
        if names.len() > 1 {
            names.pop();
        }
        names.reverse();
        names.join(" > ")
    }

    fn status(&self, fiber: &Fiber) -> FiberStatus {
        let (path, name) = (self.path(fiber.id), fiber.name().to_owned());
        FiberStatus {
            path,
            name,
            state: fiber.state(),
            missing: fiber.missing(),
            error: fiber.error(),
        }
    }

    /// Those that have not ended, innermost only: a parent hangs because its child does.
    fn hung(&self) -> Vec<String> {
        let fibers: Vec<_> =
            self.fibers.borrow().values().filter(|it| it.driven.get()).cloned().collect();
        let has_child = |id| fibers.iter().any(|other| other.parent == Some(id));
        fibers.iter().filter(|it| !has_child(it.id)).map(|it| self.path(it.id)).collect()
    }

    pub(super) fn report(&self, report: &Report) {
        // A place for reports that panics cannot be told so.
        drop(guard::call(|| (self.reports)(report)));
    }

    pub(super) fn report_error(&self, fiber: FiberId, what: What, error: &Error) {
        let cause = match error {
            Error::Body { source, .. }
            | Error::Cleanup { source, .. }
            | Error::Setup { source, .. } => source.clone(),
            other => other.clone().into(),
        };
        if what == What::CleanupFailed {
            self.failures.borrow_mut().push(error.clone());
        }
        self.report(&Report { plugin: self.path(fiber), what, error: Some(cause) });
    }

    pub(super) fn cleanup_error(&self, fiber: FiberId, source: BoxError) -> Error {
        Error::Cleanup { plugin: self.path(fiber), source: source.into() }
    }
}
