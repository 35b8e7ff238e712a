//! What can be asked of a running program, for its messages and its tests.

use std::rc::Rc;

use crate::cordis::context::Context;
use crate::cordis::error::Error;
use crate::cordis::fiber::{Fiber, State};
use crate::cordis::mount::Mount;

/// One plugin in a list of all.
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

/// What a plugin has registered, and what its children have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registered {
    /// Names of the services that it provides.
    pub services: Vec<String>,
    /// Names of the events that it listens to.
    pub events: Vec<String>,
    /// Number of its effects, these included.
    pub effects: usize,
}

impl Mount {
    /// What the plugin has registered by now.
    pub fn registered(&self) -> Registered {
        let is_of = |mut fiber: Option<Rc<Fiber>>| {
            while let Some(it) = fiber {
                if it.id == self.id() {
                    return true;
                }
                fiber = it.parent.and_then(|id| self.kernel().fiber(id));
            }
            false
        };
        let (mut services, kernel) = (Vec::new(), self.kernel());
        for slot in kernel.services.borrow().values() {
            if slot.current().is_some_and(|it| is_of(kernel.fiber(it.owner))) {
                services.push(slot.name.to_string());
            }
        }
        services.sort();
        let events = kernel.bus.heard(|owner| is_of(kernel.fiber(owner)));
        Registered { services, events, effects: self.effect_count() }
    }
}

impl Context {
    /// All plugins that are mounted, oldest first, without the root.
    pub fn fibers(&self) -> Vec<FiberStatus> {
        let mut fibers: Vec<_> = self.kernel.fibers.borrow().values().cloned().collect();
        fibers.retain(|fiber| fiber.parent.is_some());
        fibers.sort_by_key(|fiber| fiber.serial);
        let status = fibers.iter().map(|fiber| FiberStatus {
            path: self.kernel.path(fiber.id),
            name: fiber.name.to_string(),
            state: fiber.status.state.get(),
            missing: fiber.missing(),
            error: fiber.status.error(),
        });
        status.collect()
    }

    /// Number of effects this plugin has registered.
    pub fn effect_count(&self) -> usize {
        self.kernel.fiber(self.owner).map_or(0, |owner| owner.effects.borrow().len())
    }

    /// Number of listeners to an event, whoever has registered them.
    pub fn listener_count(&self, event: &str) -> usize {
        self.kernel.bus.count(event)
    }

    /// Names of all services that are provided now, sorted.
    pub fn service_names(&self) -> Vec<String> {
        let services = self.kernel.services.borrow();
        let provided = services.values().filter(|slot| slot.current().is_some());
        let mut names: Vec<_> = provided.map(|slot| slot.name.to_string()).collect();
        names.sort();
        names
    }
}
