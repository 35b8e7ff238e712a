//! Loader: reads `cordis.yml`, mounts each entry as a plugin, and keeps what runs equal to the file.
//!
//! Provides `loader`. Raises `loader/before-apply`, `loader/applied` and `cordis/notice`. Needs nothing.
//! Full-size counterpart: plugin-loader and plugin-include. Its folder has the parts: `entries` reads the list,
//! `placeholders` fills it in, `plan` compares it with what runs, `diagnose` finds words for what is missing.
//! Watch for: entries are mounted on the loader's own context, never on that of the caller. The caller is hmr, and what
//! hmr owned would die with it. And: nothing is unmounted before the whole save is known to be good.

// Omitted: Cordis has groups of entries, rolls a failed update back, hands a changed config to a running plugin and can
// write the file. Here a list is flat, a change is a remount, and the file belongs to the user.

mod change;
mod check;
pub(crate) mod diagnose;
mod entries;
mod error;
pub(crate) mod files;
mod placeholders;
mod places;
mod plan;
mod schema;
mod sources;
mod words;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashSet},
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
};

use tokio::sync::{Notify, watch};

pub use self::{
    change::{Applied, BeforeApply, Change, EntryChange, Notice},
    diagnose::{EntryStatus, Standing},
    entries::Entry,
    error::{Cause, Fault, LoadError},
};
use self::{
    files::{Files, Print},
    plan::{Plan, Planned, Planner, Running, Slot, Step},
};
use super::{
    BoxError, Context, ModuleKey, ModuleSource, Mount, NoConfig, ParallelError, PluginDef, Service,
};

/// What the loader is started with; none of it is in the file.
pub struct LoaderOptions {
    /// The file; without one the embedded text is the list, and nothing is watched.
    pub file: Option<PathBuf>,
    /// The embedded list.
    pub text: &'static str,
    /// Where plugins come from.
    pub modules: Rc<dyn ModuleSource>,
    /// Reads one variable of the environment.
    pub env: Rc<dyn Fn(&str) -> Option<String>>,
    /// `--set`: entry id, dotted key below `config`, value as typed.
    pub set: Vec<(String, String, String)>,
    /// `--disable`: ids that are left out in this run.
    pub disable: Vec<String>,
}

/// The plugin. A fault of the list or of a config is the error of its body, and then nothing was mounted.
pub fn plugin(options: LoaderOptions) -> PluginDef {
    let options = Rc::new(options);
    super::plugin(move |ctx: Context, _: NoConfig| start(ctx, options.clone())).named(Loader::NAME)
}

async fn start(ctx: Context, options: Rc<LoaderOptions>) -> Result<(), BoxError> {
    let loader = Rc::new(Loader::new(ctx.clone(), options));
    let outcome = loader.pass(&Request { file: true, ..Request::default() }).await;
    loader.outcome.replace(Some(outcome.clone()));
    outcome?;
    ctx.provide(loader.clone())?;
    ctx.spawn("apply", async move |_| loader.serve().await)?;
    Ok(())
}

/// The service.
pub struct Loader {
    host: Context,
    options: Rc<LoaderOptions>,
    /// The text that is in force.
    text: RefCell<Rc<str>>,
    /// What the entries of that text have become, in the order of the file.
    slots: RefCell<Vec<Slot>>,
    files: Files,
    pending: RefCell<Request>,
    outcome: RefCell<Option<Result<Applied, LoadError>>>,
    wake: Notify,
    idle: Notify,
    relisted: watch::Sender<()>,
    busy: Cell<bool>,
    applying: Cell<bool>,
    told: RefCell<HashSet<PathBuf>>,
}

impl Service for Loader {
    const NAME: &'static str = "loader";
}

impl Loader {
    /// Reads the file again, soon. Any number of calls until then are one.
    ///
    /// The same bytes as before only mean another try for entries whose module could not be loaded.
    pub fn reload(&self) {
        self.pending.borrow_mut().file = true;
        self.wake.notify_one();
    }

    /// A file was saved: the list, or the source of a module.
    pub fn saved(&self, path: &Path) {
        if self.options.file.as_deref() == Some(path) {
            return self.reload();
        }
        let users = self
            .modules()
            .into_iter()
            .filter(|(name, key)| self.sources(name, key).iter().any(|it| it == path));
        for (name, key) in users {
            if self.options.modules.files(&key).is_empty() {
                self.say_built_in(path, &name);
            } else {
                self.pending.borrow_mut().modules.insert(key);
                self.wake.notify_one();
            }
        }
    }

    /// Waits until nothing is queued, nothing is being applied, and no entry is starting or stopping; the outcome of the
    /// last time.
    ///
    /// Not for the body or the cleanup of an entry: what is waited for may be exactly these.
    pub async fn applied(&self) -> Result<Applied, LoadError> {
        loop {
            let idle = self.idle.notified();
            if self.busy.get() || !self.pending.borrow().is_empty() {
                tokio::select! {
                    () = idle => continue,
                    () = self.host.stopping() => return Err(self.error(Cause::Stopped)),
                }
            }
            self.rest().await;
            if !self.busy.get() && self.pending.borrow().is_empty() {
                return self
                    .outcome
                    .borrow()
                    .clone()
                    .expect("a loader that others can see has started");
            }
        }
    }

    /// Changes when the list of files does.
    pub(crate) fn relisted(&self) -> watch::Receiver<()> {
        self.relisted.subscribe()
    }

    /// The files a save of which matters: the list and the sources of the modules in use.
    pub fn watched(&self) -> Vec<PathBuf> {
        let sources = self.modules().into_iter().flat_map(|(name, key)| self.sources(&name, &key));
        let all: BTreeSet<PathBuf> = self.options.file.iter().cloned().chain(sources).collect();
        all.into_iter().collect()
    }

    /// The entries of the list that is in force, in its order.
    pub fn entries(&self) -> Vec<EntryStatus> {
        self.slots.borrow().iter().map(EntryStatus::of).collect()
    }

    /// Why no turn may start: nothing if every enabled entry runs that is not optional, else the causes in one line.
    pub fn problem(&self) -> Option<String> {
        match self.applying.get() {
            true => Some(format!("{} is being applied", self.file_name())),
            false => diagnose::problem(&self.entries()),
        }
    }

    /// What the loader last read of a file that it watches.
    pub(crate) fn last_read(&self, path: &Path) -> Option<Print> {
        self.files.last(path)
    }
}

/// What is to be looked at again.
#[derive(Debug, Clone, Default)]
struct Request {
    file: bool,
    modules: BTreeSet<ModuleKey>,
}

impl Request {
    fn is_empty(&self) -> bool {
        !self.file && self.modules.is_empty()
    }
}

impl Loader {
    fn new(host: Context, options: Rc<LoaderOptions>) -> Self {
        Self {
            host,
            options,
            text: RefCell::new("".into()),
            slots: RefCell::default(),
            files: Files::default(),
            pending: RefCell::default(),
            outcome: RefCell::default(),
            wake: Notify::new(),
            idle: Notify::new(),
            relisted: watch::Sender::new(()),
            busy: Cell::new(false),
            applying: Cell::new(false),
            told: RefCell::default(),
        }
    }

    /// One request after the other, for as long as the loader runs. A plugin that never comes to rest holds up none.
    async fn serve(&self) {
        loop {
            while let Some(request) = self.next_request() {
                self.busy.set(true);
                let outcome = self.look(request).await;
                self.outcome.replace(Some(outcome));
                self.busy.set(false);
            }
            self.idle.notify_waiters();
            tokio::select! {
                () = self.rest() => self.say_applied(),
                () = self.wake.notified() => continue,
            }
            self.wake.notified().await;
        }
    }

    /// Waits until no entry is starting or stopping. One that waits for a service is at rest.
    async fn rest(&self) {
        while let Some(mount) = self.moving() {
            mount.settled().await;
            tokio::task::yield_now().await;
        }
    }

    fn moving(&self) -> Option<Mount> {
        self.slots.borrow().iter().find_map(Slot::moving)
    }

    fn say_applied(&self) {
        let outcome = self.outcome.borrow().clone();
        if let Some(Ok(applied)) = outcome {
            self.host.emit(&applied);
        }
    }

    fn next_request(&self) -> Option<Request> {
        Some(self.pending.take()).filter(|it| !it.is_empty())
    }

    /// A list that is refused does not keep a module from being reloaded that was saved with it.
    async fn look(&self, request: Request) -> Result<Applied, LoadError> {
        let outcome = self.pass(&request).await;
        let Err(err) = &outcome else { return outcome };
        self.say(format!("{} not applied: {}", err.file, err.cause));
        if request.file && !request.modules.is_empty() && !matches!(err.cause, Cause::Refused(_)) {
            self.pending.borrow_mut().modules.extend(request.modules);
        }
        outcome
    }

    /// Plans, asks, and applies; plans again if the file became another one while a listener held the change.
    async fn pass(&self, request: &Request) -> Result<Applied, LoadError> {
        loop {
            let plan = self.plan(request)?;
            let change = Change { file: self.called(&plan), entries: plan.changes() };
            if !change.entries.is_empty() {
                self.hold(change.clone()).await?;
            }
            if !self.has_moved_on(&plan) {
                return Ok(self.apply(plan, &change).await);
            }
        }
    }

    /// Everything that can refuse a save happens here, and nothing that changes what runs.
    fn plan(&self, request: &Request) -> Result<Plan, LoadError> {
        let current = self.text.borrow().clone();
        let text = if request.file { self.read()? } else { current.clone() };
        let fresh = text != current;
        let entries = match fresh {
            true => entries::read(&text).map_err(|cause| self.error(cause))?,
            false => self.slots.borrow().iter().map(|it| it.entry.clone()).collect(),
        };
        Planner::new(self, text, fresh, request.modules.clone())
            .plan(entries)
            .map_err(|faults| self.error(Cause::Faults(faults)))
    }

    fn read(&self) -> Result<Rc<str>, LoadError> {
        let Some(path) = &self.options.file else { return Ok(self.options.text.into()) };
        let bytes = self.files.read(path).map_err(|err| self.error(Cause::Read(Arc::new(err))))?;
        let text = String::from_utf8(bytes).map_err(|_| self.error(Cause::Encoding))?;
        Ok(text.into())
    }

    async fn hold(&self, change: Change) -> Result<(), LoadError> {
        let file = change.file.clone();
        let answer = self.host.parallel::<BeforeApply>(Rc::new(change)).await;
        answer.map_err(|ParallelError(errors)| {
            let reasons: Vec<_> = errors.iter().map(|it| it.source.to_string()).collect();
            LoadError { file, cause: Cause::Refused(reasons.join("; ")) }
        })
    }

    fn has_moved_on(&self, plan: &Plan) -> bool {
        let path = self.options.file.as_deref().filter(|_| plan.fresh);
        let now = path.map(Print::look).filter(|it| !it.is_unsettled());
        now.is_some() && now != path.and_then(|it| self.files.last(it))
    }

    /// Stops all that leaves, and only then starts what comes: both may provide the same service.
    async fn apply(&self, plan: Plan, change: &Change) -> Applied {
        self.applying.set(true);
        let leaving = plan.leaving();
        for mount in &leaving {
            drop(mount.dispose());
        }
        for mount in &leaving {
            mount.settled().await;
        }
        let applied = Applied {
            file: change.file.clone(),
            changed: change.entries.iter().map(|it| it.id().to_owned()).collect(),
            failed: plan.failed(),
        };
        let lines = self.lines(&plan, &applied);
        self.text.replace(plan.text);
        let slots = plan.planned.into_iter().map(|it| self.occupy(it)).collect();
        self.slots.replace(slots);
        self.applying.set(false);
        self.relisted.send_replace(());
        lines.into_iter().for_each(|it| self.say(it));
        applied
    }

    /// Mounts what is to be mounted. What is written down is what was done, not what was wanted.
    fn occupy(&self, planned: Planned) -> Slot {
        let Planned { entry, key, before, step } = planned;
        let stays = before.and_then(|it| it.running);
        let (running, failure) = match step {
            Step::Keep => (stays, None),
            Step::Skip => (None, None),
            Step::Fail(problem) => (stays, Some(problem)),
            Step::Mount(def, config) => {
                match self.host.plugin_named(&entry.id, &def, config.clone()) {
                    Ok(mount) => (
                        Some(Rc::new(Running { mount, def, name: entry.name.clone(), config })),
                        None,
                    ),
                    Err(err) => (None, Some(err.to_string())),
                }
            }
        };
        Slot { entry, key, running, failure }
    }

    fn is_starting(&self) -> bool {
        self.outcome.borrow().is_none()
    }

    fn error(&self, cause: Cause) -> LoadError {
        LoadError { file: self.file_name(), cause }
    }

    fn say(&self, line: String) {
        self.host.emit(&Notice(line));
    }
}
