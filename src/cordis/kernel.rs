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

use super::error::Error;
use super::events::Bus;
use super::fiber::{Fiber, FiberId};
use super::guard::Run;
use super::plugin::PluginDef;
use super::refresh::Queue;
use super::report::Report;
use super::service::{Requirement, ServiceSlot};
use super::waits::Waits;

/// What all contexts share.
pub(super) struct Kernel {
    /// Tells the kernels of one program apart.
    pub(super) id: u64,
    pub(super) fibers: RefCell<SlotMap<FiberId, Rc<Fiber>>>,
    pub(super) services: RefCell<HashMap<Rc<str>, Rc<ServiceSlot>>>,
    pub(super) bus: Bus,
    pub(super) queue: Queue,
    pub(super) waits: Waits,
    pub(super) reports: Box<dyn Fn(&Report)>,
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
}
