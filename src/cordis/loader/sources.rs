//! The files of the list and of its modules.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    rc::Rc,
};

use super::{
    Cause, LoadError, Loader,
    files::Print,
    plan::{Plan, Slot},
};
use crate::cordis::{ModuleError, ModuleKey, Panic, PluginDef, guard, module::original_name};

/// What came of loading a module.
#[derive(Clone)]
pub(super) struct Loaded {
    pub(super) key: Option<ModuleKey>,
    pub(super) def: Result<PluginDef, ModuleError>,
    /// What its files were.
    pub(super) prints: Prints,
}

/// What files were when they were read.
pub(super) type Prints = Vec<(Print, PathBuf)>;

impl Loader {
    /// The module of a name, read afresh. Its files are looked at before, so that no save between the two is lost.
    pub(super) fn load(&self, name: &str) -> Loaded {
        let modules = &self.options.modules;
        let key = match modules.resolve(name, self.base()) {
            Ok(key) => key,
            Err(err) => return Loaded { key: None, def: Err(err), prints: Vec::new() },
        };
        let mut prints = self.look_at_sources(name, &key);
        let panicked =
            |panic: Panic| ModuleError::Broken { name: name.into(), problem: panic.to_string() };
        let def = guard::call(|| modules.load(&key)).map_err(panicked).flatten();
        // What it takes in beside its own file may be known only now.
        let more = self.look_at_sources(name, &key).into_iter();
        let more: Vec<_> = more.filter(|(_, it)| prints.iter().all(|(_, old)| old != it)).collect();
        prints.extend(more);
        Loaded { key: Some(key), def, prints }
    }

    fn look_at_sources(&self, name: &str, key: &ModuleKey) -> Prints {
        self.sources(name, key).into_iter().map(|it| (Print::look(&it), it)).collect()
    }

    /// Names and keys of the modules in use.
    pub(super) fn modules(&self) -> BTreeSet<(String, ModuleKey)> {
        let slots = self.slots.borrow();
        slots.iter().filter_map(|it| Some((it.entry.name.clone(), it.key.clone()?))).collect()
    }

    /// Names and keys of the modules that a file belongs to.
    pub(super) fn users_of(&self, path: &Path) -> Vec<(String, ModuleKey)> {
        let uses =
            |(name, key): &(String, ModuleKey)| self.sources(name, key).iter().any(|it| it == path);
        self.modules().into_iter().filter(uses).collect()
    }

    /// Whether a file says something else than what is in force: whoever watches has not told yet, or will never, or it
    /// was told and refused, or what was saved cannot be loaded.
    pub fn is_behind(&self) -> bool {
        !self.behind().is_empty()
    }

    /// The files of which that is so, as they are now.
    pub(crate) fn behind(&self) -> Prints {
        let list = Print::of_bytes(self.text.borrow().as_bytes());
        let list = self.options.file.iter().map(|it| (list, it.clone()));
        let slots = self.slots.borrow().clone();
        let in_force = list.chain(slots.iter().flat_map(|it| self.in_force(it)));
        let now = in_force.map(|(print, path)| (print, Print::look(&path), path));
        now.filter(|(print, now, _)| print != now).map(|(_, now, path)| (now, path)).collect()
    }

    /// What the files of an entry's module were when what runs of it was loaded. If nothing does they count as not there,
    /// and what is compiled in has none.
    fn in_force(&self, slot: &Slot) -> Prints {
        let files: Vec<_> =
            slot.key.iter().flat_map(|key| self.options.modules.files(key)).collect();
        let read = slot.running.as_ref().filter(|_| !files.is_empty());
        let mut prints = read.map(|it| it.prints.clone()).unwrap_or_default();
        let is_read = |path: &PathBuf| prints.iter().any(|(_, it)| it == path);
        let unread: Vec<_> = files.into_iter().filter(|it| !is_read(it)).collect();
        prints.extend(unread.into_iter().map(|it| (Print::Missing, it)));
        prints
    }

    /// The files of a module. The original's name of a built-in counts, so that saving such a file is not met by silence.
    pub(super) fn sources(&self, name: &str, key: &ModuleKey) -> Vec<PathBuf> {
        let files = self.options.modules.files(key);
        let original =
            original_name(name).filter(|_| files.is_empty()).map(|_| self.base().join(name));
        files.into_iter().chain(original.filter(|it| it.exists())).collect()
    }

    pub(super) fn say_built_in(&self, path: &Path, name: &str) {
        self.files.keep([(Print::look(path), path.to_owned())]);
        if self.told.borrow_mut().insert(path.to_owned()) {
            self.say(format!("{name} is compiled in; what was saved is not read"));
        }
    }

    fn base(&self) -> &Path {
        let folder = self.options.file.as_deref().and_then(Path::parent);
        folder.filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    /// The text of the list as it is now.
    pub(super) fn read(&self) -> Result<Rc<str>, LoadError> {
        let Some(path) = &self.options.file else { return Ok(self.options.text.into()) };
        let bytes = self.files.read(path).map_err(|cause| self.error(cause))?;
        let text = String::from_utf8(bytes).map_err(|_| self.error(Cause::Encoding))?;
        Ok(text.into())
    }

    /// Whether the list says something else than it did when this plan was made.
    pub(super) fn has_moved_on(&self, plan: &Plan) -> bool {
        let path = self.options.file.as_deref().filter(|_| plan.fresh);
        let now = path.map(Print::look).filter(|it| !it.is_unsettled());
        now.is_some() && now != path.and_then(|it| self.files.last(it))
    }
}
