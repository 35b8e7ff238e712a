//! A fiber: one plugin as it runs, from mount to dispose.
//!
//! Its state moves one step at a time. A body or a cleanup that is running is never interrupted; what arrives meanwhile
//! only moves the target, and when the step has ended the fiber compares where it is with where it should be. Any number
//! of changes while a body runs comes to at most one unload and one load.
//! Full-size counterpart: cordis `packages/core/src/fiber.ts`.
//! Watch for: a provider's services stop counting, and those who use them stop, *before* its own first cleanup.
//!
//! Omitted: Cordis runs a failed plugin again when one of its services returns, and can change a config in place. Here a
//! failed fiber stays failed until it is disposed, and a new config is a new mount.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::rc::Rc;

use serde_json::Value;

use super::context::Context;
use super::effect::{self, Cleanup, Effects};
use super::error::{BoxError, Error, Shared};
use super::guard::{self, Guarded, Run};
use super::kernel::Kernel;
use super::plugin::PluginDef;
use super::refresh::{Need, Provision};
use super::report::{Report, What};
use super::waits::Wakers;

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
        f.write_str(match self {
            Self::Pending => "PENDING",
            Self::Loading => "LOADING",
            Self::Active => "ACTIVE",
            Self::Failed => "FAILED",
            Self::Unloading => "UNLOADING",
            Self::Disposed => "DISPOSED",
        })
    }
}

/// The record of one fiber. It lives in the kernel's table; everybody else holds its id.
pub(super) struct Fiber {
    pub(super) id: FiberId,
    pub(super) parent: Option<FiberId>,
    /// Rises with each mount: those who wait for a service start in this order.
    pub(super) serial: u64,
    /// The effect of the parent that this fiber is.
    pub(super) key: Cell<u64>,
    pub(super) label: Option<Rc<str>>,
    pub(super) def: PluginDef,
    pub(super) needs: Box<[Need]>,
    /// As mounted; once checked, with defaults.
    pub(super) config: RefCell<Value>,
    pub(super) phase: Cell<Phase>,
    /// Rises with each load. A context of an earlier one registers nothing.
    pub(super) run: Cell<u32>,
    pub(super) checked: Cell<bool>,
    /// Disposal was requested.
    pub(super) retired: Cell<bool>,
    pub(super) driven: Cell<bool>,
    pub(super) queued: Cell<bool>,
    /// The provisions that this load began with; readable until it has unloaded.
    pub(super) committed: RefCell<Vec<Rc<Provision>>>,
    pub(super) provisions: RefCell<Vec<Rc<Provision>>>,
    pub(super) effects: RefCell<Effects>,
    pub(super) stopping: Wakers,
    pub(super) status: Rc<Status>,
}

/// What the fiber itself is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Idle,
    Loading,
    Active,
    Unloading,
}

pub(super) type Observer = Rc<dyn Fn(State)>;

/// The part of a fiber that outlives it: handles share it.
pub(super) struct Status {
    pub(super) state: Cell<State>,
    pub(super) rests: Cell<bool>,
    pub(super) error: OnceCell<Box<Error>>,
    pub(super) wakers: Wakers,
    pub(super) observers: RefCell<Vec<Observer>>,
}

impl Status {
    pub(super) fn new(state: State) -> Rc<Self> {
        let (state, rests) = (Cell::new(state), Cell::new(false));
        let (error, observers) = (OnceCell::new(), RefCell::new(Vec::new()));
        Rc::new(Self { state, rests, error, wakers: Wakers::default(), observers })
    }
}

/// What a fiber does next.
enum Next {
    Rest,
    Check,
    Load(Vec<Rc<Provision>>),
    Unload,
    End,
}

impl Fiber {
    pub(super) fn name(&self) -> &str {
        self.label.as_deref().unwrap_or_else(|| self.def.name())
    }

    pub(super) fn state(&self) -> State {
        self.status.state.get()
    }

    pub(super) fn error(&self) -> Option<Error> {
        self.status.error.get().map(|err| (**err).clone())
    }

    /// Whether effects are accepted. A stop that waits for the body does not close the door: the body is still running.
    pub(super) fn admits(&self, run: u32) -> bool {
        self.run.get() == run && matches!(self.phase.get(), Phase::Loading | Phase::Active)
    }

    /// Whether what this load began with still stands. Provisions are never used again, so a service that went and came
    /// back is another one.
    pub(super) fn is_on_target(&self) -> bool {
        !self.retired.get()
            && self.committed.borrow().iter().all(|provision| provision.available.get())
    }

    fn next(&self) -> Next {
        match self.phase.get() {
            Phase::Active if self.is_on_target() => Next::Rest,
            Phase::Active => Next::Unload,
            _ if self.retired.get() => Next::End,
            _ if self.status.error.get().is_some() => Next::Rest,
            _ if !self.checked.get() => Next::Check,
            _ => self.available_needs().map_or(Next::Rest, Next::Load),
        }
    }

    /// The provisions of everything that is required, if all are there.
    fn available_needs(&self) -> Option<Vec<Rc<Provision>>> {
        self.needs.iter().filter(|need| need.required).map(|need| need.slot.current()).collect()
    }

    /// Names of required services that are not there.
    pub(super) fn missing(&self) -> Vec<String> {
        let missing =
            self.needs.iter().filter(|need| need.required && need.slot.current().is_none());
        missing.map(|need| need.slot.name.to_string()).collect()
    }

    fn show(&self, state: State) {
        if self.status.state.replace(state) == state {
            return;
        }
        self.status.wakers.wake();
        // An observer is foreign code: it can neither fail the fiber nor hold a borrow open.
        let observers = self.status.observers.borrow().clone();
        for observer in observers {
            drop(guard::call(|| observer(state)));
        }
    }

    pub(super) fn is_at_rest(&self) -> bool {
        !self.driven.get() && !self.queued.get()
    }

    /// The root has no body and is running from the first.
    pub(super) fn start_as_root(&self) {
        self.checked.set(true);
        self.run.set(1);
        self.phase.set(Phase::Active);
        self.show(State::Active);
        self.rest();
    }

    /// Nothing moves any more: those who wait are told.
    pub(super) fn rest(&self) {
        self.status.rests.set(true);
        self.status.wakers.wake();
    }

    /// Something may move.
    pub(super) fn stir(&self) {
        self.status.rests.set(false);
    }
}

/// Moves a fiber until it rests. The scheduler starts at most one of these for each fiber.
pub(super) async fn drive(kernel: Rc<Kernel>, fiber: Rc<Fiber>) {
    loop {
        match fiber.next() {
            Next::Rest => break,
            Next::Check => check(&kernel, &fiber),
            Next::Load(provisions) => load(&kernel, &fiber, provisions).await,
            Next::Unload => unload(&kernel, &fiber).await,
            Next::End => {
                kernel.remove(&fiber);
                // A mark that is left finds nothing to move, so nobody would tell those who wait.
                fiber.queued.set(false);
                fiber.show(State::Disposed);
                break;
            }
        }
    }
    fiber.driven.set(false);
    if fiber.is_at_rest() {
        fiber.rest();
    }
}

/// Reads the config, once, before anything runs: a plugin never starts half-configured.
fn check(kernel: &Kernel, fiber: &Fiber) {
    fiber.checked.set(true);
    let config = fiber.config.take();
    match guard::call(|| fiber.def.check(&config)) {
        Ok(Ok(checked)) => {
            for key in checked.unknown {
                let what = What::UnknownKey { path: key.path, near: key.near };
                kernel.report(&Report { plugin: kernel.path(fiber.id), what, error: None });
            }
            fiber.config.replace(checked.config);
        }
        Ok(Err(refused)) => fail(kernel, fiber, What::ConfigRefused, Error::Config(refused)),
        Err(panic) => {
            let source = Shared::from(panic);
            fail(
                kernel,
                fiber,
                What::ConfigRefused,
                Error::Body { plugin: kernel.path(fiber.id), source },
            );
        }
    }
    if fiber.status.error.get().is_some() {
        fiber.show(State::Failed);
    }
}

fn fail(kernel: &Kernel, fiber: &Fiber, what: What, error: Error) {
    kernel.report_error(fiber.id, what, &error);
    // The first error stays: a fiber fails once.
    drop(fiber.status.error.set(Box::new(error)));
}

async fn load(kernel: &Rc<Kernel>, fiber: &Rc<Fiber>, provisions: Vec<Rc<Provision>>) {
    for provision in &provisions {
        provision.enter();
    }
    fiber.committed.replace(provisions);
    fiber.run.set(fiber.run.get() + 1);
    fiber.phase.set(Phase::Loading);
    fiber.show(State::Loading);
    let ended = run_body(kernel, fiber).await;
    let on_target = fiber.is_on_target();
    match ended {
        Ok(cleanup) => {
            if let Some(cleanup) = cleanup {
                let mut effects = fiber.effects.borrow_mut();
                let key = effects.reserve();
                effects.insert(key, cleanup);
            }
            if on_target {
                fiber.phase.set(Phase::Active);
                fiber.show(State::Active);
                return kernel.announce_all(fiber, true);
            }
        }
        Err(source) if on_target => {
            let plugin = kernel.path(fiber.id);
            fail(kernel, fiber, What::BodyFailed, Error::Body { plugin, source: source.into() });
        }
        Err(source) => {
            let plugin = kernel.path(fiber.id);
            kernel.report(&Report { plugin, what: What::Superseded, error: Some(source.into()) });
        }
    }
    unload(kernel, fiber).await;
}

async fn run_body(kernel: &Rc<Kernel>, fiber: &Rc<Fiber>) -> Result<Option<Cleanup>, BoxError> {
    let ctx = Context::of(kernel, fiber);
    let run = Run::new(fiber.id);
    let config = fiber.config.borrow().clone();
    let body = guard::call_in(run, || fiber.def.start(ctx, config))?;
    Guarded::new(run, body).await
}

async fn unload(kernel: &Rc<Kernel>, fiber: &Rc<Fiber>) {
    fiber.phase.set(Phase::Unloading);
    fiber.show(State::Unloading);
    fiber.stopping.wake();
    kernel.announce_all(fiber, false);
    let provisions = fiber.provisions.borrow().clone();
    for provision in provisions {
        provision.unused(kernel).await;
    }
    effect::undo_all(kernel, fiber).await;
    debug_assert_eq!(fiber.effects.borrow().len(), 0, "an unload leaves nothing behind");
    for provision in fiber.committed.take() {
        provision.leave();
    }
    fiber.phase.set(Phase::Idle);
    if fiber.status.error.get().is_some() {
        fiber.show(State::Failed);
    } else if !fiber.retired.get() && fiber.available_needs().is_none() {
        fiber.show(State::Pending);
    }
}
