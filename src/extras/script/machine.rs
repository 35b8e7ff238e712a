//! Part of `script`: what runs on the thread of a script, the QuickJS engine and its loop.
//!
//! Watch for: the script is never trusted to end. Each run, from a message to the last promise that it sets off, has a
//! budget of processor time, all of it a limit of memory. What is left of a run that used its budget up is run down; a
//! script that cannot even be run down is not run any more.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::{
        Arc,
        atomic::AtomicBool,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError},
    },
    time::{Duration, Instant},
};

use rquickjs::{
    CatchResultExt, Context, Ctx, Function as JsFunction, Module as JsModule, Promise, Runtime,
    Value as JsValue,
};
use serde_json::json;
use tokio::sync::mpsc as requests;

use super::{
    border::Border,
    engine::{Backlog, Exports, Message, Request, Telling},
    failure::Failure,
    imports::Links,
    moment,
    prelude::{self, BEGINNING},
    program::Program,
    value,
};

/// A script may hold so much memory.
pub(super) const MEMORY: usize = 64 << 20;
/// And so much of the stack of its thread.
const STACK: usize = 512 << 10;
/// A top level may wait for so long: for a timer, say.
const PATIENCE: Duration = Duration::from_secs(2);

/// The engine, its clock, and who waits for what.
pub(super) struct Machine {
    // The context holds values of the runtime, so it goes first.
    context: Context,
    runtime: Runtime,
    border: Rc<Border>,
    /// Why nothing of it is run any more.
    dead: RefCell<Option<Failure>>,
}

impl Machine {
    /// Runs the top level of a script.
    pub(super) fn load(
        program: Arc<Program>,
        stop: Arc<AtomicBool>,
        outbox: requests::Sender<Box<Request>>,
        teller: SyncSender<Box<Telling>>,
    ) -> Result<(Self, Exports), Failure> {
        let broken = |err: rquickjs::Error| Failure::new(format!("no engine: {err}"));
        let runtime = Runtime::new().map_err(broken)?;
        runtime.set_memory_limit(MEMORY);
        runtime.set_max_stack_size(STACK);
        let links = Links::new(program.clone());
        runtime.set_loader(links.clone(), links);
        let border = Rc::new(Border::new(program, stop, outbox, teller));
        let watched = border.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || watched.must_stop())));
        let watched = border.clone();
        runtime.set_host_promise_rejection_tracker(Some(Box::new(
            move |_, promise, reason, handled| {
                watched.note_rejection(&promise, &reason, handled);
            },
        )));
        let context = Context::full(&runtime).map_err(broken)?;
        let machine = Self { context, runtime, border, dead: RefCell::default() };
        let exports = machine.start()?;
        Ok((machine, exports))
    }

    fn start(&self) -> Result<Exports, Failure> {
        let began = Instant::now();
        self.border.arm();
        let program = &self.border.program;
        self.context.with(|ctx| {
            self.evaluate(&ctx, program).catch(&ctx).map_err(|it| self.border.failure(it))
        })?;
        self.settle_jobs()?;
        while self.context.with(|ctx| is_loading(&ctx)) && began.elapsed() < PATIENCE {
            let Some(pause) = self.border.timers.pause() else { break };
            std::thread::park_timeout(pause.min(PATIENCE));
            self.fire()?;
        }
        let exports = self.context.with(|ctx| self.describe(&ctx))?;
        self.border.is_loaded();
        Ok(exports)
    }

    /// Begins to evaluate the prelude and the script. What it comes to is kept in a global until it is asked for.
    fn evaluate(&self, ctx: &Ctx<'_>, program: &Program) -> rquickjs::Result<()> {
        ctx.globals().set("__host", self.border.host(ctx)?)?;
        let entry = json!(program.entry);
        let source = format!("{BEGINNING}; import * as it from {entry}; __loaded(it)");
        prelude::prepare();
        let loading = JsModule::evaluate(ctx.clone(), ENTRY, source)?;
        ctx.globals().set("__loading", loading)
    }

    fn describe(&self, ctx: &Ctx<'_>) -> Result<Exports, Failure> {
        let read = || -> rquickjs::Result<Option<JsValue<'_>>> {
            let loading: Promise<'_> = ctx.globals().get("__loading")?;
            match loading.result::<JsValue<'_>>() {
                None => Ok(None),
                Some(outcome) => outcome.and_then(|_| ctx.globals().get("__exports")).map(Some),
            }
        };
        let exports = read().catch(ctx).map_err(|it| self.border.failure(it))?;
        let waits = || Failure::new("its top level waits for something that never comes");
        let exports = value::from_js(&exports.ok_or_else(waits)?);
        let exports = exports.map_err(|it| Failure::new(format!("what it exports: {it}")))?;
        let schema = exports.get("schema").filter(|it| !it.is_null()).cloned();
        let name = exports["name"].as_str().map(str::to_owned);
        Ok(Exports { name, inject: exports["inject"].clone(), schema })
    }

    /// Works until nobody can send a message any more. Timers and messages take turns, so that neither holds up the other.
    pub(super) fn serve(self, inbox: &Receiver<Box<Message>>, backlog: &Backlog) {
        let mut has_heard = false;
        while !self.border.is_stopped() {
            if let Err(failure) = self.fire() {
                self.border.complain(&failure);
            }
            let pause = self.border.timers.pause().filter(|_| !self.is_dead());
            backlog.set_awake(has_heard);
            let message = if has_heard { at_once(inbox, pause) } else { sometime(inbox, pause) };
            has_heard = message.is_ok();
            match message {
                Ok(message) => self.receive(*message, backlog),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn receive(&self, message: Message, backlog: &Backlog) {
        match message {
            Message::Call { text, reply } => {
                backlog.remove(text.len());
                let call = self.border.expect(reply);
                if let Err(failure) = self.run("call", call, &text) {
                    self.border.reply(call, Err(failure));
                }
            }
            Message::Tell { topic, number, text } => {
                if let Err(failure) = self.run(topic, number, &text)
                    && !self.is_dead()
                {
                    self.border.complain(&failure);
                }
            }
        }
    }

    /// One timer, if one is due.
    fn fire(&self) -> Result<(), Failure> {
        let due = self.border.timers.take_due().filter(|_| !self.is_dead());
        due.map_or(Ok(()), |timer| self.run("timer", timer, "null"))
    }

    /// One run: the prelude gets a message, and all promises that it settles are followed.
    fn run(&self, topic: &str, number: u32, text: &str) -> Result<(), Failure> {
        if let Some(failure) = &*self.dead.borrow() {
            return Err(failure.clone());
        }
        self.border.arm();
        let received = self.context.with(|ctx| {
            let receive = || -> rquickjs::Result<()> {
                let receive: JsFunction<'_> = ctx.globals().get("__receive")?;
                receive.call((topic, number, value::to_js(&ctx, text)?))
            };
            receive().catch(&ctx).map_err(|it| self.border.failure(it))
        });
        let settled = self.settle_jobs();
        self.border.complain_of_rejections();
        received.and(settled)
    }

    fn settle_jobs(&self) -> Result<(), Failure> {
        while !self.border.must_stop_here() {
            match self.runtime.execute_pending_job() {
                Ok(false) => return Ok(()),
                Ok(true) => {}
                Err(job) => {
                    let failure = job.0.with(|ctx| self.border.broken(&ctx.catch()));
                    self.border.give_up(&failure);
                }
            }
        }
        let failure = self.border.explained(Failure::new("it was stopped"));
        self.run_down(&failure);
        self.border.give_up(&failure);
        Err(failure)
    }

    /// What is left of a run finds that it may not go on, as soon as the engine asks whether it may.
    fn run_down(&self, failure: &Failure) {
        let may_go_on = || !self.border.is_stopped() && self.border.has_grace();
        while self.runtime.is_job_pending() && may_go_on() {
            if let Err(job) = self.runtime.execute_pending_job() {
                job.0.with(|ctx| drop(ctx.catch()));
            }
        }
        if !self.runtime.is_job_pending() {
            return;
        }
        let problem =
            format!("{}; it cannot go on, saving its file starts it again", failure.problem);
        self.dead.replace(Some(Failure { problem, ..failure.clone() }));
    }

    fn is_dead(&self) -> bool {
        self.dead.borrow().is_some()
    }
}

/// The name of the few lines that load everything else.
pub(super) const ENTRY: &str = "(entry)";

/// A message that follows the last one closely; it is looked for until a timer is due, at the longest.
fn at_once(
    inbox: &Receiver<Box<Message>>,
    pause: Option<Duration>,
) -> Result<Box<Message>, RecvTimeoutError> {
    let look = || match inbox.try_recv() {
        Ok(message) => Some(Ok(message)),
        Err(TryRecvError::Disconnected) => Some(Err(RecvTimeoutError::Disconnected)),
        Err(TryRecvError::Empty) => None,
    };
    moment::look(pause, look).unwrap_or(Err(RecvTimeoutError::Timeout))
}

/// A message; it is waited for until a timer is due.
fn sometime(
    inbox: &Receiver<Box<Message>>,
    pause: Option<Duration>,
) -> Result<Box<Message>, RecvTimeoutError> {
    match pause {
        Some(pause) => inbox.recv_timeout(pause),
        None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
    }
}

fn is_loading(ctx: &Ctx<'_>) -> bool {
    let loading = ctx.globals().get::<_, Promise<'_>>("__loading");
    loading.is_ok_and(|it| it.result::<JsValue<'_>>().is_none())
}
