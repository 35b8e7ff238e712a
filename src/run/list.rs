//! Which list of plugins this run is about, and what changes it for this run.
//!
//! Part of `run`.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::{fs, io};

use serde_json::json;

use crate::cordis::loader::{EntryStatus, Standing};
use crate::cordis::{
    Builtins, Loader, LoaderOptions, ModuleKey, ModuleSource, PluginDef, State, plain_name,
};
use crate::extras::script::Scripts;
use crate::harness::cli::arguments::Arguments;
use crate::harness::env::Env;

/// The list where no file gives one.
pub(super) const BUILT_IN: &str = include_str!("../../cordis.yml");
const FILE: &str = "cordis.yml";
/// The plugin that notices saves.
const WATCHER: &str = "hmr";

pub(super) fn options(arguments: &Arguments, builtins: Builtins, env: Rc<Env>) -> LoaderOptions {
    LoaderOptions {
        file: file(arguments),
        text: BUILT_IN,
        modules: Rc::new(Scripts::new(if arguments.is_one_shot() {
            without_watcher(builtins)
        } else {
            builtins
        })),
        env: Rc::new(move |name| env.get(name)),
        set: arguments.set.clone(),
        disable: arguments.disable.clone(),
    }
}

/// A one-shot ends with the plugins that it began with: instead of the watcher there is a plugin that does nothing.
fn without_watcher(builtins: Builtins) -> Builtins {
    let schema = builtins.load(&ModuleKey(WATCHER.into())).ok().and_then(|it| it.schema().cloned());
    let idle = PluginDef::dynamic(WATCHER, &json!([]), schema, |_, _| Box::pin(async { Ok(None) }));
    builtins.with(
        WATCHER,
        idle.expect("the schema of a plugin is one, and an empty list names no service twice"),
    )
}

/// The file that gives the list, if one does.
pub(super) fn file(arguments: &Arguments) -> Option<PathBuf> {
    arguments.config.clone().or_else(file_here)
}

/// Whether a file says something else than the list that is built in: a copy of that is nothing new to anybody.
pub(super) fn is_own(options: &LoaderOptions) -> bool {
    // Only a regular file is read: anything else might never end, and is refused by the loader.
    let is_copy = |file: &PathBuf| {
        file.metadata().is_ok_and(|it| it.is_file() && it.len() == BUILT_IN.len() as u64)
            && fs::read(file).is_ok_and(|it| it == BUILT_IN.as_bytes())
    };
    options.file.as_ref().is_some_and(|file| !is_copy(file))
}

/// A file that is there but cannot be read is an error, and never a reason to fall back.
fn file_here() -> Option<PathBuf> {
    let found = Path::new(FILE).symlink_metadata();
    let is_absent = found.is_err_and(|it| it.kind() == io::ErrorKind::NotFound);
    (!is_absent).then(|| FILE.into())
}

/// Whether a save of the list would be noticed.
pub(super) fn notices_saves(loader: &Loader) -> bool {
    let runs = |it: &EntryStatus| it.standing == Standing::Mounted(State::Active);
    loader.entries().iter().any(|it| plain_name(&it.name) == WATCHER && runs(it))
}
