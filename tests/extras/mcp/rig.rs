//! What the tests of MCP share: the table of tools, a server that misbehaves as it is told, and what was said about it.
//!
//! The clock is the real one: a server is a process. Nothing waits for a time, only for what is said or answered.

use std::{
    cell::{Cell, RefCell},
    fs,
    path::PathBuf,
    rc::Rc,
    time::{Duration, Instant},
};

use nano_cordis::{
    cordis::{BoxError, Context, Mount, NoConfig, Notice, Svc, Warning, plugin},
    extras::mcp,
    harness::{
        env::Env,
        session::{
            self, Session, Sessions,
            event::{EventBody, FORMAT, Reason},
        },
        tools::{self, CallRequest, ToolResult, Tools},
    },
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{runtime::Builder, sync::Notify, task::LocalSet, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::shared::{call, is_alive};

/// Nothing here takes that long; a test that hangs fails.
const LONG: Duration = Duration::from_mins(1);

/// Runs a test with a table of tools and no server yet.
pub(crate) fn rig(test: impl AsyncFnOnce(Rc<Rig>) + 'static) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let local = LocalSet::new();
    local.block_on(&runtime, async {
        let rig = Rc::new(Rig::start().await);
        // A task of its own, so that no process outlives a test that fails.
        let ended = timeout(LONG, local.spawn_local(test(rig.clone()))).await;
        let end = rig.ctx.shutdown(LONG).await;
        ended.expect("something hangs").unwrap();
        assert_eq!((end.hung, end.failures.len()), (vec![], 0));
        assert_eq!(*rig.reports.borrow(), [""; 0], "reports that the test did not take");
        assert_eq!(rig.said(), [""; 0], "lines that the test did not take");
        assert_eq!(rig.alive(), [""; 0], "processes that are left");
    });
}

/// A folder for one server, and the table that its tools come to.
pub(crate) struct Rig {
    pub(crate) ctx: Context,
    pub(crate) tools: Svc<Tools>,
    session: Rc<Session>,
    folder: TempDir,
    reports: Rc<RefCell<Vec<String>>>,
    said: Rc<RefCell<Vec<String>>>,
    bell: Rc<Notify>,
    turns: Cell<u32>,
}

impl Rig {
    async fn start() -> Self {
        let reports = Rc::<RefCell<Vec<String>>>::default();
        let recorded = reports.clone();
        let ctx = Context::root_with(move |it| recorded.borrow_mut().push(it.to_string()));
        let path = std::env::var("PATH").unwrap();
        let vars = [("PATH", path.as_str()), ("PLAIN", "seen"), ("MY_TOKEN", "token-12345")];
        ctx.provide(Rc::new(Env::fixed(vars))).unwrap();
        let (said, bell) = (Rc::<RefCell<Vec<String>>>::default(), Rc::new(Notify::new()));
        let hear = |mark: &'static str| {
            let (said, bell) = (said.clone(), bell.clone());
            move |line: &str| {
                said.borrow_mut().push(format!("{mark}{line}"));
                bell.notify_one();
            }
        };
        let (notice, warning) = (hear(""), hear("! "));
        ctx.on(move |_, it: &Notice| notice(&it.0)).unwrap();
        ctx.on(move |_, it: &Warning| warning(&it.0)).unwrap();
        ctx.plugin(&plugin(session::apply), json!({})).unwrap().ready().await.unwrap();
        ctx.plugin(&plugin(tools::apply), json!({})).unwrap().ready().await.unwrap();
        let tools = view(&ctx).await;
        let session = ctx.get::<Sessions>().unwrap().create().unwrap();
        let (folder, turns) = (tempfile::tempdir().unwrap(), Cell::new(0));
        Self { ctx, tools, session, folder, reports, said, bell, turns }
    }

    /// The config of the server in this mode, with more of it.
    pub(crate) fn config(&self, mode: &str, rest: Value) -> Value {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/extras/mcp/server.sh");
        let mut config = json!({ "command": "bash", "args": [script, self.folder.path(), mode] });
        if let (Some(config), Value::Object(rest)) = (config.as_object_mut(), rest) {
            config.extend(rest);
        }
        config
    }

    /// Mounts the server, which must start.
    pub(crate) async fn serve(&self, mode: &str, rest: Value) -> Mount {
        let mount = self.mount(self.config(mode, rest));
        mount.ready().await.unwrap();
        mount
    }

    pub(crate) fn mount(&self, config: Value) -> Mount {
        self.ctx.plugin_named("x", &plugin(mcp::apply), config).unwrap()
    }

    /// Mounts the server, which must fail; gives the words.
    pub(crate) async fn fails(&self, config: Value) -> String {
        let mount = self.mount(config);
        let err = mount.ready().await.unwrap_err().to_string();
        let reports = self.reports.take();
        assert_eq!(reports.len(), 1, "{reports:?}");
        err
    }

    /// Calls `do` with this to do.
    pub(crate) async fn call(&self, what: &str) -> ToolResult {
        self.call_with("mcp__x__do", json!({ "what": what }), CancellationToken::new()).await
    }

    pub(crate) async fn call_with(
        &self,
        name: &str,
        arguments: Value,
        cancel: CancellationToken,
    ) -> ToolResult {
        let session = Some(self.session.clone());
        self.tools
            .execute(CallRequest { cancel, session, ..call(name, arguments.to_string()) })
            .await
    }

    /// Calls `do`, which answers with this result.
    pub(crate) async fn answered(&self, result: Value) -> ToolResult {
        self.write("answer", &result.to_string());
        self.call("answer").await
    }

    /// A turn in which nothing happens.
    pub(crate) fn turn(&self) {
        let turn = self.turns.get() + 1;
        self.turns.set(turn);
        let start = EventBody::TurnStart { turn, format: FORMAT, cwd: String::new() };
        self.session.append(start).unwrap();
        let end = EventBody::TurnEnd { turn, reason: Reason::Completed, error: None };
        self.session.append(end).unwrap();
    }

    /// The lines that the user was told, warnings with a mark.
    pub(crate) fn said(&self) -> Vec<String> {
        self.said.borrow().clone()
    }

    pub(crate) fn take_said(&self) -> Vec<String> {
        self.said.take()
    }

    /// Waits until so many lines were said, and takes them.
    pub(crate) async fn hear(&self, lines: usize) -> Vec<String> {
        while self.said.borrow().len() < lines {
            self.bell.notified().await;
        }
        self.take_said()
    }

    /// Waits until the server was sent a line with this in it.
    pub(crate) async fn heard(&self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let heard = fs::read_to_string(self.path("heard")).unwrap_or_default();
            if let Some(line) = heard.lines().find(|it| it.contains(text)) {
                return line.to_owned();
            }
            assert!(begun.elapsed() < LONG, "the server was not sent {text:?}: {heard}");
            tokio::task::yield_now().await;
        }
    }

    /// Waits until the list was asked for so many times, and until the answer has come: what is asked after it is answered
    /// after it.
    pub(crate) async fn listed(&self, times: usize) {
        while fs::read_to_string(self.path("heard")).unwrap().matches("tools/list").count() < times
        {
            tokio::task::yield_now().await;
        }
        self.call("echo").await;
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn write_bytes(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    /// The number that the next request to the server will have.
    pub(crate) fn next_id(&self) -> usize {
        let heard = fs::read_to_string(self.path("heard")).unwrap();
        heard.matches("\"id\":").count()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// How many servers were started.
    pub(crate) fn starts(&self) -> usize {
        self.pids().len()
    }

    /// Which of them, and of their children that they told, run.
    pub(crate) fn alive(&self) -> Vec<String> {
        self.pids().into_iter().filter(|it| is_alive(it)).collect()
    }

    fn pids(&self) -> Vec<String> {
        let pids = fs::read_to_string(self.path("pids")).unwrap_or_default();
        pids.lines().map(str::to_owned).collect()
    }
}

/// The table of tools as a plugin sees it that does nothing else.
async fn view(ctx: &Context) -> Svc<Tools> {
    let view = Rc::new(RefCell::new(None));
    let seen = view.clone();
    let body = move |_: Context, _: NoConfig, tools: Svc<Tools>| {
        seen.replace(Some(tools));
        async { Ok::<_, BoxError>(()) }
    };
    ctx.plugin_named("view", &plugin(body), json!({})).unwrap().ready().await.unwrap();
    view.take().unwrap()
}
