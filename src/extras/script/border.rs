//! Part of `script`: the agent as seen from the thread of a script: what the script asks for goes out here, and what it
//! answers. Also how long it may run.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use rquickjs::{
    CaughtError, Ctx, Exception, Function, Object, Result, Value,
    function::{Opt, Rest},
};
use tokio::sync::{mpsc as requests, oneshot};

use super::{
    engine::{Answer, Outcome, Request, Telling},
    failure::{Failure, Place},
    machine::MEMORY,
    moment, prelude,
    program::Program,
    timers::{Timers, processor_time},
    value,
};
use crate::cordis::{Panic, guarded};

/// One run may take so much processor time.
const BUDGET: Duration = Duration::from_secs(1);
/// And what is left of it then so much.
const GRACE: Duration = Duration::from_millis(250);
/// The clock is looked at once in so many steps: that costs more than most steps do.
const STEPS: u32 = 16;
/// More than so many complaints about one run say nothing new.
const COMPLAINTS: usize = 5;

/// What the functions that a script sees work with.
pub(super) struct Border {
    pub(super) program: Arc<Program>,
    pub(super) timers: Timers,
    stop: Arc<AtomicBool>,
    pub(super) outbox: requests::Sender<Box<Request>>,
    /// Where it is heard while it is loaded.
    pub(super) teller: mpsc::SyncSender<Box<Telling>>,
    /// While it is loaded the agent waits for the script, so the script cannot wait for the agent.
    pub(super) loading: Cell<bool>,
    /// The processor time at which the run has used up its budget.
    deadline: Cell<Duration>,
    overrun: Cell<bool>,
    /// Where it was then, once that is known.
    stopped_at: RefCell<Option<Place>>,
    steps: Cell<u32>,
    replies: RefCell<HashMap<u32, oneshot::Sender<Outcome>>>,
    calls: Cell<u32>,
    /// Promises that failed and that nobody has asked yet.
    rejections: RefCell<HashMap<u64, Failure>>,
}

impl Border {
    pub(super) fn new(
        program: Arc<Program>,
        stop: Arc<AtomicBool>,
        outbox: requests::Sender<Box<Request>>,
        teller: mpsc::SyncSender<Box<Telling>>,
    ) -> Self {
        Self {
            program,
            timers: Timers::default(),
            stop,
            outbox,
            teller,
            loading: Cell::new(true),
            deadline: Cell::default(),
            overrun: Cell::default(),
            stopped_at: RefCell::default(),
            steps: Cell::default(),
            replies: RefCell::default(),
            calls: Cell::default(),
            rejections: RefCell::default(),
        }
    }

    pub(super) fn is_loaded(&self) {
        self.loading.set(false);
        self.complain_of_rejections();
    }

    /// A run begins.
    pub(super) fn arm(&self) {
        self.overrun.set(false);
        self.stopped_at.take();
        self.deadline.set(processor_time() + BUDGET);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether the run must end now.
    pub(super) fn must_stop(&self) -> bool {
        self.overrun.set(self.overrun.get() || processor_time() > self.deadline.get());
        self.overrun.get() || self.is_stopped()
    }

    /// The same, between two small steps.
    pub(super) fn must_stop_here(&self) -> bool {
        self.steps.set(self.steps.get().wrapping_add(1));
        let is_due = self.steps.get().is_multiple_of(STEPS);
        if is_due { self.must_stop() } else { self.overrun.get() || self.is_stopped() }
    }

    /// Whether what is left of a run may still be run down.
    pub(super) fn has_grace(&self) -> bool {
        processor_time() < self.deadline.get() + GRACE
    }

    pub(super) fn failure(&self, caught: CaughtError<'_>) -> Failure {
        self.explained(Failure::caught(caught, &self.program))
    }

    pub(super) fn thrown(&self, value: &Value<'_>) -> Failure {
        self.explained(Failure::thrown(value, &self.program))
    }

    /// What ended a job of the engine, which no code of the script can: a job passes on what that throws. Without memory for
    /// an error there is none.
    pub(super) fn broken(&self, value: &Value<'_>) -> Failure {
        if value.is_null() {
            return self.explained(Failure::new("out of memory"));
        }
        self.thrown(value)
    }

    /// What the engine calls `interrupted` has a reason.
    pub(super) fn explained(&self, mut failure: Failure) -> Failure {
        let problem = if self.is_stopped() {
            "the script is being stopped".to_owned()
        } else if self.overrun.get() {
            let mut stopped_at = self.stopped_at.borrow_mut();
            failure.place = stopped_at.take().or(failure.place);
            stopped_at.clone_from(&failure.place);
            format!(
                "it ran for more than {} ms without a pause and was stopped",
                BUDGET.as_millis()
            )
        } else if failure.problem.contains("out of memory") {
            format!("it needed more than {} MiB of memory", MEMORY >> 20)
        } else {
            return failure;
        };
        Failure { problem, ..failure }
    }

    /// A call that will be answered, under its number.
    pub(super) fn expect(&self, reply: oneshot::Sender<Outcome>) -> u32 {
        let call = self.calls.get();
        self.calls.set(call.wrapping_add(1));
        self.replies.borrow_mut().insert(call, reply);
        call
    }

    pub(super) fn reply(&self, call: u32, outcome: Outcome) {
        let reply = self.replies.borrow_mut().remove(&call);
        if let Some(reply) = reply {
            // Whoever called may have given up.
            drop(reply.send(outcome));
        }
    }

    /// Nobody can say which calls a broken chain of promises belonged to.
    pub(super) fn give_up(&self, failure: &Failure) {
        for (_, reply) in self.replies.take() {
            drop(reply.send(Err(failure.clone())));
        }
    }

    pub(super) fn note_rejection(&self, promise: &Value<'_>, reason: &Value<'_>, is_handled: bool) {
        let key = BuildHasherDefault::<DefaultHasher>::default().hash_one(promise);
        if is_handled {
            self.rejections.borrow_mut().remove(&key);
        } else {
            let failure = self.thrown(reason);
            self.rejections.borrow_mut().insert(key, failure);
        }
    }

    /// Once a run is over nobody can ask any more, as a rule. While a script is loaded, its loading tells.
    pub(super) fn complain_of_rejections(&self) {
        if self.loading.get() {
            return;
        }
        for (_, failure) in self.rejections.take().into_iter().take(COMPLAINTS) {
            let problem = format!("a promise failed and nobody asked: {}", failure.problem);
            self.complain(&Failure { problem, ..failure });
        }
    }

    /// Says what went wrong when nobody is there to be told.
    pub(super) fn complain(&self, failure: &Failure) {
        let args = vec![failure.to_string().into()];
        let request = Request { operation: "complain".to_owned(), args, answer: Answer::Later(0) };
        // If the agent is so far behind, it has been told enough.
        drop(self.outbox.try_send(Box::new(request)));
    }

    /// The functions that the prelude works with; nobody else sees them.
    pub(super) fn host<'js>(self: &Rc<Self>, ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let host = Object::new(ctx.clone())?;
        let border = self.clone();
        let now = move |ctx: Ctx<'js>, operation, args: Rest<Value<'js>>| {
            border.now(&ctx, operation, &args)
        };
        host.set("now", Function::new(ctx.clone(), now)?)?;
        let border = self.clone();
        let later = move |ctx: Ctx<'js>, promise, operation, args: Rest<Value<'js>>| {
            border.request(&ctx, operation, &args, Answer::Later(promise))
        };
        host.set("later", Function::new(ctx.clone(), later)?)?;
        let border = self.clone();
        let answer = move |call, works, value: Value<'js>, from: Opt<Value<'js>>| {
            border.answer(call, works, &value, from.0.as_ref());
        };
        host.set("answer", Function::new(ctx.clone(), answer)?)?;
        let border = self.clone();
        let timer = move |ctx: Ctx<'js>, timer: u32, ms: f64| {
            border.timers.set(timer, ms).map_err(|problem| Exception::throw_range(&ctx, &problem))
        };
        host.set("timer", Function::new(ctx.clone(), timer)?)?;
        let border = self.clone();
        let clear = move |timer: u32| border.timers.clear(timer);
        host.set("clear", Function::new(ctx.clone(), clear)?)?;
        let border = self.clone();
        let trace = move |stack: String| border.program.trace(&stack);
        host.set("trace", Function::new(ctx.clone(), trace)?)?;
        let border = self.clone();
        let explain = move |thrown: Value<'js>| border.thrown(&thrown).to_string();
        host.set("explain", Function::new(ctx.clone(), explain)?)?;
        let border = self.clone();
        let part = move |ctx: Ctx<'js>, name: String| prelude::part(&border, &ctx, &name);
        host.set("part", Function::new(ctx.clone(), part)?)?;
        let border = self.clone();
        let log = move |level: String, text: String| border.print(level, text);
        host.set("log", Function::new(ctx.clone(), log)?)?;
        Ok(host)
    }

    fn now<'js>(
        &self,
        ctx: &Ctx<'js>,
        operation: String,
        args: &[Value<'js>],
    ) -> Result<Value<'js>> {
        let (answer, answered) = mpsc::channel();
        self.request(ctx, operation, args, Answer::Now(answer))?;
        let outcome = moment::look(None, || answered.try_recv().ok())
            .or_else(|| answered.recv().ok())
            .unwrap_or_else(|| Err("the plugin is not running".into()));
        match outcome {
            Ok(value) => value::to_js(ctx, &value.to_string()),
            Err(problem) => Err(Exception::throw_message(ctx, &problem)),
        }
    }

    fn request<'js>(
        &self,
        ctx: &Ctx<'js>,
        operation: String,
        args: &[Value<'js>],
        answer: Answer,
    ) -> Result<()> {
        if self.loading.get() {
            let problem = "the plugin does not run yet: what it does, it does in `apply`";
            return Err(Exception::throw_message(ctx, problem));
        }
        let args = value::list_from_js(args).map_err(|it| Exception::throw_type(ctx, &it))?;
        let request = Request { operation, args, answer };
        let sent = self.outbox.blocking_send(Box::new(request));
        sent.map_err(|_| Exception::throw_message(ctx, "the plugin is not running"))
    }

    /// `from` is an error that was made where the function was handed over: it tells the place if nothing else does.
    fn answer(&self, call: u32, works: bool, value: &Value<'_>, from: Option<&Value<'_>>) {
        let of_value = |it| self.explained(Failure::new(format!("what it returned: {it}")));
        let read = || {
            if works { value::from_js(value).map_err(of_value) } else { Err(self.thrown(value)) }
        };
        // Whatever happens, whoever called is answered.
        let broke = |panic: Panic| Err(Failure::new(panic.to_string()));
        let place = || from.and_then(|it| Failure::thrown(it, &self.program).place);
        let placed = |it: Failure| Failure { place: it.place.clone().or_else(place), ..it };
        self.reply(call, guarded(read).unwrap_or_else(broke).map_err(placed));
    }
}
