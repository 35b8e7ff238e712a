//! A kernel for tests of scripts and what they do: a folder, an environment, and a journal that scripts write to.
//!
//! A script notes something with `ctx.emit('cordis/notice', text)`. Scripts run on threads, so the clock is the real
//! one: a test waits for what is noted, never for time.

use std::{cell::RefCell, fs, rc::Rc, time::Duration};

use nano_cordis::{
    cordis::{
        Builtins, Context, ModuleError, ModuleSource, Mount, Notice, PluginDef, State, Warning,
        plugin,
    },
    extras::script::Scripts,
    harness::{
        agent_loop, approval,
        env::Env,
        llm_fake, prompt, session,
        session::Session,
        shell_local, tool_bash,
        tools::{self, CallRequest, ToolResult, Tools},
    },
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{runtime::Builder, sync::Notify, task::LocalSet, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::shared::call;

/// Whatever a test waits for comes sooner.
const FOREVER: Duration = Duration::from_mins(1);

/// Runs a test in a kernel of its own, and takes that down in order.
pub(crate) fn run(test: impl AsyncFnOnce(&World)) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let world = World::new();
        let done = timeout(FOREVER, Box::pin(test(&world))).await;
        assert!(done.is_ok(), "something waits for ever; noted: {:?}", world.notes.borrow());
        let end = world.root.shutdown(FOREVER).await;
        assert_eq!(end.hung, Vec::<String>::new());
        assert_eq!(*world.reports.borrow(), [""; 0], "reports that the test did not expect");
    });
}

type Lines = Rc<RefCell<Vec<String>>>;

/// What a test works with.
pub(crate) struct World {
    pub(crate) root: Context,
    folder: TempDir,
    reports: Lines,
    notes: Lines,
    bell: Rc<Notify>,
}

impl World {
    fn new() -> Self {
        let (reports, notes) = (Lines::default(), Lines::default());
        let bell: Rc<Notify> = Rc::default();
        let (seen, ring) = (reports.clone(), bell.clone());
        let root = Context::root_with(move |report| {
            seen.borrow_mut().push(report.to_string());
            ring.notify_waiters();
        });
        root.provide(Rc::new(Env::fixed([("PATH", std::env::var("PATH").unwrap())]))).unwrap();
        let (hear, ring) = (notes.clone(), bell.clone());
        let note = move |line: &str| {
            hear.borrow_mut().push(line.to_owned());
            ring.notify_waiters();
        };
        let warn = note.clone();
        root.on(move |_: &Context, Notice(line): &Notice| note(line)).unwrap();
        root.on(move |_: &Context, Warning(line): &Warning| warn(line)).unwrap();
        Self { root, folder: tempfile::tempdir().unwrap(), reports, notes, bell }
    }

    /// The plugin that a script is.
    pub(crate) fn def(&self, name: &str, source: &str) -> PluginDef {
        self.try_def(name, source).unwrap()
    }

    /// Why a script cannot be loaded.
    pub(crate) fn refused(&self, name: &str, source: &str) -> String {
        self.try_def(name, source).err().unwrap().to_string()
    }

    fn try_def(&self, name: &str, source: &str) -> Result<PluginDef, ModuleError> {
        fs::write(self.folder.path().join(name), source).unwrap();
        let scripts = Scripts::new(Builtins::new());
        let key = scripts.resolve(&format!("./{name}"), self.folder.path()).unwrap();
        scripts.load(&key)
    }

    /// Mounts a script under the name of its file.
    pub(crate) fn mount(&self, name: &str, source: &str, config: Value) -> Mount {
        let def = self.def(name, source);
        self.root.plugin_named(name.split('.').next().unwrap(), &def, config).unwrap()
    }

    /// Mounts a script that starts.
    pub(crate) async fn script(&self, name: &str, source: &str) -> Mount {
        self.script_with(name, source, json!({})).await
    }

    /// The same with a config.
    pub(crate) async fn script_with(&self, name: &str, source: &str, config: Value) -> Mount {
        let mount = self.mount(name, source, config);
        assert_eq!(mount.ready().await.unwrap(), State::Active, "waits for {:?}", mount.missing());
        mount
    }

    /// Mounts a script that fails, which is reported once, and gives the error.
    pub(crate) async fn failing(&self, name: &str, source: &str) -> String {
        let err = self.mount(name, source, json!({})).ready().await.unwrap_err().to_string();
        self.take_report();
        err
    }

    /// Mounts built-in plugins of the agent, without config.
    pub(crate) async fn plugins(&self, names: &[&str]) {
        for name in names {
            self.plugin(name, json!({})).await;
        }
    }

    /// Mounts one.
    pub(crate) async fn plugin(&self, name: &str, config: Value) -> Mount {
        let def = match name {
            "agent-loop" => plugin(agent_loop::apply),
            "approval" => plugin(approval::apply),
            "llm-fake" => plugin(llm_fake::apply),
            "prompt" => plugin(prompt::apply),
            "session" => plugin(session::apply),
            "shell-local" => plugin(shell_local::apply),
            "tool-bash" => plugin(tool_bash::apply),
            "tools" => plugin(tools::apply),
            _ => unreachable!("no plugin `{name}`"),
        };
        let mount = self.root.plugin_named(name, &def, config).unwrap();
        assert_eq!(mount.ready().await.unwrap(), State::Active, "waits for {:?}", mount.missing());
        mount
    }

    /// Runs a call of a tool as the loop would.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> ToolResult {
        self.call_until(name, arguments, CancellationToken::new(), None).await
    }

    /// The same, with something to cancel it by and a session.
    pub(crate) async fn call_until(
        &self,
        name: &str,
        arguments: Value,
        cancel: CancellationToken,
        session: Option<Rc<Session>>,
    ) -> ToolResult {
        let tools = self.root.get::<Tools>().expect("`tools` is mounted");
        tools.execute(CallRequest { cancel, session, ..call(name, arguments.to_string()) }).await
    }

    /// Waits until this was noted, and gives all that was noted before it.
    pub(crate) async fn until(&self, line: &str) -> Vec<String> {
        loop {
            let rung = self.bell.notified();
            let at = self.notes.borrow().iter().position(|it| it == line);
            if let Some(at) = at {
                let mut notes = self.notes.borrow_mut();
                let before = notes.drain(..at).collect();
                notes.remove(0);
                return before;
            }
            rung.await;
        }
    }

    /// What was noted and not asked for yet.
    pub(crate) fn noted(&self) -> Vec<String> {
        self.notes.take()
    }

    /// Waits for a report.
    pub(crate) async fn report(&self) -> String {
        loop {
            let rung = self.bell.notified();
            let is_quiet = self.reports.borrow().is_empty();
            if !is_quiet {
                return self.take_report();
            }
            rung.await;
        }
    }

    /// Takes the reports so far, of which there must be one.
    pub(crate) fn take_report(&self) -> String {
        let mut reports = self.reports.take();
        assert_eq!(reports.len(), 1, "{reports:?}");
        reports.remove(0)
    }
}
