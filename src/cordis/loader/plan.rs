//! What a save would change: each entry of the list against what really runs, before anything is touched.
//!
//! Watch for: the comparison is never with the previous file. A save that was refused, or half of which failed, has left
//! a file behind that says nothing about what runs.

use std::{
    collections::{BTreeSet, HashMap},
    iter::once,
    rc::Rc,
};

use serde_json::Value;

use super::{
    EntryChange, EntryStatus, Loader, Standing, diagnose::nearest, entries::Entry, entries::Fault, entries::join,
    placeholders::Filling,
};
use crate::cordis::{Error, ModuleError, ModuleKey, Mount, PluginDef, State, module::did_you_mean};

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
    Mount(PluginDef, Value),
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
    pub(super) fn status(&self, available: &[String]) -> EntryStatus {
        let Entry { id, name, optional, .. } = self.entry.clone();
        let running = self.running.as_ref();
        let standing = match running {
            _ if self.entry.disabled => Standing::Disabled,
            None => Standing::NotLoaded,
            Some(running) => Standing::Mounted(running.mount.state()),
        };
        let waits = running.filter(|_| standing == Standing::Mounted(State::Pending));
        let missing = waits.map(|it| missing(&it.def, available)).unwrap_or_default();
        let error = self.failure.clone().or_else(|| running?.mount.error().map(|err| cause(&err)));
        let stale = running.is_some() && self.failure.is_some();
        let guard = running.is_some_and(|it| it.def.is_guard());
        EntryStatus { id, name, standing, missing, error, optional, guard, stale }
    }

    fn state(&self) -> Option<State> {
        self.running.as_ref().map(|it| it.mount.state())
    }
}

fn missing(def: &PluginDef, available: &[String]) -> Vec<String> {
    let required = def.inject().into_iter().filter(|(_, required)| *required).map(|(name, _)| name.to_owned());
    required.filter(|it| available.binary_search(it).is_err()).collect()
}

/// The error of a plugin without its path, which whoever reads it knows.
fn cause(err: &Error) -> String {
    match err {
        Error::Body { source, .. } => source.to_string(),
        other => other.to_string(),
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
        let planned = self.planned.iter().filter(|it| matches!(it.step, Step::Skip | Step::Mount(..)));
        let slots = planned.filter_map(|it| it.before.as_ref()).chain(&self.removed);
        slots.filter_map(|slot| Some(slot.running.as_ref()?.mount.clone())).collect()
    }

    /// Ids of the entries that cannot be loaded, with the reason.
    pub(super) fn failed(&self) -> Vec<(String, String)> {
        self.planned.iter().filter_map(|it| Some((it.entry.id.clone(), it.failure()?.to_owned()))).collect()
    }

    /// The saved modules as their entries call them.
    pub(super) fn saved_names(&self) -> Vec<&str> {
        let users = |key| self.planned.iter().find(move |it| it.key.as_ref() == Some(key));
        self.modules.iter().filter_map(|key| Some(&*users(key)?.entry.name)).collect()
    }

    /// What the user is told of single modules and entries.
    pub(super) fn lines(&self) -> Vec<String> {
        let saved = self.saved_names().into_iter().flat_map(|name| self.module_line(name));
        let of_saved = |it: &&Planned| it.key.as_ref().is_some_and(|key| self.modules.contains(key));
        let failed = self.planned.iter().filter(|it| !of_saved(it)).filter_map(Planned::failure_line);
        saved.chain(failed).collect()
    }

    fn module_line(&self, name: &str) -> Vec<String> {
        let users = self.planned.iter().filter(|it| it.entry.name == name);
        let failures: Vec<_> = users.clone().filter_map(Planned::failure_line).collect();
        match users.clone().any(|it| matches!(it.step, Step::Mount(..))) {
            true => once(format!("reloaded {name}")).chain(failures).collect(),
            false => users.filter_map(Planned::failure).take(1).map(|it| format!("{name} not applied: {it}")).collect(),
        }
    }
}

impl Planned {
    fn failure(&self) -> Option<&str> {
        match &self.step {
            Step::Fail(problem) => Some(problem),
            _ => None,
        }
    }

    fn failure_line(&self) -> Option<String> {
        let runs = self.before.as_ref().is_some_and(|it| it.running.is_some());
        let stays = if runs { "; what runs of it stays" } else { "" };
        Some(format!("entry `{}`: {}{stays}", self.entry.id, self.failure()?))
    }
}

fn change(before: Option<&Slot>, after: Option<&Entry>, step: &Step) -> EntryChange {
    let guarded = before.and_then(|it| it.running.as_ref()).is_some_and(|it| it.def.is_guard());
    let guards = matches!(step, Step::Mount(def, _) if def.is_guard());
    EntryChange { before: before.map(|it| it.entry.clone()), after: after.cloned(), guard: guarded || guards }
}

/// Makes a plan, or collects why there can be none.
pub(super) struct Planner<'a> {
    loader: &'a Loader,
    text: Rc<str>,
    fresh: bool,
    modules: BTreeSet<ModuleKey>,
    /// Each module is loaded once for all entries that use it.
    loaded: HashMap<String, (Option<ModuleKey>, Result<PluginDef, ModuleError>)>,
    faults: Vec<Fault>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(loader: &'a Loader, text: Rc<str>, fresh: bool, modules: BTreeSet<ModuleKey>) -> Self {
        Self { loader, text, fresh, modules, loaded: HashMap::new(), faults: Vec::new() }
    }

    /// Compares a list with what runs.
    pub(super) fn plan(mut self, entries: Vec<Entry>) -> Result<Plan, Vec<Fault>> {
        let slots = self.loader.slots.borrow().clone();
        let order: Vec<String> = slots.iter().map(|it| it.entry.id.clone()).collect();
        let mut before: HashMap<_, _> = slots.into_iter().map(|it| (it.entry.id.clone(), it)).collect();
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
        if faults.is_empty() { Ok(Plan { text, fresh, modules, planned, removed }) } else { Err(faults) }
    }

    fn step(&mut self, place: usize, entry: &Entry, before: Option<&Slot>) -> (Option<ModuleKey>, Step) {
        if entry.disabled {
            return (None, Step::Skip);
        }
        if let Some(slot) = before.filter(|it| self.keeps(entry, it)) {
            let faults = slot.running.iter().flat_map(|it| self.optional_guard(place, entry, &it.def));
            self.faults.extend(faults.collect::<Vec<_>>());
            return (slot.key.clone(), Step::Keep);
        }
        let (key, loaded) = self.load(&entry.name);
        let step = match loaded.map_err(|err| err.to_string()).map(|def| (self.fit(place, entry, &def), def)) {
            Err(problem) => Step::Fail(problem),
            Ok((Ok(config), def)) => Step::Mount(def, config),
            Ok((Err(faults), _)) if self.concerns_itself_alone(entry, before) => Step::Fail(super::joined(&faults)),
            Ok((Err(faults), _)) => {
                self.faults.extend(faults);
                Step::Skip
            }
        };
        (key, step)
    }

    /// Whether what runs of an entry is what the entry says.
    fn keeps(&self, entry: &Entry, slot: &Slot) -> bool {
        let Some(running) = &slot.running else { return false };
        let tried_again = self.fresh && matches!(slot.state(), Some(State::Failed | State::Disposed));
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

    fn load(&mut self, name: &str) -> (Option<ModuleKey>, Result<PluginDef, ModuleError>) {
        if let Some(loaded) = self.loaded.get(name) {
            return loaded.clone();
        }
        let loaded = self.loader.load(name);
        self.loaded.insert(name.to_owned(), loaded.clone());
        loaded
    }

    fn fill<'d>(&self, entry: &Entry, def: &'d PluginDef) -> Filling<'d>
    where
        'a: 'd,
    {
        let options = &self.loader.options;
        let mut filling = Filling::new(&entry.config, def.schema(), &*options.env);
        for (_, key, text) in options.set.iter().filter(|(id, ..)| *id == entry.id) {
            filling.set(key, text);
        }
        filling
    }

    /// The config that the plugin is to be mounted with, or all that is wrong with it.
    fn fit(&self, place: usize, entry: &Entry, def: &PluginDef) -> Result<Value, Vec<Fault>> {
        let filling = self.fill(entry, def);
        let checked = def.check(&filling.config).err().map(|err| err.faults).unwrap_or_default();
        let known = |path: &str| filling.faults.iter().any(|(at, _)| at == path);
        let checked = checked.into_iter().filter(|it| !known(&it.path)).map(|it| (filling.hide(&it.path, it.problem), it.path));
        let found = filling.faults.iter().map(|(at, problem)| (problem.clone(), at.clone())).chain(checked);
        let mut faults: Vec<_> = found.map(|(problem, path)| self.fault(place, entry, &filling, &path, problem)).collect();
        faults.extend(self.optional_guard(place, entry, def));
        if faults.is_empty() { Ok(filling.config) } else { Err(faults) }
    }

    fn fault(&self, place: usize, entry: &Entry, filling: &Filling<'_>, path: &str, problem: String) -> Fault {
        match filling.set_from(path) {
            Some(key) => Fault { entry: format!("--set {}.{key}", entry.id), line: None, field: String::new(), problem },
            None => Fault::at(&self.text, place, named(&entry.id), &join("config", path), problem),
        }
    }

    fn optional_guard(&self, place: usize, entry: &Entry, def: &PluginDef) -> Option<Fault> {
        let problem = "a guard cannot be optional: without it nothing would be guarded".to_owned();
        let wrong = entry.optional && def.is_guard();
        wrong.then(|| Fault::at(&self.text, place, named(&entry.id), "optional", problem))
    }

    /// A mistyped `--set` or `--disable` must not be without effect. Later an entry may go, and they with it.
    fn check_arguments(&mut self, entries: &[Entry]) {
        let options = &self.loader.options;
        let set = options.set.iter().map(|(id, key, _)| (id, format!("--set {id}.{key}")));
        let disable = options.disable.iter().map(|id| (id, format!("--disable {id}")));
        for (id, entry) in set.chain(disable).filter(|(id, _)| !entries.iter().any(|it| it.id == **id)) {
            let near = nearest(id, entries.iter().map(|it| &*it.id));
            let problem = format!("no entry has the id `{id}`{}", did_you_mean(near));
            self.faults.push(Fault { entry, line: None, field: String::new(), problem });
        }
    }
}

fn named(id: &str) -> String {
    format!("entry `{id}`")
}
