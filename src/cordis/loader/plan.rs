//! What a save would change: each entry of the list against what really runs, before anything is touched.
//!
//! Watch for: the comparison is never with the previous file. A save that was refused, or half of which failed, has left
//! a file behind that says nothing about what runs.

use std::{
    collections::{BTreeSet, HashMap},
    rc::Rc,
};

use serde_json::Value;

use super::{
    Entry, EntryChange, Fault, Loader,
    error::joined,
    places::Places,
    sources::{Loaded, Prints},
};
use crate::cordis::{Context, Error, ModuleKey, Mount, PluginDef, State};

/// One entry of the list in force, and what became of it.
#[derive(Clone)]
pub(super) struct Slot {
    pub(super) entry: Entry,
    /// Kept also when the module could not be loaded: a save of its file is another chance.
    pub(super) key: Option<ModuleKey>,
    pub(super) running: Option<Rc<Running>>,
    pub(super) failure: Option<String>,
}

/// What is really mounted, which may be older than the entry.
pub(super) struct Running {
    pub(super) mount: Mount,
    pub(super) def: PluginDef,
    pub(super) name: String,
    pub(super) config: Value,
    /// What the files of its module were. A version that could not be loaded is not among them.
    pub(super) prints: Prints,
}

/// What is to be done with one entry.
pub(super) enum Step {
    /// It runs as it should.
    Keep,
    /// It shall not run.
    Skip,
    /// It cannot be loaded; what runs of it stays.
    Fail(String),
    /// It starts, after what runs of it has stopped.
    Mount(PluginDef, Value, Prints),
}

/// One entry of the new list.
pub(super) struct Planned {
    pub(super) entry: Entry,
    pub(super) key: Option<ModuleKey>,
    pub(super) before: Option<Slot>,
    pub(super) step: Step,
}

/// All that one save would do.
pub(super) struct Plan {
    pub(super) text: Rc<str>,
    /// Whether this text is not the one in force.
    pub(super) fresh: bool,
    /// The modules that were saved.
    pub(super) modules: BTreeSet<ModuleKey>,
    pub(super) planned: Vec<Planned>,
    pub(super) removed: Vec<Slot>,
}

impl Slot {
    /// What runs of it, if it is starting or stopping.
    pub(super) fn moving(&self) -> Option<Mount> {
        let mount = &self.running.as_ref()?.mount;
        let moves = match mount.state() {
            State::Loading | State::Unloading => true,
            State::Pending => mount.missing().is_empty(),
            State::Active | State::Failed | State::Disposed => false,
        };
        moves.then(|| mount.clone())
    }

    fn state(&self) -> Option<State> {
        self.running.as_ref().map(|it| it.mount.state())
    }
}

impl Planned {
    /// Mounts what is to be mounted. What is written down is what was done, not what was wanted.
    pub(super) fn carry_out(self, host: &Context) -> Slot {
        let stays = self.before.and_then(|it| it.running);
        let (running, failure) = match self.step {
            Step::Keep => (stays, None),
            Step::Skip => (None, None),
            Step::Fail(problem) => (stays, Some(problem)),
            Step::Mount(def, config, prints) => {
                match Running::start(host, &self.entry, def, config, prints) {
                    Ok(running) => (Some(Rc::new(running)), None),
                    Err(err) => (None, Some(err.to_string())),
                }
            }
        };
        Slot { entry: self.entry, key: self.key, running, failure }
    }
}

impl Running {
    fn start(
        host: &Context,
        entry: &Entry,
        def: PluginDef,
        config: Value,
        prints: Prints,
    ) -> Result<Self, Error> {
        let mount = host.plugin_named(&entry.id, &def, config.clone())?;
        Ok(Self { mount, def, name: entry.name.clone(), config, prints })
    }
}

impl Plan {
    /// The entries that will not stay as they are.
    pub(super) fn changes(&self) -> Vec<EntryChange> {
        let removed = self.removed.iter().map(|slot| change(Some(slot), None, &Step::Skip));
        let planned = self.planned.iter().filter_map(|it| {
            let same = it.before.as_ref().is_some_and(|slot| slot.entry == it.entry);
            let stays = same && !matches!(it.step, Step::Mount(..));
            (!stays).then(|| change(it.before.as_ref(), Some(&it.entry), &it.step))
        });
        planned.chain(removed).collect()
    }

    /// What must have stopped before anything starts.
    pub(super) fn leaving(&self) -> Vec<Mount> {
        let planned =
            self.planned.iter().filter(|it| matches!(it.step, Step::Skip | Step::Mount(..)));
        let slots = planned.filter_map(|it| it.before.as_ref()).chain(&self.removed);
        slots.filter_map(|slot| Some(slot.running.as_ref()?.mount.clone())).collect()
    }
}

fn change(before: Option<&Slot>, after: Option<&Entry>, step: &Step) -> EntryChange {
    let guarded = before.and_then(|it| it.running.as_ref()).is_some_and(|it| it.def.is_guard());
    let guards = matches!(step, Step::Mount(def, ..) if def.is_guard());
    EntryChange {
        before: before.map(|it| it.entry.clone()),
        after: after.cloned(),
        guard: guarded || guards,
    }
}

/// Makes a plan, or collects why there can be none.
pub(super) struct Planner<'a> {
    pub(super) loader: &'a Loader,
    text: Rc<str>,
    pub(super) places: Places,
    fresh: bool,
    modules: BTreeSet<ModuleKey>,
    /// Each module is loaded once for all entries that use it.
    loaded: HashMap<String, Loaded>,
    pub(super) faults: Vec<Fault>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(
        loader: &'a Loader,
        text: Rc<str>,
        fresh: bool,
        modules: BTreeSet<ModuleKey>,
    ) -> Self {
        let places = Places::new(text.clone());
        Self { loader, text, places, fresh, modules, loaded: HashMap::new(), faults: Vec::new() }
    }

    /// Compares a list with what runs.
    pub(super) fn plan(mut self, entries: Vec<Entry>) -> Result<Plan, Vec<Fault>> {
        let slots = self.loader.slots.borrow().clone();
        let order: Vec<String> = slots.iter().map(|it| it.entry.id.clone()).collect();
        let mut before: HashMap<_, _> =
            slots.into_iter().map(|it| (it.entry.id.clone(), it)).collect();
        let mut planned = Vec::with_capacity(entries.len());
        if self.loader.is_starting() {
            self.check_arguments(&entries);
        }
        for (place, mut entry) in entries.into_iter().enumerate() {
            entry.disabled |= self.loader.options.disable.contains(&entry.id);
            let before = before.remove(&entry.id);
            let (key, step) = self.step(place, &entry, before.as_ref());
            planned.push(Planned { entry, key, before, step });
        }
        let removed = order.iter().filter_map(|id| before.remove(id)).collect();
        let Self { text, fresh, modules, faults, .. } = self;
        if !faults.is_empty() {
            return Err(faults);
        }
        // Not before: a version of a module that was read for nothing is still to be noticed. And this is what was read,
        // not what is in force: a version that cannot be loaded was read too.
        self.loader.files.keep(self.loaded.into_values().flat_map(|it| it.prints));
        Ok(Plan { text, fresh, modules, planned, removed })
    }

    fn step(
        &mut self,
        place: usize,
        entry: &Entry,
        before: Option<&Slot>,
    ) -> (Option<ModuleKey>, Step) {
        if entry.disabled {
            return (None, Step::Skip);
        }
        if let Some(slot) = before.filter(|it| self.keeps(entry, it)) {
            let faults =
                slot.running.iter().filter_map(|it| self.optional_guard(place, entry, &it.def));
            self.faults.extend(faults.collect::<Vec<_>>());
            return (slot.key.clone(), Step::Keep);
        }
        let loaded = self.load(&entry.name);
        let step = match loaded.def {
            Err(err) => Step::Fail(err.to_string()),
            Ok(def) => self.mount(place, entry, before, def, loaded.prints),
        };
        (loaded.key, step)
    }

    fn mount(
        &mut self,
        place: usize,
        entry: &Entry,
        before: Option<&Slot>,
        def: PluginDef,
        prints: Prints,
    ) -> Step {
        match self.fit(place, entry, &def) {
            Ok(config) => Step::Mount(def, config, prints),
            Err(faults) if self.concerns_itself_alone(entry, before) => Step::Fail(joined(&faults)),
            Err(faults) => {
                self.faults.extend(faults);
                Step::Skip
            }
        }
    }

    /// Whether what runs of an entry is what the entry says.
    fn keeps(&self, entry: &Entry, slot: &Slot) -> bool {
        let Some(running) = &slot.running else { return false };
        let tried_again =
            self.fresh && matches!(slot.state(), Some(State::Failed | State::Disposed));
        let saved = slot.key.as_ref().is_some_and(|it| self.modules.contains(it));
        if slot.failure.is_some() || tried_again || saved || running.name != entry.name {
            return false;
        }
        let filling = self.fill(entry, &running.def);
        filling.faults.is_empty() && filling.config == running.config
    }

    /// A config that the file did not change, but the module: its entry keeps what it has, and the save is good.
    fn concerns_itself_alone(&self, entry: &Entry, before: Option<&Slot>) -> bool {
        let same = |slot: &Slot| slot.entry.name == entry.name && slot.entry.config == entry.config;
        !self.fresh || before.is_some_and(|it| it.running.is_some() && same(it))
    }

    fn load(&mut self, name: &str) -> Loaded {
        let loader = self.loader;
        self.loaded.entry(name.to_owned()).or_insert_with(|| loader.load(name)).clone()
    }
}
