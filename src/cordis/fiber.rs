//! A fiber: one plugin as it runs, from mount to dispose.
//!
//! Its state moves one step at a time. A body or a cleanup that is running is never interrupted; what arrives meanwhile
//! only moves the target, and when the step has ended the fiber compares where it is with where it should be. Any number
//! of changes while a body runs comes to at most one unload and one load.
//! Full-size counterpart: cordis `packages/core/src/fiber.ts`.
//! Watch for: a provider's services stop counting, and those who use them stop, *before* its own first cleanup.
//!
//! Omitted: Cordis runs a failed plugin again when one of its services returns, and can change a config in place. Here a
//! failed fiber stays failed until it is disposed, and a new config is a new mount. Nor are there internal events that
//! tell of each step.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use serde_json::Value;

use super::context::Context;
use super::effect::{self, Cleanup, Effects, Slots};
use super::error::{BoxError, Error};
use super::guard::{self, Guarded};
use super::kernel::Kernel;
use super::mount::Status;
use super::plugin::PluginDef;
use super::report::{Report, What};
use super::service::{Provision, Requirement};

slotmap::new_key_type! {
    /// Names one fiber; never used again for another.
    pub struct FiberId;
}

/// Where a fiber stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Mounted; waits for its first turn, or for services.
    Pending,
    /// The body runs.
    Loading,
    /// The body has ended well; what it provides can be used.
    Active,
    /// The config did not fit or the body failed; everything it had registered is undone.
    Failed,
    /// Cleanups run.
    Unloading,
    /// Gone for good.
    Disposed,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_uppercase())
    }
}

/// What the fiber itself is doing. When it is idle, its [`State`] is one of three.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Idle,
    Loading,
    Active,
    Unloading,
}

/// The record of one fiber. It lives in the kernel's table; everybody else holds its id.
pub(super) struct Fiber {
    pub(super) id: FiberId,
    pub(super) parent: Option<FiberId>,
    /// Rises with each mount: those who wait for a service start in this order.
    pub(super) serial: u64,
    /// The effect of the parent that this fiber is.
    pub(super) key: Cell<u64>,
    pub(super) name: Rc<str>,
    def: PluginDef,
    pub(super) needs: Box<[Requirement]>,
    /// As mounted; once checked, with defaults.
    config: RefCell<Value>,
    checked: Cell<bool>,
    pub(super) phase: Cell<Phase>,
    /// Rises with each load. A context of an earlier one registers nothing.
    pub(super) run: Cell<u32>,
    /// Disposal was requested.
    pub(super) retired: Cell<bool>,
    /// A driver moves it.
    pub(super) driven: Cell<bool>,
    /// The scheduler will look at it.
    pub(super) queued: Cell<bool>,
    /// The provisions that this load began with; readable until it has unloaded.
    pub(super) committed: RefCell<Vec<Rc<Provision>>>,
    pub(super) provisions: RefCell<Slots<u64, Rc<Provision>>>,
    pub(super) effects: RefCell<Effects>,
    pub(super) status: Rc<Status>,
}

/// What a fiber does next.
enum Next {
    Rest(State),
    Check,
    Load(Vec<Rc<Provision>>),
    Unload,
    End,
}

impl Fiber {
    pub(super) fn new(
        id: FiberId,
        parent: Option<FiberId>,
        serial: u64,
        name: Rc<str>,
        def: PluginDef,
        needs: Box<[Requirement]>,
        config: Value,
    ) -> Self {
        Self {
            id,
            parent,
            serial,
            key: Cell::new(0),
            name,
            def,
            needs,
            config: RefCell::new(config),
            checked: Cell::new(false),
            phase: Cell::new(Phase::Idle),
            run: Cell::new(0),
            retired: Cell::new(false),
            driven: Cell::new(false),
            queued: Cell::new(false),
            committed: RefCell::default(),
            provisions: RefCell::default(),
            effects: RefCell::default(),
            status: Rc::default(),
        }
    }

    /// The root has no body and is running from the first.
    pub(super) fn start_as_root(&self) {
        self.checked.set(true);
        self.run.set(1);
        self.phase.set(Phase::Active);
        self.status.show(State::Active);
        self.status.rest();
    }

    /// Whether effects are accepted. A stop that waits for the body does not close the door: the body is still running.
    // Differs: Cordis accepts effects at any time, also those that nothing undoes any more.
    pub(super) fn admits(&self, run: u32) -> bool {
        self.run.get() == run && matches!(self.phase.get(), Phase::Loading | Phase::Active)
    }

    /// Whether what this load began with still stands. Provisions are never used again, so a service that went and came
    /// back is another one.
    pub(super) fn is_on_target(&self) -> bool {
        !self.retired.get() && self.committed.borrow().iter().all(|it| it.available.get())
    }

    fn next(&self) -> Next {
        match self.phase.get() {
            Phase::Active if self.is_on_target() => Next::Rest(State::Active),
            Phase::Active => Next::Unload,
            _ if self.retired.get() => Next::End,
            _ if self.status.error.get().is_some() => Next::Rest(State::Failed),
            _ if !self.checked.get() => Next::Check,
            _ => self.available_needs().map_or(Next::Rest(State::Pending), Next::Load),
        }
    }

    /// The provisions of everything that is required, if all are there.
    fn available_needs(&self) -> Option<Vec<Rc<Provision>>> {
        self.needs.iter().filter(|need| need.required).map(|need| need.slot.current()).collect()
    }

    /// Names of required services that are not there.
    pub(super) fn missing(&self) -> Vec<String> {
        let is_missing = |need: &&Requirement| need.required && need.slot.current().is_none();
        self.needs.iter().filter(is_missing).map(|need| need.slot.name.to_string()).collect()
    }
}

/// Moves a fiber until it rests. The scheduler starts at most one of these for each fiber.
pub(super) async fn drive(kernel: Rc<Kernel>, fiber: Rc<Fiber>) {
    loop {
        match fiber.next() {
            Next::Rest(state) => break fiber.status.show(state),
            Next::Check => check(&kernel, &fiber),
            Next::Load(provisions) => load(&kernel, &fiber, provisions).await,
            Next::Unload => unload(&kernel, &fiber).await,
            Next::End => return end(&kernel, fiber),
        }
    }
    fiber.driven.set(false);
    if !fiber.queued.get() {
        fiber.status.rest();
    }
}

/// Reads the config, once, before anything runs: a plugin never starts half-configured.
fn check(kernel: &Kernel, fiber: &Fiber) {
    fiber.checked.set(true);
    let config = fiber.config.take();
    let refused = match guard::call(|| fiber.def.check(&config)) {
        Ok(Ok(checked)) => {
            fiber.config.replace(checked.config);
            for key in checked.unknown {
                let what = What::UnknownKey { path: key.path, near: key.near };
                kernel.report(fiber.id, what, None);
            }
            return;
        }
        Ok(Err(refused)) => Error::Config(refused),
        Err(panic) => Error::Body { plugin: kernel.path(fiber.id), source: panic.into() },
    };
    fail(kernel, fiber, What::ConfigRefused, refused);
}

/// The first error stays: a fiber fails once.
fn fail(kernel: &Kernel, fiber: &Fiber, what: What, error: Error) {
    kernel.report_error(fiber.id, what, &error);
    drop(fiber.status.error.set(Box::new(error)));
}

async fn load(kernel: &Rc<Kernel>, fiber: &Rc<Fiber>, provisions: Vec<Rc<Provision>>) {
    for provision in &provisions {
        provision.enter();
    }
    fiber.committed.replace(provisions);
    fiber.run.set(fiber.run.get() + 1);
    fiber.phase.set(Phase::Loading);
    fiber.status.show(State::Loading);
    let ended = run_body(kernel, fiber).await;
    let on_target = fiber.is_on_target();
    match ended {
        Ok(cleanup) => {
            if let Some(cleanup) = cleanup {
                fiber.effects.borrow_mut().add(cleanup);
            }
            if on_target {
                fiber.phase.set(Phase::Active);
                kernel.announce_all(fiber, true);
                return fiber.status.show(State::Active);
            }
        }
        Err(source) if on_target => {
            let (plugin, source) = (kernel.path(fiber.id), source.into());
            fail(kernel, fiber, What::BodyFailed, Error::Body { plugin, source });
        }
        Err(source) => kernel.report(fiber.id, What::Superseded, Some(source.into())),
    }
    unload(kernel, fiber).await;
}

async fn run_body(kernel: &Rc<Kernel>, fiber: &Rc<Fiber>) -> Result<Option<Cleanup>, BoxError> {
    let (ctx, run) = (Context::of(kernel, fiber), kernel.run(fiber.id));
    let config = fiber.config.borrow().clone();
    let body = guard::call_in(run, || fiber.def.start(ctx, config))?;
    Guarded::new(run, body).await
}

async fn unload(kernel: &Rc<Kernel>, fiber: &Rc<Fiber>) {
    fiber.phase.set(Phase::Unloading);
    kernel.announce_all(fiber, false);
    fiber.status.show(State::Unloading);
    let provisions: Vec<_> = fiber.provisions.borrow().iter().cloned().collect();
    for provision in provisions {
        provision.unused(kernel).await;
    }
    effect::undo_all(kernel, fiber).await;
    for provision in fiber.committed.take() {
        provision.leave();
    }
    fiber.phase.set(Phase::Idle);
    if let Next::Load(_) = fiber.next() {
        // It starts again at once. A plugin whose start makes it stop must not keep everything else from running.
        tokio::task::yield_now().await;
    }
}

/// The end of a fiber. What its plugin had captured is dropped last, when nothing depends on it any more.
fn end(kernel: &Kernel, fiber: Rc<Fiber>) {
    kernel.remove(&fiber);
    // A mark that is left finds nothing to move, so nobody else would tell those who wait.
    fiber.status.rest();
    fiber.status.show(State::Disposed);
    let name = fiber.name.clone();
    if let Err(panic) = guard::call(move || drop(fiber)) {
        let (plugin, error) = (name.to_string(), Some(panic.into()));
        kernel.send(&Report { plugin, what: What::CleanupFailed, error });
    }
}
