//! Loader: reads `cordis.yml`, mounts each entry as a plugin, and keeps what runs equal to the file.
//!
//! Provides `loader`. Raises `loader/before-apply`, `loader/applied` and `cordis/notice`. Needs nothing.
//! Full-size counterpart: plugin-loader and plugin-include. Its folder has the parts: `files` and `owner` guard what is
//! read, `tree` and `entries` read the list, `placeholders` fills it in, `plan` compares it with what runs, `diagnose` and
//! `words` say what came of it.
//! Watch for: entries are mounted on the loader's own context, never on that of the caller. The caller is hmr, and what
//! hmr owned would die with it. And: nothing is unmounted before the whole save is known to be good.

// Omitted: Cordis has groups of entries, rolls a failed update back, hands a changed config to a running plugin and can
// write the file. Here a list is flat, a change is a remount, and the file belongs to the user.

mod change;
mod check;
mod diagnose;
pub(crate) mod entries;
mod error;
pub(crate) mod files;
mod owner;
mod placeholders;
mod places;
mod plan;
mod queue;
mod schema;
mod sources;
mod tree;
mod words;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashSet},
    path::{Path, PathBuf},
    rc::Rc,
};

use tokio::sync::watch;

pub(crate) use self::placeholders::{secret_part, variables};
pub use self::{
    change::{Applied, BeforeApply, Change, EntryChange, Notice, Warning},
    diagnose::{EntryStatus, Standing},
    entries::Entry,
    error::{Cause, Fault, LoadError},
};
use self::{
    diagnose::Waits,
    files::{Files, Print},
    plan::{Plan, Planner, Slot},
    queue::{Queue, Request},
};
use super::{BoxError, Context, ModuleSource, NoConfig, PluginDef, Service, Waited};

/// What the loader is started with; none of it is in the file.
pub struct LoaderOptions {
    /// The file; without one the embedded text is the list, and nothing is watched.
    pub file: Option<PathBuf>,
    /// The embedded list.
    pub text: &'static str,
    /// Where plugins come from.
    pub modules: Rc<dyn ModuleSource>,
    /// Reads one variable of the environment.
    pub env: Env,
    /// `--set`: entry id, dotted key below `config`, value as typed.
    pub set: Vec<(String, String, String)>,
    /// `--disable`: ids that are left out in this run.
    pub disable: Vec<String>,
}

/// Reads one variable of the environment.
pub type Env = Rc<dyn Fn(&str) -> Option<String>>;

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
    queue: Queue,
    outcome: RefCell<Option<Result<Applied, LoadError>>>,
    /// What was applied and is not raised yet.
    news: RefCell<Option<Applied>>,
    /// Who waited for what when that was last told.
    waits: RefCell<Option<Waits>>,
    applying: Cell<bool>,
    relisted: watch::Sender<()>,
    /// Files whose owner was told that they are not read.
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
        self.queue.add(Request { file: true, ..Request::default() });
    }

    /// A file was saved: the list, or the source of a module.
    pub fn saved(&self, path: &Path) {
        if self.options.file.as_deref() == Some(path) {
            return self.reload();
        }
        for (name, key) in self.users_of(path) {
            if self.options.modules.files(&key).is_empty() {
                self.say_built_in(path, &name);
            } else {
                self.queue.add(Request { file: false, modules: BTreeSet::from([key]) });
            }
        }
    }

    /// Waits until nothing is queued or being applied and no entry is starting or stopping; gives the last outcome.
    ///
    /// Not for the body or the cleanup of an entry: what is waited for may be exactly these.
    pub async fn applied(&self) -> Result<Applied, LoadError> {
        loop {
            let rest = async {
                self.queue.idle().await;
                self.rest().await;
            };
            tokio::select! {
                () = rest => {}
                () = self.host.stopping() => return Err(self.error(Cause::Stopped)),
            }
            if self.queue.is_idle() {
                let outcome = self.outcome.borrow().clone();
                return outcome.expect("a loader that others can see has started");
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
        if self.applying.get() {
            return Some(format!("{} is being applied", self.file_name()));
        }
        self.fault()
    }

    /// What the loader last read of a file that it watches.
    pub(crate) fn last_read(&self, path: &Path) -> Option<Print> {
        self.files.last(path)
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
            queue: Queue::default(),
            outcome: RefCell::default(),
            news: RefCell::default(),
            waits: RefCell::default(),
            applying: Cell::default(),
            relisted: watch::Sender::default(),
            told: RefCell::default(),
        }
    }

    /// One request after the other, for as long as the loader runs. A plugin that never comes to rest holds up none.
    async fn serve(&self) {
        loop {
            self.queue.drain(async |request| self.look(request).await).await;
            tokio::select! {
                biased;
                () = self.rest() => self.say_applied(),
                () = self.queue.added() => continue,
            }
            self.queue.added().await;
        }
    }

    /// Waits until no entry is starting or stopping. One that waits for a service is at rest, and one that waits for
    /// whoever asks here is not waited for.
    async fn rest(&self) {
        loop {
            let moving = self.slots.borrow().iter().find_map(Slot::moving);
            let Some(mount) = moving else { return };
            if mount.settled().await == Waited::Requested {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// A list that is refused does not keep a module from being reloaded that was saved with it.
    async fn look(&self, request: Request) {
        let outcome = self.pass(&request).await;
        if let Err(err) = &outcome {
            self.host.emit(&Warning(format!("{} not applied: {}", err.file, err.cause)));
            if request.file && !matches!(err.cause, Cause::Refused(_)) {
                self.queue.add(Request { file: false, ..request });
            }
        }
        self.outcome.replace(Some(outcome));
    }

    /// Plans, asks, and applies; plans again if the file became another one while a listener held the change.
    async fn pass(&self, request: &Request) -> Result<Applied, LoadError> {
        loop {
            let plan = self.plan(request)?;
            let change = Change { file: self.called(&plan), entries: plan.changes() };
            if !change.entries.is_empty() {
                change.ask(&self.host).await?;
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
        let fresh = self.is_starting() || text != current;
        let entries = if fresh {
            entries::read(&text).map_err(|cause| self.error(cause))?
        } else {
            self.slots.borrow().iter().map(|it| it.entry.clone()).collect()
        };
        Planner::new(self, text, fresh, request.modules.clone())
            .plan(entries)
            .map_err(|faults| self.error(Cause::Faults(faults)))
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
        let slots = plan.planned.into_iter().map(|it| it.carry_out(&self.host)).collect();
        self.slots.replace(slots);
        self.applying.set(false);
        self.relisted.send_replace(());
        for line in lines {
            self.say(line);
        }
        self.news.replace(Some(applied.clone()));
        applied
    }
}
