//! A loader on a stage: a folder with a list, modules that have versions and fail on request, a record of notices.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::Notify;

use nano_cordis::cordis::loader::{self, EntryStatus, LoadError};
use nano_cordis::cordis::{
    Applied, Context, Loader, LoaderOptions, ModuleError, ModuleKey, ModuleSource, Mount, Notice,
    PluginDef, Svc, Warning,
};

use crate::support::{Journal, Test};

/// Modules by name. A name that begins with `./` is a file beside the list.
#[derive(Default)]
pub(crate) struct Modules {
    versions: RefCell<HashMap<String, Result<PluginDef, String>>>,
    loads: Cell<usize>,
    folder: RefCell<PathBuf>,
}

impl ModuleSource for Modules {
    fn resolve(&self, name: &str, _base: &Path) -> Result<ModuleKey, ModuleError> {
        let known = name.starts_with("./") || self.versions.borrow().contains_key(name);
        let unknown = || ModuleError::Unknown { name: name.to_owned(), near: None };
        known.then(|| ModuleKey(name.into())).ok_or_else(unknown)
    }

    fn load(&self, key: &ModuleKey) -> Result<PluginDef, ModuleError> {
        self.loads.set(self.loads.get() + 1);
        let version = self.versions.borrow().get(&*key.0).cloned();
        version
            .unwrap_or_else(|| Err("there is no such file".into()))
            .map_err(|problem| ModuleError::Broken { name: key.to_string(), problem })
    }

    fn files(&self, key: &ModuleKey) -> Vec<PathBuf> {
        key.0.strip_prefix("./").map(|it| self.folder.borrow().join(it)).into_iter().collect()
    }
}

pub(crate) struct Stage {
    root: Context,
    journal: Journal,
    folder: TempDir,
    modules: Rc<Modules>,
    env: Rc<RefCell<HashMap<String, String>>>,
    pub(crate) set: Vec<(String, String, String)>,
    pub(crate) disable: Vec<String>,
    notices: Journal,
    heard: Rc<Notify>,
    mount: RefCell<Option<Mount>>,
}

impl Stage {
    pub(crate) fn new(test: &Test) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let modules = Rc::new(Modules::default());
        modules.folder.replace(folder.path().to_owned());
        let notices = Journal::default();
        let heard = Rc::new(Notify::new());
        let (lines, bell) = (notices.clone(), heard.clone());
        let hear = move |line: &String| {
            lines.push(line.clone());
            bell.notify_one();
        };
        let warned = hear.clone();
        test.root.on(move |_: &Context, Notice(line): &Notice| hear(line)).unwrap();
        test.root.on(move |_: &Context, Warning(line): &Warning| warned(line)).unwrap();
        Self {
            root: test.root.clone(),
            journal: test.journal.clone(),
            folder,
            modules,
            env: Rc::default(),
            set: Vec::new(),
            disable: Vec::new(),
            notices,
            heard,
            mount: RefCell::default(),
        }
    }

    /// A stage with probes that write into the journal, each under its own name.
    pub(crate) fn with_probes(test: &Test, names: &[&str]) -> Self {
        let stage = Self::new(test);
        for name in names {
            stage.module(name, test.probe(name).def());
        }
        stage
    }

    /// A module that writes its config into the journal when it starts and when it stops.
    pub(crate) fn echo(&self, name: &str) {
        self.echo_of(name, None);
    }

    /// As `echo`, with a schema for its config.
    pub(crate) fn echo_of(&self, name: &str, schema: Option<Value>) {
        let (journal, label) = (self.journal.clone(), name.to_owned());
        let def = PluginDef::dynamic(name, &Value::Null, schema, move |ctx, config| {
            let (journal, label) = (journal.clone(), label.clone());
            Box::pin(async move {
                journal.push(format!("{label} start {config}"));
                ctx.effect(|| journal.line(&format!("{label} stop {config}")))?;
                Ok(None)
            })
        });
        self.module(name, def.unwrap());
    }

    /// From now on this is what the module is.
    pub(crate) fn module(&self, name: &str, def: PluginDef) {
        self.modules.versions.borrow_mut().insert(name.to_owned(), Ok(def));
    }

    /// From now on the module cannot be loaded.
    pub(crate) fn broken(&self, name: &str, problem: &str) {
        self.modules.versions.borrow_mut().insert(name.to_owned(), Err(problem.to_owned()));
    }

    /// How often a module was loaded.
    pub(crate) fn loads(&self) -> usize {
        self.modules.loads.get()
    }

    pub(crate) fn variable(&self, name: &str, value: &str) {
        self.env.borrow_mut().insert(name.to_owned(), value.to_owned());
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.file(name), text).unwrap();
    }

    /// Writes the list and mounts the loader.
    ///
    /// # Errors
    /// What the body of the loader says.
    pub(crate) async fn start(&self, list: impl AsRef<[u8]>) -> Result<Svc<Loader>, String> {
        self.write("cordis.yml", list);
        self.start_on(Some(self.file("cordis.yml"))).await
    }

    pub(crate) async fn start_on(&self, file: Option<PathBuf>) -> Result<Svc<Loader>, String> {
        self.start_with(file, self.modules.clone()).await
    }

    pub(crate) async fn start_with(
        &self,
        file: Option<PathBuf>,
        modules: Rc<dyn ModuleSource>,
    ) -> Result<Svc<Loader>, String> {
        let env = self.env.clone();
        let options = LoaderOptions {
            file,
            text: "- { id: built-in, name: a }",
            modules,
            env: Rc::new(move |name| env.borrow().get(name).cloned()),
            set: self.set.clone(),
            disable: self.disable.clone(),
        };
        let mount = self.root.plugin(&loader::plugin(options), Value::Null).unwrap();
        self.mount.replace(Some(mount.clone()));
        let cause = |err: nano_cordis::cordis::Error| {
            std::error::Error::source(&err).map_or_else(|| err.to_string(), ToString::to_string)
        };
        mount.ready().await.map_err(cause)?;
        let loader = self.loader();
        loader.applied().await.map_err(|err| err.to_string())?;
        Ok(loader)
    }

    pub(crate) fn loader(&self) -> Svc<Loader> {
        self.root.get::<Loader>().expect("the loader is running")
    }

    pub(crate) fn mount(&self) -> Mount {
        self.mount.borrow().clone().expect("the loader was mounted")
    }

    /// Saves the list and waits until it is applied or refused.
    pub(crate) async fn save(&self, list: impl AsRef<[u8]>) -> Result<Applied, LoadError> {
        self.write("cordis.yml", list);
        self.loader().reload();
        self.loader().applied().await
    }

    /// Saves a file beside the list and waits until it has had its effect.
    pub(crate) async fn save_module(&self, name: &str) -> Result<Applied, LoadError> {
        self.loader().saved(&self.file(name));
        self.loader().applied().await
    }

    /// What the plugins have written since the last look.
    pub(crate) fn took_place(&self) -> Vec<String> {
        self.journal.take()
    }

    /// What the user was told since the last look.
    pub(crate) fn told(&self) -> Vec<String> {
        self.notices.take()
    }

    /// What has happened so far is no concern of the test.
    pub(crate) fn forget(&self) {
        self.journal.take();
        self.notices.take();
    }

    /// Waits until the user is told something.
    pub(crate) async fn told_next(&self) -> Vec<String> {
        loop {
            let lines = self.told();
            if !lines.is_empty() {
                return lines;
            }
            self.heard.notified().await;
        }
    }

    pub(crate) fn entry(&self, id: &str) -> EntryStatus {
        self.loader().entries().into_iter().find(|it| it.id == id).expect("an entry of the list")
    }

    /// Paths and states of the loader's children.
    pub(crate) fn children(&self) -> Vec<String> {
        let fibers = self.root.fibers().into_iter();
        fibers
            .filter_map(|it| Some(format!("{} {}", it.path.strip_prefix("loader > ")?, it.state)))
            .collect()
    }
}
