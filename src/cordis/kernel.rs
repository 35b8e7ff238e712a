//! What all contexts share: the table of fibers, the table of services, and the place for reports.
//!
//! Watch for: fibers live here and nowhere else. Contexts, handles and undos hold ids, and an id of something that is
//! gone finds nothing.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use slotmap::SlotMap;

use super::error::{BoxError, Error, Shared};
use super::events::Bus;
use super::fiber::{Fiber, FiberId};
use super::guard::{self, Run};
use super::plugin::PluginDef;
use super::refresh::{Provision, Queue, Requirement, ServiceSlot};
use super::report::{Report, What};
use super::waits::Waits;

/// What all contexts share.
pub(super) struct Kernel {
    /// Tells the kernels of one program apart.
    pub(super) id: u64,
    pub(super) fibers: RefCell<SlotMap<FiberId, Rc<Fiber>>>,
    services: RefCell<HashMap<Rc<str>, Rc<ServiceSlot>>>,
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
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
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

    /// A new run of a fiber's code.
    pub(super) fn run(&self, fiber: FiberId) -> Run {
        Run { id: self.number(), fiber, kernel: self.id }
    }

    pub(super) fn fiber(&self, id: FiberId) -> Option<Rc<Fiber>> {
        self.fibers.borrow().get(id).cloned()
    }

    pub(super) fn insert(
        &self,
        parent: Option<FiberId>,
        name: Rc<str>,
        def: &PluginDef,
        config: Value,
    ) -> Rc<Fiber> {
        let needs = def.needs().iter();
        let needs = needs
            .map(|need| Requirement { slot: self.slot(&need.name), required: need.required })
            .collect();
        let (serial, def) = (self.number(), def.clone());
        let fiber = |id| Rc::new(Fiber::new(id, parent, serial, name, def, needs, config));
        let id = self.fibers.borrow_mut().insert_with_key(fiber);
        let fiber = self.fibers.borrow()[id].clone();
        fiber.subscribe();
        fiber
    }

    /// The end of a fiber: out of the table, of the parent's list and of the lists of those who wait for services.
    pub(super) fn remove(&self, fiber: &Fiber) {
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
            let slot = Rc::new(ServiceSlot::new(name.into()));
            self.services.borrow_mut().insert(slot.name.clone(), slot.clone());
            slot
        })
    }

    /// The provision of a name, if its provider is ACTIVE.
    pub(super) fn current(&self, name: &str) -> Option<Rc<Provision>> {
        self.services.borrow().get(name)?.current()
    }

    /// Forgets a name that nobody provides or asks for, so that the table does not grow with names once used.
    pub(super) fn prune(&self, slot: &Rc<ServiceSlot>) {
        let mut services = self.services.borrow_mut();
        let is_known = services.get(&slot.name).is_some_and(|known| Rc::ptr_eq(known, slot));
        if is_known && slot.is_unused() {
            services.remove(&slot.name);
        }
    }

    /// Names of services that are provided by ACTIVE plugins, sorted.
    pub(super) fn service_names(&self) -> Vec<String> {
        let services = self.services.borrow();
        let provided = services.values().filter(|slot| slot.current().is_some());
        let mut names: Vec<_> = provided.map(|slot| slot.name.to_string()).collect();
        names.sort();
        names
    }

    /// Names from the root down, without the root: `loader > bash`.
    pub(super) fn path(&self, id: FiberId) -> String {
        let mut names = Vec::new();
        let mut next = self.fiber(id);
        if next.is_none() {
            return "a plugin that was unloaded".into();
        }
        while let Some(fiber) = next {
            names.push(fiber.name.clone());
            next = fiber.parent.and_then(|id| self.fiber(id));
        }
        if names.len() > 1 {
            names.pop();
        }
        names.reverse();
        names.join(" > ")
    }

    /// Those that have not ended, innermost only: a parent hangs because its child does.
    pub(super) fn hung(&self) -> Vec<String> {
        let fibers: Vec<_> =
            self.fibers.borrow().values().filter(|it| it.driven.get()).cloned().collect();
        let parents: HashSet<_> = fibers.iter().filter_map(|it| it.parent).collect();
        let innermost = fibers.iter().filter(|it| !parents.contains(&it.id));
        innermost.map(|it| self.path(it.id)).collect()
    }

    pub(super) fn report(&self, fiber: FiberId, what: What, error: Option<Shared>) {
        self.send(&Report { plugin: self.path(fiber), what, error });
    }

    pub(super) fn send(&self, report: &Report) {
        // A place for reports that panics cannot be told so.
        drop(guard::call(|| (self.reports)(report)));
    }

    pub(super) fn report_error(&self, fiber: FiberId, what: What, error: &Error) {
        let cause = match error {
            Error::Body { source, .. } | Error::Cleanup { source, .. } => source.clone(),
            other => other.clone().into(),
        };
        self.report(fiber, what, Some(cause));
    }

    pub(super) fn report_cleanup(&self, fiber: FiberId, error: Error) {
        self.report_error(fiber, What::CleanupFailed, &error);
        if let Some(failures) = &mut *self.failures.borrow_mut() {
            failures.push(error);
        }
    }

    pub(super) fn cleanup_error(&self, fiber: FiberId, source: BoxError) -> Error {
        Error::Cleanup { plugin: self.path(fiber), source: source.into() }
    }
}
