//! Part of `script`: the agent's side of a running script. It does what the script asks for, in the name of its fiber.
//!
//! Each file of the folder knows some operations; what a script sees of them is in `prelude/`.
//! Watch for: a script can only name what it was given a number for. A number that means nothing any more is an error in
//! the script, never here.

mod agent;
mod callback;
mod codec;
mod core;
mod events;
pub(super) mod fetch;
mod llm;
mod named;
mod offers;
mod pace;
mod services;
mod shell;

use std::{
    any::Any,
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::{Rc, Weak},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    sync::{Semaphore, mpsc::Receiver},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use self::{callback::Callback, pace::Pace};
use super::{
    console,
    engine::{Answer, Engine, Function, Request},
};
use crate::{
    cordis::{BoxError, Cleanup, Context, LocalBoxFuture, Mount, Undo},
    harness::{env::Env, llm::Delta, shell_local::LocalShell},
};

/// A cleanup of a script may take so long, and so may a start that is no longer wanted.
const CLEANUP: Duration = Duration::from_secs(5);
/// The context of the plugin itself; those of its children have other numbers.
const ROOT: u32 = 1;
/// Waits for no answer.
const NOBODY: u32 = 0;
/// Stands for the start of the plugin.
const START: Function = 0;

/// What an operation gives the script.
type Done = Result<Value, String>;
/// Hears of the pieces of a reply.
type OnDelta = dyn Fn(Delta);
/// A service as the kernel has it, and the number of the object that it is in the script.
type Offer = (Weak<dyn Any>, u32);
/// The rest of a chain of listeners, for a script to run.
type Rest = dyn Fn() -> LocalBoxFuture<'static, Done>;

/// A script that runs, and what the numbers mean that it knows.
pub(super) struct Bridge {
    engine: RefCell<Option<Engine>>,
    /// Listeners that are still at it, and operations that take time.
    tasks: RefCell<JoinSet<()>>,
    env: Option<Rc<Env>>,
    pace: Rc<Pace>,
    /// Hosts that the script may talk to.
    allow: Vec<String>,
    fetches: Semaphore,
    last: Cell<u32>,
    contexts: RefCell<HashMap<u32, Context>>,
    undos: RefCell<HashMap<u32, Undo>>,
    mounts: RefCell<HashMap<u32, Mount>>,
    nexts: RefCell<HashMap<u32, Rc<Rest>>>,
    /// By the numbers of the script, which counts on its own.
    cancels: RefCell<HashMap<u32, CancellationToken>>,
    /// Commands that a shell of the script is asked to run.
    runs: RefCell<HashMap<u32, CancellationToken>>,
    deltas: RefCell<HashMap<u32, Rc<OnDelta>>>,
    shells: RefCell<HashMap<u32, LocalShell>>,
    /// What the script provides.
    offers: RefCell<HashMap<String, Offer>>,
}

/// What an operation comes to.
enum Reply {
    Now(Done),
    Later(LocalBoxFuture<'static, Done>),
}

impl Reply {
    /// Of something that cannot fail and has nothing to say.
    const NOTHING: Self = Self::Now(Ok(Value::Null));
}

/// What the script asks for. When nobody does it any more, its last words are still heard.
struct Requests(Receiver<Box<Request>>);

impl Drop for Requests {
    fn drop(&mut self) {
        while let Ok(request) = self.0.try_recv() {
            if request.operation == "log" {
                console::log(&request.args);
            }
        }
    }
}

impl Bridge {
    /// The body of the plugin.
    pub(super) async fn start(
        ctx: Context,
        engine: Engine,
        requests: Receiver<Box<Request>>,
        config: Value,
    ) -> Result<Option<Cleanup>, BoxError> {
        let bridge = Rc::new(Self::new(&ctx, engine, &config));
        // The first effects are the last to be undone: until then the script can still ask for something.
        let ending = bridge.clone();
        ctx.effect(|| async move || ending.end().await)?;
        let serving = bridge.clone();
        ctx.spawn("script", async move |_| serving.serve(requests).await)?;
        bridge.begin(START, &ctx, ROOT, config).await
    }

    fn new(ctx: &Context, engine: Engine, config: &Value) -> Self {
        let allow = config["allow"].as_array().into_iter().flatten();
        Self {
            engine: RefCell::new(Some(engine)),
            tasks: RefCell::default(),
            pace: Rc::default(),
            env: ctx.get::<Env>().map(|it| it.shared()),
            allow: allow.filter_map(|it| it.as_str().map(str::to_ascii_lowercase)).collect(),
            fetches: Semaphore::new(fetch::AT_A_TIME),
            last: Cell::new(ROOT),
            contexts: RefCell::new(HashMap::from([(ROOT, ctx.clone())])),
            undos: RefCell::default(),
            mounts: RefCell::default(),
            nexts: RefCell::default(),
            cancels: RefCell::default(),
            runs: RefCell::default(),
            deltas: RefCell::default(),
            shells: RefCell::default(),
            offers: RefCell::default(),
        }
    }

    /// Runs the body of a plugin of this script, and gives its cleanup.
    async fn begin(
        self: &Rc<Self>,
        start: Function,
        ctx: &Context,
        number: u32,
        config: Value,
    ) -> Result<Option<Cleanup>, BoxError> {
        let started = self.call(start, vec![number.into(), config], callback::NOTHING);
        // Differs: the kernel notices who waits for its own end, and lets it go on. Which part of a script waits for
        // something nobody can see, so a start that awaits its own `dispose()` is given up like one that does not end.
        let unwanted = async {
            ctx.stopping().await;
            sleep(CLEANUP).await;
        };
        let cleanup = tokio::select! {
            biased;
            cleanup = started => cleanup?,
            () = unwanted => return Err("it was told to stop, and its start did not end".into()),
        };
        let cleanup = self.callback(&cleanup);
        let bridge = self.clone();
        Ok(cleanup.map(|it| Cleanup::future(move || async move { bridge.clean_up(it).await })))
    }

    /// Nothing that is still going on is waited for, and no late answer counts.
    async fn end(&self) -> Result<(), BoxError> {
        self.tasks.take().shutdown().await;
        let engine = self.engine.take();
        match engine {
            Some(engine) => Ok(engine.end().await?),
            None => Ok(()),
        }
    }

    fn tell(&self, topic: &'static str, number: u32, value: Value) {
        if let Some(engine) = &*self.engine.borrow() {
            engine.tell(topic, number, value);
        }
    }

    /// What goes on beside everything else, until the plugin unloads.
    fn go_on(&self, work: impl Future<Output = ()> + 'static) {
        let mut tasks = self.tasks.borrow_mut();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_local(work);
    }

    /// Where the engine has ended there is nothing left to clean up.
    async fn clean_up(&self, cleanup: Rc<Callback>) -> Result<(), BoxError> {
        if self.engine.borrow().is_none() {
            return Ok(());
        }
        match timeout(CLEANUP, cleanup.call(Vec::new())).await {
            Ok(outcome) => outcome.map(drop).map_err(Into::into),
            Err(_) => Err(format!("a cleanup did not end within {} s", CLEANUP.as_secs()).into()),
        }
    }

    /// Works off requests until the plugin unloads. What takes time goes on beside them.
    async fn serve(self: Rc<Self>, requests: Receiver<Box<Request>>) {
        let mut requests = Requests(requests);
        while let Some(request) = requests.0.recv().await {
            let Request { operation, args, answer } = *request;
            match self.handle(&operation, &args) {
                Reply::Now(outcome) => self.answer(answer, outcome),
                Reply::Later(work) => {
                    let bridge = self.clone();
                    self.go_on(async move { bridge.answer(answer, work.await) });
                }
            }
        }
    }

    fn answer(&self, answer: Answer, outcome: Done) {
        match answer {
            // Whoever asked may be gone.
            Answer::Now(answer) => drop(answer.send(outcome)),
            Answer::Later(NOBODY) => {}
            Answer::Later(promise) => {
                let (works, value) = match outcome {
                    Ok(value) => (true, value),
                    Err(problem) => (false, problem.into()),
                };
                self.tell("settle", promise, json!([works, value]));
            }
        }
    }

    fn handle(self: &Rc<Self>, operation: &str, args: &[Value]) -> Reply {
        let unknown = || Reply::Now(Err(format!("there is no operation `{operation}`")));
        self.core(operation, args)
            .or_else(|| self.named(operation, args))
            .or_else(|| self.offers(operation, args))
            .or_else(|| self.services(operation, args))
            .or_else(|| self.agent(operation, args))
            .or_else(|| self.model(operation, args))
            .or_else(|| self.shell(operation, args))
            .or_else(|| self.fetching(operation, args))
            .unwrap_or_else(unknown)
    }

    fn number(&self) -> u32 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    /// The context that an argument names.
    fn context(&self, arg: &Value) -> Result<Context, String> {
        let context = number(arg).and_then(|it| self.contexts.borrow().get(&it).cloned());
        context.ok_or_else(|| "this context is gone".to_owned())
    }

    /// A number by which the script knows a context.
    fn name_context(&self, ctx: Context) -> u32 {
        let number = self.number();
        self.contexts.borrow_mut().insert(number, ctx);
        number
    }

    /// Notes an effect, so that the script can undo it.
    fn keep(&self, undo: Undo) -> Value {
        let number = self.number();
        self.undos.borrow_mut().insert(number, undo);
        number.into()
    }
}

fn number(arg: &Value) -> Option<u32> {
    arg.as_u64().and_then(|it| u32::try_from(it).ok())
}

fn text<'a>(what: &str, arg: &'a Value) -> Result<&'a str, String> {
    arg.as_str().ok_or_else(|| format!("{what} must be a text, not {arg}"))
}

fn shown(err: impl std::fmt::Display) -> String {
    err.to_string()
}
