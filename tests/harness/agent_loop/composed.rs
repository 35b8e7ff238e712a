//! An agent that a loader puts together from a list in YAML.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use nano_cordis::cordis::loader::{self, Loader, LoaderOptions};
use nano_cordis::cordis::{Builtins, Context, Notice, Svc, Warning};
use nano_cordis::harness::agent_loop::{AgentLoop, RunError, TurnOutcome};
use nano_cordis::harness::approval::{Answer, ApprovalRequest};
use nano_cordis::harness::env::Env;
use nano_cordis::harness::session::{Session, Sessions};

use super::rig::{Reports, Slot, kernel, mount};

/// Runs a test on a paused clock.
pub(crate) fn composed(list: &str, modules: Builtins, test: impl AsyncFnOnce(&Composed)) {
    let mut runtime = Builder::new_current_thread();
    run(runtime.enable_all().start_paused(true), list, modules, test);
}

/// Runs a test on the real clock, for agents that start processes or use the network.
pub(crate) fn composed_in_real_time(
    list: &str,
    modules: Builtins,
    test: impl AsyncFnOnce(&Composed),
) {
    run(Builder::new_current_thread().enable_all(), list, modules, test);
}

fn run(runtime: &mut Builder, list: &str, modules: Builtins, test: impl AsyncFnOnce(&Composed)) {
    kernel(runtime, async |root, reports| {
        let composed = Box::pin(Composed::start(root, reports, list, modules)).await;
        test(&composed).await;
    });
}

/// What a test works with.
pub(crate) struct Composed {
    pub(crate) root: Context,
    reports: Reports,
    notices: Rc<RefCell<Vec<String>>>,
    file: PathBuf,
    _folder: TempDir,
    loader: Slot<Loader>,
    loops: Slot<AgentLoop>,
    sessions: Slot<Sessions>,
}

impl Composed {
    async fn start(root: Context, reports: Reports, list: &str, modules: Builtins) -> Composed {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cordis.yml");
        std::fs::write(&file, list).unwrap();
        let env = Env::fixed([("PATH", std::env::var("PATH").unwrap())]);
        root.provide(Rc::new(env)).unwrap();
        let notices = Rc::new(RefCell::new(Vec::new()));
        let (noted, warned) = (notices.clone(), notices.clone());
        root.on(move |_, it: &Notice| noted.borrow_mut().push(it.0.clone())).unwrap();
        root.on(move |_, it: &Warning| warned.borrow_mut().push(it.0.clone())).unwrap();
        let options = LoaderOptions {
            file: Some(file.clone()),
            text: "",
            modules: Rc::new(modules),
            env: Rc::new(|_| None),
            set: Vec::new(),
            disable: Vec::new(),
        };
        mount(&root, "loader", &loader::plugin(options), json!({})).await;
        let (loader, loops, sessions) =
            (Slot::<Loader>::fill(&root).await, Slot::fill(&root).await, Slot::fill(&root).await);
        loader.get().applied().await.unwrap();
        Composed { root, reports, notices, file, _folder: folder, loader, loops, sessions }
    }

    /// The loader.
    pub(crate) fn loader(&self) -> Svc<Loader> {
        self.loader.get()
    }

    /// The loop, if there ever was one.
    pub(crate) fn agent_loop(&self) -> Option<Svc<AgentLoop>> {
        self.loops.try_get()
    }

    /// A new session.
    pub(crate) fn session(&self) -> Rc<Session> {
        self.sessions.get().create().unwrap()
    }

    /// One turn.
    pub(crate) async fn run(
        &self,
        session: &Rc<Session>,
        text: &str,
    ) -> Result<TurnOutcome, RunError> {
        self.loops.get().run(session, text, CancellationToken::new()).await
    }

    /// Writes another list; it is not read yet.
    pub(crate) fn write(&self, list: &str) {
        std::fs::write(&self.file, list).unwrap();
    }

    /// Writes another list and waits until it is in force.
    pub(crate) async fn save(&self, list: &str) {
        self.write(list);
        self.loader().reload();
        self.loader().applied().await.unwrap();
    }

    /// Answers every question with yes.
    pub(crate) fn approve(&self) {
        self.root.answer::<ApprovalRequest>(async |_, _| Ok(Some(Answer::Yes))).unwrap();
    }

    /// Takes the lines for the user that came so far.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        self.notices.take()
    }

    /// Takes the reports that came so far.
    pub(crate) fn take_reports(&self) -> Vec<String> {
        self.reports.take()
    }
}
