//! Modules and their files, as the entries name them.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::Loader;
use crate::cordis::{ModuleError, ModuleKey, PluginDef, module::original_name};

impl Loader {
    /// The module of a name, read afresh. Its files are noted before, so that no save between the two is lost.
    pub(super) fn load(&self, name: &str) -> (Option<ModuleKey>, Result<PluginDef, ModuleError>) {
        let modules = &self.options.modules;
        let key = match modules.resolve(name, self.base()) {
            Ok(key) => key,
            Err(err) => return (None, Err(err)),
        };
        self.sources(name, &key).iter().for_each(|it| self.files.note(it));
        let loaded = modules.load(&key);
        (Some(key), loaded)
    }

    /// Names and keys of the modules in use.
    pub(super) fn modules(&self) -> BTreeSet<(String, ModuleKey)> {
        let slots = self.slots.borrow();
        slots.iter().filter_map(|it| Some((it.entry.name.clone(), it.key.clone()?))).collect()
    }

    /// The files of a module. The original's name of a built-in counts, so that saving such a file is not met by silence.
    pub(super) fn sources(&self, name: &str, key: &ModuleKey) -> Vec<PathBuf> {
        let files = self.options.modules.files(key);
        let original =
            original_name(name).filter(|_| files.is_empty()).map(|_| self.base().join(name));
        files.into_iter().chain(original.filter(|it| it.exists())).collect()
    }

    pub(super) fn say_built_in(&self, path: &Path, name: &str) {
        self.files.note(path);
        if self.told.borrow_mut().insert(path.to_owned()) {
            self.say(format!("{name} is compiled in; what was saved is not read"));
        }
    }

    fn base(&self) -> &Path {
        let folder = self.options.file.as_deref().and_then(Path::parent);
        folder.filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }
}
