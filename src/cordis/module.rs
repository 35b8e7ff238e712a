//! Where plugins come from: the name in an entry becomes a key, the key a plugin.
//!
//! Compiled code cannot be imported again, so "module" is an interface: the table of built-ins here, script files later,
//! versions that fail on purpose in the tests. Full-size counterpart: the import machinery of Cordis's loader.
//! Watch for: `load` answers afresh at each call. Which answers are kept, and for how long, is the loader's business.

use std::{
    collections::BTreeMap,
    fmt, io,
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
};

use thiserror::Error;

use super::{PluginDef, nearest};

/// Finds and loads the plugins that entries name.
pub trait ModuleSource: 'static {
    /// The module that an entry's `name` means; `base` is the folder of the file that names it.
    ///
    /// Whether a file of that name exists is not asked here: a key is also what a file that comes later is known by.
    fn resolve(&self, name: &str, base: &Path) -> Result<ModuleKey, ModuleError>;

    /// The plugin of a module, read afresh.
    fn load(&self, key: &ModuleKey) -> Result<PluginDef, ModuleError>;

    /// The files a save of which means that this module changed; none for what is compiled in. They are asked for before
    /// a load, again after it, and at any time later; what the last load read is among them, also if it failed.
    fn files(&self, key: &ModuleKey) -> Vec<PathBuf>;
}

/// Names one module: two entries with equal keys run the same code.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ModuleKey(pub Rc<str>);

impl fmt::Display for ModuleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why an entry has no plugin. It concerns that entry alone.
#[derive(Debug, Clone, Error)]
pub enum ModuleError {
    /// No source knows the name.
    #[error("no plugin is named `{name}`{}", did_you_mean(near.as_deref()))]
    Unknown {
        /// As written in the entry.
        name: String,
        /// The known name that looks most like it.
        near: Option<String>,
    },
    /// The file of the module cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// The module was read, and is no plugin.
    #[error("{problem}")]
    Broken {
        /// As written in the entry. Whoever says what is wrong names the entry.
        name: String,
        /// What is wrong with it and in which file, in one line.
        problem: String,
    },
}

/// The plugins that are compiled in, by name.
#[derive(Clone, Default)]
pub struct Builtins(BTreeMap<String, PluginDef>);

impl Builtins {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one plugin more; it takes the place of one of the same name.
    #[must_use]
    pub fn with(mut self, name: &str, def: PluginDef) -> Self {
        self.0.insert(name.to_owned(), def.named(name));
        self
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl ModuleSource for Builtins {
    fn resolve(&self, name: &str, _base: &Path) -> Result<ModuleKey, ModuleError> {
        let plain = plain_name(name);
        let known = self.0.contains_key(plain);
        known.then(|| ModuleKey(plain.into())).ok_or_else(|| self.unknown(name, plain))
    }

    fn load(&self, key: &ModuleKey) -> Result<PluginDef, ModuleError> {
        self.0.get(&*key.0).cloned().ok_or_else(|| self.unknown(&key.0, &key.0))
    }

    // Differs: the original reloads a built-in when its source is saved. Compiled ones change with the next build.
    fn files(&self, _key: &ModuleKey) -> Vec<PathBuf> {
        Vec::new()
    }
}

impl Builtins {
    fn unknown(&self, name: &str, plain: &str) -> ModuleError {
        ModuleError::Unknown { name: name.to_owned(), near: nearest(plain, self.names()) }
    }
}

/// `./src/harness/tools.ts` and `./src/cordis/hmr.ts` are how the original names what is `tools` and `hmr` here.
pub(super) fn original_name(name: &str) -> Option<&str> {
    let inner =
        name.strip_prefix("./src/harness/").or_else(|| name.strip_prefix("./src/cordis/"))?;
    inner.strip_suffix(".ts").filter(|it| !it.contains('/'))
}

/// The name of a built-in, by whichever of its names an entry calls it.
pub fn plain_name(name: &str) -> &str {
    original_name(name).unwrap_or(name)
}

/// Whether a name is the path of a script, and not one of the built-ins, of which the original speaks by path.
pub fn is_script(name: &str) -> bool {
    original_name(name).is_none() && name.contains(['/', '\\', '.'])
}

/// The end of a message about a name that nobody knows.
pub(super) fn did_you_mean(near: Option<&str>) -> String {
    near.map(|it| format!(" (did you mean `{it}`?)")).unwrap_or_default()
}
