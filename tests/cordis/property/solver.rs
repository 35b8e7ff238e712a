//! What a set of plugins must look like at rest, worked out from the facts and without any history.

use nano_cordis::cordis::State;

/// A service of the root by number, or the one that a plugin provides in its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Root(usize),
    Plugin(usize),
}

impl Need {
    pub(super) fn name(self) -> String {
        match self {
            Need::Root(number) => format!("r{number}"),
            Need::Plugin(id) => format!("s{id}"),
        }
    }
}

/// Where a plugin waits at its gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Nowhere,
    /// In its body, before it provides and mounts.
    Enter,
    /// In its body, after it did.
    Loaded,
    /// In the cleanup that runs first.
    Leave,
    /// In a cleanup that runs after its children are gone.
    Left,
}

/// One plugin. It is mounted by its parent's body or, without one, by the test.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) parent: Option<usize>,
    pub(super) needs: Vec<Need>,
    pub(super) place: Place,
    pub(super) fails: bool,
}

/// What the test sees of a plugin at rest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Nothing if it was never mounted.
    pub(super) state: Option<State>,
    /// Mounted, and nobody asked to dispose of this mount itself.
    pub(super) wanted: bool,
    /// Its own code waits at a gate that is shut.
    pub(super) at_gate: bool,
}

impl Seen {
    /// In the middle of a transition.
    pub(super) fn busy(self) -> bool {
        matches!(self.state, Some(State::Loading | State::Unloading))
    }

    fn there(self) -> bool {
        !matches!(self.state, None | Some(State::Disposed))
    }
}

/// What is true at one moment.
pub(super) struct Facts<'a> {
    pub(super) specs: &'a [Spec],
    pub(super) roots: &'a [bool],
    pub(super) seen: &'a [Seen],
}

impl Facts<'_> {
    /// Who must be active: grows from nothing, one plugin after the other, until no more may run.
    pub(super) fn active(&self) -> Vec<bool> {
        let mut active = vec![false; self.specs.len()];
        while let Some(id) = (0..active.len()).find(|id| !active[*id] && self.may_run(*id, &active))
        {
            active[id] = true;
        }
        active
    }

    fn may_run(&self, id: usize, active: &[bool]) -> bool {
        let spec = &self.specs[id];
        let provided = |need: &Need| match *need {
            Need::Root(number) => self.roots[number],
            Need::Plugin(provider) => active[provider],
        };
        !spec.fails
            && !self.seen[id].busy()
            && self.exists(id, active)
            && spec.needs.iter().all(provided)
    }

    /// A child exists while its parent is active, and as long as a parent that is held up has not got to it.
    fn exists(&self, id: usize, active: &[bool]) -> bool {
        let held_up = |parent: usize| self.seen[parent].busy() && self.seen[id].there();
        let parent = self.specs[id].parent;
        self.seen[id].wanted && parent.is_none_or(|parent| active[parent] || held_up(parent))
    }

    /// Who is busy and neither waits at a gate nor for somebody who, in the end, does.
    pub(super) fn stuck(&self) -> Vec<usize> {
        let busy = |id: &usize| self.seen[*id].busy();
        let (mut excused, mut others): (Vec<_>, Vec<_>) =
            (0..self.specs.len()).filter(busy).partition(|id| self.seen[*id].at_gate);
        while let Some(at) =
            others.iter().position(|id| excused.iter().any(|by| self.holds_up(*by, *id)))
        {
            excused.push(others.swap_remove(at));
        }
        others
    }

    /// A plugin that unloads waits for its children and for those who use what it provided.
    fn holds_up(&self, by: usize, id: usize) -> bool {
        let uses = self.specs[by].needs.contains(&Need::Plugin(id));
        let unloading = self.seen[id].state == Some(State::Unloading);
        unloading && (uses || self.specs[by].parent == Some(id))
    }
}
