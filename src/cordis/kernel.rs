//! What all contexts share: the table of fibers, the table of services, and the place for reports.
//!
//! Watch for: fibers live here and nowhere else. Contexts, handles and undos hold ids, and an id of something that is
//! gone finds nothing.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;
use slotmap::SlotMap;

use super::context::FiberStatus;
use super::effect::Effects;
use super::error::{BoxError, Error};
use super::events::Bus;
use super::fiber::{Fiber, FiberId, Phase, State, Status};
use super::guard;
use super::plugin::PluginDef;
use super::refresh::{Need, Queue, ServiceSlot};
use super::report::{Report, What};
use super::waits::{Waits, Wakers};

/// What all contexts share.
pub(super) struct Kernel {
    pub(super) fibers: RefCell<SlotMap<FiberId, Rc<Fiber>>>,
    pub(super) services: RefCell<HashMap<Rc<str>, Rc<ServiceSlot>>>,
    pub(super) bus: Bus,
    pub(super) queue: Queue,
    pub(super) waits: Waits,
    reports: Box<dyn Fn(&Report)>,
    /// Cleanups that failed since the shutdown began; none before it.
    pub(super) failures: RefCell<Option<Vec<Error>>>,
    next: Cell<u64>,
}

impl Kernel {
    pub(super) fn new(reports: Box<dyn Fn(&Report)>) -> Self {
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

    pub(super) fn insert(
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
        fiber.subscribe();
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
    pub(super) fn prune(&self, slot: &Rc<ServiceSlot>) {
        let mut services = self.services.borrow_mut();
        if slot.is_unused() && services.get(&slot.name).is_some_and(|known| Rc::ptr_eq(known, slot))
        {
            services.remove(&slot.name);
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

    pub(super) fn status(&self, fiber: &Fiber) -> FiberStatus {
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
    pub(super) fn hung(&self) -> Vec<String> {
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
        if let (What::CleanupFailed, Some(failures)) = (&what, &mut *self.failures.borrow_mut()) {
            failures.push(error.clone());
        }
        self.report(&Report { plugin: self.path(fiber), what, error: Some(cause) });
    }

    pub(super) fn cleanup_error(&self, fiber: FiberId, source: BoxError) -> Error {
        Error::Cleanup { plugin: self.path(fiber), source: source.into() }
    }
}
