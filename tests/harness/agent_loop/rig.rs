//! An agent in a test: the real session, prompt, tools and loop; a model that does what the test told it.
//!
//! A test reads `agent(async |it| { … })`. The clock is paused, so a wait that never ends fails at once, and a report
//! that the test did not take fails it too.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use nano_cordis::cordis::{
    BoxError, Context, Emit, Mount, NoConfig, PluginDef, Service, Svc, Undo, plugin,
};
use nano_cordis::harness::agent_loop::{self, AgentLoop, RunError, TurnOutcome};
use nano_cordis::harness::prompt;
use nano_cordis::harness::session::event::{Event, EventBody};
use nano_cordis::harness::session::{self, Session, Sessions};
use nano_cordis::harness::tools::{
    self, Call, CallRequest, PostExecute, PreExecute, Tool, ToolResult, Tools,
};

mod model;

pub(crate) use model::Model;

/// Runs a test with an agent whose only tool is `echo`.
pub(crate) fn agent(test: impl AsyncFnOnce(&Agent)) {
    kernel(Builder::new_current_thread().enable_all().start_paused(true), async |root, reports| {
        let agent = Box::pin(Agent::start(root, reports)).await;
        test(&agent).await;
    });
}

/// Runs a test with a root context, and takes it down in order.
pub(crate) fn kernel(runtime: &mut Builder, test: impl AsyncFnOnce(Context, Reports)) {
    let runtime = runtime.build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let reports = Reports::default();
        let seen = reports.clone();
        let root = Context::root_with(move |report| seen.borrow_mut().push(report.to_string()));
        let day = Duration::from_hours(24);
        let running = Box::pin(test(root.clone(), reports.clone()));
        tokio::time::timeout(day, running).await.expect("something waits for ever");
        let end = root.shutdown(day).await;
        assert_eq!((end.hung, end.failures.len()), (vec![], 0));
        assert_eq!(*reports.borrow(), [""; 0], "reports that the test did not take");
    });
}

/// What the kernel reported.
pub(crate) type Reports = Rc<RefCell<Vec<String>>>;

/// What a test works with.
pub(crate) struct Agent {
    pub(crate) root: Context,
    pub(crate) session: Rc<Session>,
    pub(crate) model: Model,
    pub(crate) llm: Mount,
    pub(crate) prompt: Mount,
    pub(crate) turns: Mount,
    reports: Reports,
    loops: Slot<AgentLoop>,
    tools: Slot<Tools>,
    sessions: Slot<Sessions>,
    echo: Undo,
}

impl Agent {
    async fn start(root: Context, reports: Reports) -> Agent {
        let model = Model::default();
        mount(&root, "session", &plugin(session::apply), json!({})).await;
        mount(&root, "tools", &plugin(tools::apply), json!({})).await;
        let prompt =
            mount(&root, "prompt", &plugin(prompt::apply), json!({ "persona": "Be brief." })).await;
        let llm = mount(&root, "llm", &model.plugin(), json!({})).await;
        let turns =
            mount(&root, "loop", &plugin(agent_loop::apply), json!({ "maxSteps": 3 })).await;
        let (loops, tools, sessions) = (
            Slot::fill(&root).await,
            Slot::<Tools>::fill(&root).await,
            Slot::<Sessions>::fill(&root).await,
        );
        let session = sessions.get().create().unwrap();
        let echo = tools.get().register(echo()).unwrap();
        Agent { root, session, model, llm, prompt, turns, reports, loops, tools, sessions, echo }
    }

    /// The table of tools, in the name of a plugin that outlives the test.
    pub(crate) fn tools(&self) -> Svc<Tools> {
        self.tools.get()
    }

    /// The sessions.
    pub(crate) fn sessions(&self) -> Svc<Sessions> {
        self.sessions.get()
    }

    /// The loop that is there now.
    pub(crate) fn turns(&self) -> Svc<AgentLoop> {
        self.loops.get()
    }

    /// One turn that may begin.
    pub(crate) async fn run(&self, text: &str) -> TurnOutcome {
        self.try_run(text, &CancellationToken::new()).await.unwrap()
    }

    /// One turn.
    pub(crate) async fn try_run(
        &self,
        text: &str,
        cancel: &CancellationToken,
    ) -> Result<TurnOutcome, RunError> {
        self.turns().run(&self.session, text, cancel.clone()).await
    }

    /// One call, without a turn around it.
    pub(crate) async fn call(&self, name: &str, arguments: &str) -> ToolResult {
        self.tools().execute(request(name, arguments)).await
    }

    /// Mounts a plugin that needs no config.
    pub(crate) async fn mount(&self, name: &str, def: &PluginDef) -> Mount {
        mount(&self.root, name, def, json!({})).await
    }

    /// A plugin that registers one tool.
    pub(crate) async fn mount_tool(&self, tool: impl Fn() -> Tool + 'static) -> Mount {
        let def = plugin(move |_: Context, _: NoConfig, tools: Svc<Tools>| {
            let tool = tool();
            async move { tools.register(tool).map(drop).map_err(BoxError::from) }
        });
        self.mount("one-tool", &def).await
    }

    /// Takes `echo` away.
    pub(crate) async fn without_tools(&self) {
        self.echo.call().await.unwrap();
    }

    /// Mounts a tool that does nothing but count.
    pub(crate) async fn count_runs(&self, name: &'static str) -> Rc<Cell<u32>> {
        let runs = Rc::new(Cell::new(0));
        let count = runs.clone();
        self.mount_tool(move || {
            let count = count.clone();
            tool(name, async move |_| {
                count.set(count.get() + 1);
                Ok("ran".to_owned())
            })
        })
        .await;
        runs
    }

    /// How often an event is raised from here on.
    pub(crate) fn count<E: Emit>(&self) -> Rc<Cell<u32>> {
        let seen = Rc::new(Cell::new(0));
        let count = seen.clone();
        self.root.on::<E, _>(move |_, _| count.set(count.get() + 1)).unwrap();
        seen
    }

    /// How many calls come to their end from here on.
    pub(crate) fn count_finished(&self) -> Rc<Cell<u32>> {
        let seen = Rc::new(Cell::new(0));
        let count = seen.clone();
        self.root
            .intercept::<PostExecute>(async move |_, _, next| {
                count.set(count.get() + 1);
                next.run().await
            })
            .unwrap();
        seen
    }

    /// Makes each call wait until the test lets it go on.
    pub(crate) fn hold_calls(&self) -> Rc<Gate> {
        let gate = Rc::new(Gate::default());
        let held = gate.clone();
        self.root
            .intercept::<PreExecute>(async move |_, _, next| {
                held.reached.notify_one();
                held.opened.notified().await;
                next.run().await
            })
            .unwrap();
        gate
    }

    /// The types of all events so far, with what tells them apart.
    pub(crate) fn log(&self) -> Vec<String> {
        log(&self.session)
    }

    /// The log from the last `turn/start` on.
    pub(crate) fn last_turn(&self) -> Vec<String> {
        let log = self.log();
        let start = log.iter().rposition(|it| it.starts_with("turn/start")).unwrap();
        log[start..].to_vec()
    }

    /// The texts of all results so far.
    pub(crate) fn results(&self) -> Vec<String> {
        results(&self.session)
    }

    /// Takes the reports that came so far.
    pub(crate) fn take_reports(&self) -> Vec<String> {
        self.reports.take()
    }
}

/// Where calls wait.
#[derive(Default)]
pub(crate) struct Gate {
    pub(crate) reached: Notify,
    pub(crate) opened: Notify,
}

/// Mounts a plugin and waits until it runs.
pub(crate) async fn mount(root: &Context, name: &str, def: &PluginDef, config: Value) -> Mount {
    let mount = root.plugin_named(name, def, config).unwrap();
    mount.ready().await.unwrap();
    mount
}

/// A call outside of a turn.
pub(crate) fn request(name: &str, arguments: &str) -> CallRequest {
    CallRequest {
        id: "call_1".into(),
        name: name.into(),
        arguments: arguments.into(),
        problem: None,
        cancel: CancellationToken::new(),
        session: None,
        turn: 1,
        step: 1,
    }
}

/// Says what it was given.
pub(crate) fn echo() -> Tool {
    tool("echo", async |call| {
        Ok(call.arguments.get("text").and_then(Value::as_str).unwrap_or_default().to_owned())
    })
}

/// A tool that takes an optional text and a required nothing.
pub(crate) fn tool(
    name: &str,
    run: impl AsyncFn(Rc<Call>) -> Result<String, BoxError> + 'static,
) -> Tool {
    let parameters = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    Tool::new(name, "a tool of a test", parameters, run)
}

/// A view of a service, always the newest.
pub(crate) struct Slot<S: ?Sized>(Rc<RefCell<Option<Svc<S>>>>);

impl<S: Service + ?Sized> Slot<S> {
    pub(crate) async fn fill(root: &Context) -> Slot<S> {
        let slot = Rc::new(RefCell::new(None));
        let filled = slot.clone();
        let def = plugin(move |_: Context, _: NoConfig, service: Svc<S>| {
            filled.replace(Some(service));
            async { Ok::<(), BoxError>(()) }
        });
        mount(root, "slot", &def, json!({})).await;
        Slot(slot)
    }

    pub(crate) fn get(&self) -> Svc<S> {
        self.try_get().expect("the service has been there once")
    }

    pub(crate) fn try_get(&self) -> Option<Svc<S>> {
        self.0.borrow().clone()
    }
}

/// The types of all events of a session, with what tells them apart.
pub(crate) fn log(session: &Session) -> Vec<String> {
    session.events().iter().map(|it| line(it)).collect()
}

/// The texts of all results of a session.
pub(crate) fn results(session: &Session) -> Vec<String> {
    let text = |it: &Rc<Event>| match &it.body {
        EventBody::ToolResult { message, .. } => Some(message.text().to_owned()),
        _ => None,
    };
    session.events().iter().filter_map(text).collect()
}

fn line(event: &Event) -> String {
    let kind = event.body.kind();
    match &event.body {
        EventBody::TurnStart { turn, .. } => format!("{kind} {turn}"),
        EventBody::StepStart { step, .. } => format!("{kind} {step}"),
        EventBody::UserMessage { message, .. } => format!("{kind} {}", message.text()),
        EventBody::ToolCall { call_id, .. } | EventBody::ToolResult { call_id, .. } => {
            format!("{kind} {call_id}")
        }
        EventBody::TurnEnd { reason, .. } => format!("{kind} {reason:?}"),
        _ => kind.to_owned(),
    }
}
