//! Part of `script`: what runs on the thread of a script, the QuickJS engine and its loop.
//!
//! Watch for: the script is never trusted to end. Each run, from a message to the last promise that it sets off, has a
//! budget of processor time, all of it a limit of memory.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashMap},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use nix::time::{ClockId, clock_gettime};
use rquickjs::{
    CatchResultExt, Context, Ctx, Function as JsFunction, Module as JsModule, Object, Runtime,
    Value as JsValue,
};
use serde_json::{Value, json};
use tokio::sync::{mpsc as requests, oneshot};

use super::{
    engine::{Answer, Exports, Message, Outcome, Request},
    failure::Failure,
    imports::Links,
    program::Program,
    value,
};

/// A script may hold so much memory.
const MEMORY: usize = 64 << 20;
/// And so much of the stack of its thread.
const STACK: usize = 512 << 10;
/// One run may take so much processor time.
const BUDGET: Duration = Duration::from_secs(1);

/// The engine, its clock, and who waits for what.
pub(super) struct Machine {
    // The context holds values of the runtime, so it goes first.
    context: Context,
    runtime: Runtime,
    shared: Rc<Shared>,
}

/// What the functions that a script sees work with.
struct Shared {
    program: Arc<Program>,
    stop: Arc<AtomicBool>,
    outbox: requests::Sender<Request>,
    /// The processor time at which the run has used up its budget.
    deadline: Cell<Duration>,
    overrun: Cell<bool>,
    replies: RefCell<HashMap<u32, oneshot::Sender<Outcome>>>,
    calls: Cell<u32>,
    timers: RefCell<BTreeSet<(Instant, u32)>>,
}

impl Machine {
    /// Runs the top level of a script.
    pub(super) fn load(
        program: Arc<Program>,
        stop: Arc<AtomicBool>,
        outbox: requests::Sender<Request>,
    ) -> Result<(Self, Exports), Failure> {
        let broken = |err: rquickjs::Error| Failure::new(format!("no engine: {err}"));
        let runtime = Runtime::new().map_err(broken)?;
        runtime.set_memory_limit(MEMORY);
        runtime.set_max_stack_size(STACK);
        let links = Links::new(program.clone());
        runtime.set_loader(links.clone(), links);
        let shared = Rc::new(Shared {
            program,
            stop,
            outbox,
            deadline: Cell::default(),
            overrun: Cell::default(),
            replies: RefCell::default(),
            calls: Cell::default(),
            timers: RefCell::default(),
        });
        let watched = shared.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || watched.must_stop())));
        let context = Context::full(&runtime).map_err(broken)?;
        let machine = Self { context, runtime, shared };
        let exports = machine.start()?;
        Ok((machine, exports))
    }

    fn start(&self) -> Result<Exports, Failure> {
        self.shared.arm();
        let program = self.shared.program.clone();
        let described = self.context.with(|ctx| {
            self.evaluate(&ctx, &program).catch(&ctx).map_err(|it| self.shared.failure(it))
        });
        described?;
        self.settle_jobs()?;
        self.context.with(|ctx| self.describe(&ctx))
    }

    /// Begins to evaluate the prelude and the script. What it comes to is kept in a global until it is asked for.
    fn evaluate(&self, ctx: &Ctx<'_>, program: &Program) -> rquickjs::Result<()> {
        ctx.globals().set("__host", self.shared.host(ctx)?)?;
        let entry = json!(program.entry);
        let source = format!(
            "import 'nano-cordis/host'; import 'nano-cordis/web'; import 'nano-cordis/context'; import * as it from {entry}; __loaded(it)"
        );
        let loading = JsModule::evaluate(ctx.clone(), "(entry)", source)?;
        ctx.globals().set("__loading", loading)
    }

    fn describe(&self, ctx: &Ctx<'_>) -> Result<Exports, Failure> {
        let read = || -> rquickjs::Result<Option<JsValue<'_>>> {
            let loading: rquickjs::Promise<'_> = ctx.globals().get("__loading")?;
            match loading.result::<JsValue<'_>>() {
                None => Ok(None),
                Some(outcome) => outcome.and_then(|_| ctx.globals().get("__exports")).map(Some),
            }
        };
        let exports = read().catch(ctx).map_err(|it| self.shared.failure(it))?;
        let waits = || Failure::new("its top level waits for something that never comes");
        let exports = value::from_js(&exports.ok_or_else(waits)?).map_err(Failure::new)?;
        let schema = exports.get("schema").filter(|it| !it.is_null()).cloned();
        let name = exports["name"].as_str().map(str::to_owned);
        Ok(Exports { name, inject: exports["inject"].clone(), schema })
    }

    /// Works until nobody can send a message any more.
    pub(super) fn serve(self, inbox: &Receiver<Message>) {
        while !self.shared.stop.load(Ordering::Relaxed) {
            let due = self.shared.timers.borrow().first().map(|it| it.0);
            let message = match due {
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => inbox.recv_timeout(due.saturating_duration_since(Instant::now())),
            };
            match message {
                Ok(message) => self.receive(message),
                Err(RecvTimeoutError::Timeout) => self.fire(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn receive(&self, message: Message) {
        match message {
            Message::Call { function, args, reply } => {
                let call = self.shared.calls.get();
                self.shared.calls.set(call.wrapping_add(1));
                self.shared.replies.borrow_mut().insert(call, reply);
                let args = json!([function, args]);
                if let Err(failure) = self.run("call", call, &args) {
                    self.shared.reply(call, Err(failure));
                }
            }
            Message::Tell { topic, number, value } => {
                if let Err(failure) = self.run(topic, number, &value) {
                    self.shared.complain(failure);
                }
            }
        }
    }

    fn fire(&self) {
        let due = self.shared.timers.borrow_mut().pop_first();
        if let Some((_, timer)) = due
            && let Err(failure) = self.run("timer", timer, &Value::Null)
        {
            self.shared.complain(failure);
        }
    }

    /// One run: the prelude gets a message, and all promises that it settles are followed.
    fn run(&self, topic: &str, number: u32, value: &Value) -> Result<(), Failure> {
        self.shared.arm();
        self.context.with(|ctx| {
            let receive = || -> rquickjs::Result<()> {
                let receive: JsFunction<'_> = ctx.globals().get("__receive")?;
                receive.call((topic, number, value::to_js(&ctx, value)?))
            };
            receive().catch(&ctx).map_err(|it| self.shared.failure(it))
        })?;
        self.settle_jobs()
    }

    fn settle_jobs(&self) -> Result<(), Failure> {
        loop {
            match self.runtime.execute_pending_job() {
                Ok(false) => return Ok(()),
                Ok(true) => {}
                Err(job) => {
                    let failure = job.0.with(|ctx| {
                        let thrown = ctx.catch();
                        Failure::thrown(&thrown, &self.shared.program)
                    });
                    self.shared.give_up(&self.shared.explained(failure));
                }
            }
            if self.shared.must_stop() {
                let failure = self.shared.explained(Failure::new("stopped"));
                self.shared.give_up(&failure);
                return Err(failure);
            }
        }
    }
}

impl Shared {
    fn arm(&self) {
        self.overrun.set(false);
        self.deadline.set(processor_time() + BUDGET);
    }

    fn must_stop(&self) -> bool {
        self.overrun.set(self.overrun.get() || processor_time() > self.deadline.get());
        self.overrun.get() || self.stop.load(Ordering::Relaxed)
    }

    fn failure(&self, caught: rquickjs::CaughtError<'_>) -> Failure {
        self.explained(Failure::caught(caught, &self.program))
    }

    /// What the engine calls `interrupted` has a reason.
    fn explained(&self, failure: Failure) -> Failure {
        let problem = if self.stop.load(Ordering::Relaxed) {
            "the script is being stopped".to_owned()
        } else if self.overrun.get() {
            format!("it ran for more than {} ms without a pause and was stopped", BUDGET.as_millis())
        } else if failure.problem.contains("out of memory") {
            format!("it needed more than {} MiB of memory", MEMORY >> 20)
        } else {
            return failure;
        };
        Failure { problem, ..failure }
    }

    fn reply(&self, call: u32, outcome: Outcome) {
        let reply = self.replies.borrow_mut().remove(&call);
        if let Some(reply) = reply {
            drop(reply.send(outcome));
        }
    }

    /// Nobody can say which calls a broken chain of promises belonged to.
    fn give_up(&self, failure: &Failure) {
        for (_, reply) in self.replies.take() {
            drop(reply.send(Err(failure.clone())));
        }
    }

    fn complain(&self, failure: Failure) {
        let args = vec![failure.to_string().into()];
        self.ask("complain", args, Answer::Later(0));
    }

    fn ask(&self, operation: &str, args: Vec<Value>, answer: Answer) -> bool {
        let request = Request { operation: operation.to_owned(), args, answer };
        self.outbox.blocking_send(request).is_ok()
    }

    /// The functions that the prelude works with; nobody else sees them.
    fn host<'js>(self: &Rc<Self>, ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
        let host = Object::new(ctx.clone())?;
        let shared = self.clone();
        host.set("now", JsFunction::new(ctx.clone(), move |ctx: Ctx<'js>, operation, args| {
            shared.now(&ctx, operation, &args)
        })?)?;
        let shared = self.clone();
        host.set("later", JsFunction::new(ctx.clone(), move |ctx: Ctx<'js>, promise, operation, args| {
            shared.later(&ctx, promise, operation, &args)
        })?)?;
        let shared = self.clone();
        host.set("answer", JsFunction::new(ctx.clone(), move |call, works, value: JsValue<'js>| {
            shared.answer(call, works, &value);
        })?)?;
        let shared = self.clone();
        host.set("timer", JsFunction::new(ctx.clone(), move |timer: u32, ms: f64| {
            let due = Instant::now() + Duration::from_secs_f64(ms.clamp(0.0, 1e12) / 1e3);
            shared.timers.borrow_mut().insert((due, timer));
        })?)?;
        let shared = self.clone();
        host.set("explain", JsFunction::new(ctx.clone(), move |thrown: JsValue<'js>| {
            shared.explained(Failure::thrown(&thrown, &shared.program)).to_string()
        })?)?;
        host.set("log", JsFunction::new(ctx.clone(), log)?)?;
        Ok(host)
    }

    fn now<'js>(
        &self,
        ctx: &Ctx<'js>,
        operation: String,
        args: &JsValue<'js>,
    ) -> rquickjs::Result<JsValue<'js>> {
        let (answer, answered) = mpsc::channel();
        self.request(ctx, &operation, args, Answer::Now(answer))?;
        let outcome = answered.recv().unwrap_or_else(|_| Err("the plugin is not running".into()));
        match outcome {
            Ok(value) => value::to_js(ctx, &value),
            Err(problem) => Err(rquickjs::Exception::throw_message(ctx, &problem)),
        }
    }

    fn later<'js>(
        &self,
        ctx: &Ctx<'js>,
        promise: u32,
        operation: String,
        args: &JsValue<'js>,
    ) -> rquickjs::Result<()> {
        self.request(ctx, &operation, args, Answer::Later(promise))
    }

    fn request<'js>(
        &self,
        ctx: &Ctx<'js>,
        operation: &str,
        args: &JsValue<'js>,
        answer: Answer,
    ) -> rquickjs::Result<()> {
        let args = value::from_js(args);
        let args = match args {
            Ok(Value::Array(args)) => args,
            Ok(_) => Vec::new(),
            Err(problem) => return Err(rquickjs::Exception::throw_type(ctx, &problem)),
        };
        if self.ask(operation, args, answer) {
            return Ok(());
        }
        Err(rquickjs::Exception::throw_message(ctx, "the plugin is not running"))
    }

    fn answer(&self, call: u32, works: bool, value: &JsValue<'_>) {
        let outcome = if works {
            value::from_js(value).map_err(|problem| Failure::new(format!("what it returned: {problem}")))
        } else {
            Err(self.explained(Failure::thrown(value, &self.program)))
        };
        self.reply(call, outcome);
    }
}

fn log(level: String, text: String) {
    match level.as_str() {
        "error" => tracing::error!(target: "nano_cordis::script", "{text}"),
        "warn" => tracing::warn!(target: "nano_cordis::script", "{text}"),
        "debug" => tracing::debug!(target: "nano_cordis::script", "{text}"),
        _ => tracing::info!(target: "nano_cordis::script", "{text}"),
    }
}

fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}
