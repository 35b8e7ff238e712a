//! What can be asked of a running program, for its messages and its tests.

use crate::cordis::context::Context;
use crate::cordis::error::Error;
use crate::cordis::fiber::State;

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
