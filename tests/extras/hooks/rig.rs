//! An agent in a test: put together by the loader from a list, with a model that answers by script and a tool `echo`.
//!
//! The clock is the real one, because hooks are processes. They run where the tests run, so what they write goes to
//! `$DIR`, a folder of the test.

use std::{
    cell::{Cell, RefCell},
    fs,
    path::PathBuf,
    rc::Rc,
    time::Duration,
};

use nano_cordis::{
    cordis::{
        BoxError, Context, NoConfig, Notice, Service, Svc, Warning,
        loader::{self, Loader, LoaderOptions},
        plugin,
    },
    extras::{extended, script::Scripts},
    harness::{
        agent_loop::{AgentLoop, TurnOutcome},
        approval::{Answer, ApprovalRequest},
        builtins,
        env::Env,
        session::{Session, Sessions},
        tools::{Call, CallRequest, Tool, ToolResult, Tools},
        trust::Trust,
    },
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{runtime::Builder, task::LocalSet, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::shared::{call, is_alive};

/// Nothing here takes that long; a test that hangs fails.
const LONG: Duration = Duration::from_mins(1);

const AGENT: &str = "
- {id: session, name: session}
- {id: prompt, name: prompt}
- {id: tools, name: tools}
- {id: echo, name: echo}
- {id: loop, name: agent-loop, config: {maxSteps: 4}}
";

/// A list with hooks of this config.
pub(crate) fn list(hooks: &Value) -> String {
    format!("{AGENT}- {{id: llm, name: llm-fake}}\n- {{id: hooks, name: hooks, config: {hooks}}}\n")
}

/// The config of a hook before each tool.
pub(crate) fn before(command: &str) -> Value {
    json!({ "PreToolUse": [{ "command": command }] })
}

/// Runs a test with hooks of this config.
pub(crate) fn hooks(config: &Value, test: impl AsyncFnOnce(&Rig)) {
    agent(&list(config), test);
}

/// Runs a test with an agent of this list.
pub(crate) fn agent(list: &str, test: impl AsyncFnOnce(&Rig)) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let rig = Box::pin(Rig::start(list)).await;
        timeout(LONG, Box::pin(test(&rig))).await.expect("something waits for ever");
        let end = rig.root.shutdown(LONG).await;
        assert_eq!((end.hung, end.failures.len()), (vec![], 0));
        assert_eq!(*rig.reports.borrow(), [""; 0], "reports that the test did not expect");
    });
}

/// What a test works with.
pub(crate) struct Rig {
    pub(crate) root: Context,
    pub(crate) folder: TempDir,
    /// How often `echo` ran.
    pub(crate) runs: Rc<Cell<u32>>,
    pub(crate) cancel: CancellationToken,
    reports: Rc<RefCell<Vec<String>>>,
    notices: Rc<RefCell<Vec<String>>>,
    file: PathBuf,
}

impl Rig {
    async fn start(list: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (reports, notices) = (Rc::<RefCell<Vec<String>>>::default(), Rc::default());
        let seen = reports.clone();
        let root = Context::root_with(move |it| seen.borrow_mut().push(it.to_string()));
        root.provide(Rc::new(env(&folder))).unwrap();
        Trust::watch(&root).unwrap();
        let rig = Self {
            file: folder.path().join("cordis.yml"),
            runs: Rc::default(),
            cancel: CancellationToken::new(),
            root,
            folder,
            reports,
            notices,
        };
        rig.note();
        rig.load(list).await;
        rig
    }

    fn note(&self) {
        let (noted, warned) = (self.notices.clone(), self.notices.clone());
        self.root.on(move |_, it: &Notice| noted.borrow_mut().push(it.0.clone())).unwrap();
        self.root.on(move |_, it: &Warning| warned.borrow_mut().push(it.0.clone())).unwrap();
    }

    async fn load(&self, list: &str) {
        fs::write(&self.file, list).unwrap();
        let runs = self.runs.clone();
        let echo = plugin(move |_: Context, _: NoConfig, tools: Svc<Tools>| {
            std::future::ready(tools.register(echo(&runs)).map(drop).map_err(BoxError::from))
        });
        let options = LoaderOptions {
            file: Some(self.file.clone()),
            text: "",
            modules: Rc::new(Scripts::new(extended(builtins()).with("echo", echo))),
            env: Rc::new(|_| None),
            set: Vec::new(),
            disable: Vec::new(),
        };
        let loader = loader::plugin(options);
        self.root.plugin_named("loader", &loader, json!({})).unwrap().ready().await.unwrap();
        self.service::<Loader>().applied().await.unwrap();
        assert_eq!(self.service::<Loader>().problem(), None);
    }

    /// A service as the root sees it.
    pub(crate) fn service<S: Service + ?Sized>(&self) -> Svc<S> {
        self.root.get().expect("it is provided")
    }

    /// Writes another list, and waits until it is in force or refused.
    pub(crate) async fn save(&self, list: &str) -> Result<(), String> {
        fs::write(&self.file, list).unwrap();
        self.service::<Loader>().reload();
        self.service::<Loader>().applied().await.map(drop).map_err(|it| it.to_string())
    }

    /// One call of `echo`.
    pub(crate) async fn echo(&self, text: &str) -> ToolResult {
        self.call("echo", &json!({ "text": text }).to_string()).await
    }

    /// One call.
    pub(crate) async fn call(&self, name: &str, arguments: &str) -> ToolResult {
        let (cancel, session) =
            (self.cancel.clone(), Some(self.session()).filter(|_| name == "echo"));
        let request = CallRequest { cancel, session, ..call(name, arguments) };
        self.service::<Tools>().execute(request).await
    }

    /// A new session.
    pub(crate) fn session(&self) -> Rc<Session> {
        self.service::<Sessions>().create().unwrap()
    }

    /// One turn.
    pub(crate) async fn turn(&self, session: &Rc<Session>) -> TurnOutcome {
        let turns = self.service::<AgentLoop>();
        turns.run(session, "hello", self.cancel.clone()).await.unwrap()
    }

    /// Answers every question like this, and counts them.
    pub(crate) fn answers(&self, answer: Answer) -> Rc<Cell<u32>> {
        let asked = Rc::new(Cell::new(0));
        let count = asked.clone();
        let listener = async move |_, _| {
            count.set(count.get() + 1);
            Ok(Some(answer.clone()))
        };
        self.root.answer::<ApprovalRequest>(listener).unwrap();
        asked
    }

    /// Takes the lines for the user that came so far.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        self.notices.take()
    }

    /// Takes the reports that a test expects.
    pub(crate) fn take_reports(&self) -> Vec<String> {
        self.reports.take()
    }

    /// Waits until a line comes.
    pub(crate) async fn told(&self, line: &str) {
        while !self.notices.borrow().iter().any(|it| it == line) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// What a hook wrote to a file of the folder; nothing if it did not.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    /// Waits until a hook has written a whole line to a file of the folder.
    pub(crate) async fn line(&self, name: &str) -> String {
        loop {
            let text = self.read(name);
            if text.ends_with('\n') {
                return text.trim().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until a process is gone. One that is dead but not yet buried is.
    pub(crate) async fn gone(&self, pid: &str) {
        while is_alive(pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn env(folder: &TempDir) -> Env {
    let path = std::env::var_os("PATH").unwrap();
    let dir = folder.path().as_os_str().to_owned();
    let token = "abcdef".into();
    Env::fixed([("PATH", path), ("DIR", dir), ("MY_TOKEN", token)])
}

/// Says what it was given.
fn echo(runs: &Rc<Cell<u32>>) -> Tool {
    let runs = runs.clone();
    let parameters = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    Tool::new("echo", "says it again", parameters, async move |call: Rc<Call>| {
        runs.set(runs.get() + 1);
        Ok(call.arguments.get("text").and_then(Value::as_str).unwrap_or_default().to_owned())
    })
}
