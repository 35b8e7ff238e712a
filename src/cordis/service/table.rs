//! The table of services: who provides a name now, and who asks for it.
//!
//! Watch for: a provision counts only while its provider is ACTIVE; and it knows how many fibers use it, because its
//! provider waits for them before it cleans up.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::cordis::effect::Slots;
use crate::cordis::fiber::{Fiber, FiberId};
use crate::cordis::kernel::Kernel;
use crate::cordis::waits::{self, Target, Wakers};

/// One name in the table of services: who provides it now, and who asks for it.
// Omitted: isolated realms, in which one name means another service, and a config of a service for each part of the tree.
// One table is enough for one agent.
pub(in crate::cordis) struct ServiceSlot {
    pub(in crate::cordis) name: Rc<str>,
    pub(in crate::cordis) provision: RefCell<Option<Rc<Provision>>>,
    /// Fibers that require it, by age.
    pub(in crate::cordis) dependents: RefCell<Slots<u64, FiberId>>,
}

/// One `provide`. Its id is never used again, so that a service that went and came back is not mistaken for the old one.
pub(in crate::cordis) struct Provision {
    pub(in crate::cordis) id: u64,
    pub(in crate::cordis) owner: FiberId,
    pub(in crate::cordis) slot: Rc<ServiceSlot>,
    /// An `Rc` of the service, whatever its type.
    pub(in crate::cordis) value: Rc<dyn Any>,
    /// Counts only while the provider is ACTIVE.
    pub(in crate::cordis) available: Cell<bool>,
    users: Cell<usize>,
    wakers: Wakers,
}

/// A declared need of a fiber.
pub(in crate::cordis) struct Requirement {
    pub(in crate::cordis) slot: Rc<ServiceSlot>,
    pub(in crate::cordis) required: bool,
}

impl ServiceSlot {
    pub(in crate::cordis) fn new(name: Rc<str>) -> Self {
        Self { name, provision: RefCell::default(), dependents: RefCell::default() }
    }

    /// The provision, if its provider is ACTIVE.
    pub(in crate::cordis) fn current(&self) -> Option<Rc<Provision>> {
        self.provision.borrow().as_ref().filter(|provision| provision.available.get()).cloned()
    }

    pub(in crate::cordis) fn is_unused(&self) -> bool {
        self.provision.borrow().is_none() && self.dependents.borrow().len() == 0
    }
}

impl Fiber {
    /// Enters the fiber on the lists of those who ask for its services.
    pub(in crate::cordis) fn subscribe(&self) {
        for need in self.needs.iter().filter(|need| need.required) {
            need.slot.dependents.borrow_mut().insert(self.serial, self.id);
        }
    }
}

impl Provision {
    /// Takes the name for `owner`.
    pub(in crate::cordis) fn new(
        id: u64,
        owner: FiberId,
        slot: Rc<ServiceSlot>,
        value: Rc<dyn Any>,
    ) -> Rc<Self> {
        let (available, users, wakers) = (Cell::new(false), Cell::new(0), Wakers::default());
        let provision = Rc::new(Self { id, owner, slot, value, available, users, wakers });
        provision.slot.provision.replace(Some(provision.clone()));
        provision
    }

    /// Whether the name is still its own: it was not undone by hand.
    pub(in crate::cordis) fn has_name(&self) -> bool {
        self.slot.provision.borrow().as_ref().is_some_and(|holder| holder.id == self.id)
    }

    /// A fiber begins a load with this provision.
    pub(in crate::cordis) fn enter(&self) {
        self.users.set(self.users.get() + 1);
    }

    /// That fiber has unloaded.
    pub(in crate::cordis) fn leave(&self) {
        self.users.set(self.users.get() - 1);
        if self.users.get() == 0 {
            self.wakers.wake();
        }
    }

    /// Waits until no fiber uses it.
    pub(in crate::cordis) fn unused(&self, kernel: &Rc<Kernel>) -> impl Future<Output = ()> {
        let unused = self.wakers.until(|| self.users.get() == 0);
        waits::hold(kernel, self.owner, Target::Users(self.id), unused)
    }
}

impl Kernel {
    /// The record of a service name, made on first use.
    pub(in crate::cordis) fn slot(&self, name: &str) -> Rc<ServiceSlot> {
        let known = self.services.borrow().get(name).cloned();
        known.unwrap_or_else(|| {
            let slot = Rc::new(ServiceSlot::new(name.into()));
            self.services.borrow_mut().insert(slot.name.clone(), slot.clone());
            slot
        })
    }

    /// The provision of a name, if its provider is ACTIVE.
    pub(in crate::cordis) fn current(&self, name: &str) -> Option<Rc<Provision>> {
        self.services.borrow().get(name)?.current()
    }

    /// The names of all services that can be read now.
    pub(in crate::cordis) fn provided(&self) -> Vec<Rc<str>> {
        let services = self.services.borrow();
        services.values().filter_map(|it| Some(it.current()?.slot.name.clone())).collect()
    }

    /// Forgets a name that nobody provides or asks for, so that the table does not grow with names once used.
    pub(in crate::cordis) fn prune(&self, slot: &Rc<ServiceSlot>) {
        let mut services = self.services.borrow_mut();
        let is_known = services.get(&slot.name).is_some_and(|known| Rc::ptr_eq(known, slot));
        if is_known && slot.is_unused() {
            services.remove(&slot.name);
        }
    }

    /// Takes a fiber off the lists of those who ask for its services.
    pub(in crate::cordis) fn unsubscribe(&self, fiber: &Fiber) {
        for need in &fiber.needs {
            need.slot.dependents.borrow_mut().remove(fiber.serial);
            self.prune(&need.slot);
        }
    }
}
