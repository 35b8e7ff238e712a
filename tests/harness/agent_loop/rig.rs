//! An agent in a test: the real session, prompt, tools and loop; a model that does what the test told it.
//!
//! A test reads `agent(async |it| { … })`. The clock is paused, so a wait that never ends fails at once, and a report
//! that the test did not take fails it too.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use nano_cordis::cordis::{
    BoxError, Context, Emit, LocalBoxFuture, Mount, NoConfig, PluginDef, Service, Svc, Undo, plugin,
};
use nano_cordis::harness::agent_loop::{self, AgentLoop, RunError, TurnOutcome};
use nano_cordis::harness::llm::{Delta, Llm, LlmError, Reply, Request};
use nano_cordis::harness::session::event::{Event, EventBody};
use nano_cordis::harness::session::message::{AssistantMessage, ToolCallRequest};
use nano_cordis::harness::session::{self, Session, Sessions};
use nano_cordis::harness::tools::{self, Call, CallRequest, PostExecute, PreExecute, Tool, ToolResult, Tools};
use nano_cordis::harness::prompt;

/// Runs a test with an agent whose only tool is `echo`.
pub(crate) fn agent(test: impl AsyncFnOnce(Agent)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let reports: Rc<RefCell<Vec<String>>> = Rc::default();
        let seen = reports.clone();
        let root = Context::root_with(move |report| seen.borrow_mut().push(report.to_string()));
        let agent = Box::pin(Agent::start(root, reports.clone())).await;
        let running = Box::pin(test(agent));
        tokio::time::timeout(Duration::from_secs(86_400), running).await.expect("something waits for ever");
        assert_eq!(*reports.borrow(), [""; 0], "reports that the test did not take");
    });
}

/// What a test works with.
pub(crate) struct Agent {
    pub(crate) root: Context,
    pub(crate) session: Rc<Session>,
    pub(crate) model: Model,
    pub(crate) llm: Mount,
    pub(crate) prompt: Mount,
    pub(crate) agent_loop: Mount,
    reports: Rc<RefCell<Vec<String>>>,
    loops: Slot<AgentLoop>,
    tools: Slot<Tools>,
    sessions: Slot<Sessions>,
    echo: Undo,
}

impl Agent {
    async fn start(root: Context, reports: Rc<RefCell<Vec<String>>>) -> Agent {
        let model = Model::default();
        mount(&root, "session", &plugin(session::apply), json!({})).await;
        mount(&root, "tools", &plugin(tools::apply), json!({})).await;
        let prompt = mount(&root, "prompt", &plugin(prompt::apply), json!({ "persona": "Be brief." })).await;
        let llm = mount(&root, "llm", &model.plugin(), json!({})).await;
        let agent_loop = mount(&root, "loop", &plugin(agent_loop::apply), json!({ "maxSteps": 5 })).await;
        let (loops, tools, sessions) = (Slot::fill(&root).await, Slot::<Tools>::fill(&root).await, Slot::<Sessions>::fill(&root).await);
        let session = sessions.get().create().unwrap();
        let echo = tools.get().register(echo()).unwrap();
        Agent { root, session, model, llm, prompt, agent_loop, reports, loops, tools, sessions, echo }
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
    pub(crate) async fn try_run(&self, text: &str, cancel: &CancellationToken) -> Result<TurnOutcome, RunError> {
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
        self.session.events().iter().map(|it| line(it)).collect()
    }

    /// The log from the last `turn/start` on.
    pub(crate) fn last_turn(&self) -> Vec<String> {
        let log = self.log();
        let start = log.iter().rposition(|it| it.starts_with("turn/start")).unwrap();
        log[start..].to_vec()
    }

    /// The texts of all results so far.
    pub(crate) fn results(&self) -> Vec<String> {
        let text = |it: &Rc<Event>| match &it.body {
            EventBody::ToolResult { message, .. } => Some(message.text().to_owned()),
            _ => None,
        };
        self.session.events().iter().filter_map(text).collect()
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
    tool("echo", async |call| Ok(format!("{}", call.arguments["text"].as_str().unwrap_or_default())))
}

/// A tool that takes an optional text and a required nothing.
pub(crate) fn tool(name: &str, run: impl AsyncFn(Rc<Call>) -> Result<String, BoxError> + 'static) -> Tool {
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
        self.0.borrow().clone().expect("the service has been there once")
    }
}

/// A model that answers from a list and remembers what it was asked.
#[derive(Clone, Default)]
pub(crate) struct Model(Rc<Script>);

#[derive(Default)]
struct Script {
    answers: RefCell<VecDeque<Answer>>,
    asked: RefCell<Vec<Rc<Request>>>,
}

enum Answer {
    Reply(Reply),
    Pieces(Vec<&'static str>, Reply),
    Fail(LlmError),
    Panic,
    Hang,
}

impl Model {
    /// A provider of this model.
    pub(crate) fn plugin(&self) -> PluginDef {
        let model = self.clone();
        plugin(move |ctx: Context, _: NoConfig| {
            let model: Rc<dyn Llm> = Rc::new(model.clone());
            async move { ctx.provide::<dyn Llm>(model).map(drop).map_err(BoxError::from) }
        })
    }

    /// Next, a text.
    pub(crate) fn says(&self, text: &str) -> &Self {
        self.replies(text, &[], Some("stop"))
    }

    /// Next, calls of tools: id, name, arguments.
    pub(crate) fn calls(&self, calls: &[(&str, &str, &str)]) -> &Self {
        self.replies("", calls, Some("tool_calls"))
    }

    /// Next, a reply that ends for this reason.
    pub(crate) fn replies(&self, text: &str, calls: &[(&str, &str, &str)], reason: Option<&str>) -> &Self {
        self.then(Answer::Reply(reply(text, calls, reason)))
    }

    /// Next, a text in pieces.
    pub(crate) fn streams(&self, pieces: &[&'static str]) -> &Self {
        self.then(Answer::Pieces(pieces.to_vec(), reply(&pieces.concat(), &[], Some("stop"))))
    }

    /// Next, an error.
    pub(crate) fn fails(&self, error: LlmError) -> &Self {
        self.then(Answer::Fail(error))
    }

    /// Next, a panic.
    pub(crate) fn panics(&self) -> &Self {
        self.then(Answer::Panic)
    }

    /// Next, silence for ever.
    pub(crate) fn hangs(&self) -> &Self {
        self.then(Answer::Hang)
    }

    /// What it was asked, in order.
    pub(crate) fn asked(&self) -> Vec<Rc<Request>> {
        self.0.asked.borrow().clone()
    }

    fn then(&self, answer: Answer) -> &Self {
        self.0.answers.borrow_mut().push_back(answer);
        self
    }
}

impl Llm for Model {
    fn model(&self) -> String {
        "fake".to_owned()
    }

    fn chat(
        &self,
        request: Rc<Request>,
        on_delta: Rc<dyn Fn(Delta)>,
        _: CancellationToken,
    ) -> LocalBoxFuture<'static, Result<Reply, LlmError>> {
        self.0.asked.borrow_mut().push(request);
        let answer = self.0.answers.borrow_mut().pop_front().expect("the test gave enough answers");
        Box::pin(async move {
            match answer {
                Answer::Reply(reply) => Ok(reply),
                Answer::Pieces(pieces, reply) => {
                    pieces.iter().for_each(|it| on_delta(Delta::Text((*it).to_owned())));
                    Ok(reply)
                }
                Answer::Fail(error) => Err(error),
                Answer::Panic => panic!("the model broke"),
                Answer::Hang => std::future::pending().await,
            }
        })
    }
}

fn reply(text: &str, calls: &[(&str, &str, &str)], reason: Option<&str>) -> Reply {
    let tool_calls = calls.iter().map(|(id, name, text)| ToolCallRequest::new(*id, *name, *text)).collect();
    let content = Some(text.to_owned()).filter(|it| !it.is_empty());
    let message = AssistantMessage { content, tool_calls, ..AssistantMessage::default() };
    Reply { message, finish_reason: reason.map(str::to_owned), usage: None }
}

fn line(event: &Event) -> String {
    let kind = event.body.kind();
    match &event.body {
        EventBody::TurnStart { turn, .. } => format!("{kind} {turn}"),
        EventBody::StepStart { step, .. } => format!("{kind} {step}"),
        EventBody::UserMessage { message, .. } => format!("{kind} {}", message.text()),
        EventBody::ToolCall { call_id, .. } | EventBody::ToolResult { call_id, .. } => format!("{kind} {call_id}"),
        EventBody::TurnEnd { reason, .. } => format!("{kind} {reason:?}"),
        _ => kind.to_owned(),
    }
}
