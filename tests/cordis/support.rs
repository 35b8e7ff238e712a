//! What the kernel's tests share: a runner with a paused clock, a journal, gates, a strict recorder of reports, probes.
//!
//! A test reads `kernel(async |test| { … })`. Nothing in it sleeps for real: the clock jumps when nothing else can
//! move. A test that would hang fails instead, and so does one that leaves a report it did not take.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};

use nano_cordis::cordis::{
    BoxError, Cleanup, Context, Emit, Error, Mount, PluginDef, Report, Undo,
};

/// On the paused clock this passes in no time as soon as every task waits for something that never comes.
const FOREVER: Duration = Duration::from_secs(24 * 60 * 60);

/// Runs a test on one thread, with a paused clock and a fresh root context.
pub(crate) fn kernel(test: impl AsyncFnOnce(Test)) {
    let runtime =
        Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let reports = Reports::default();
        let root = Context::root_with(reports.recorder());
        let running =
            Box::pin(test(Test { root, journal: Journal::default(), reports: reports.clone() }));
        timeout(FOREVER, running).await.expect("something waits for ever");
        assert!(
            reports.lines().is_empty(),
            "reports that the test did not take: {:#?}",
            reports.lines()
        );
    });
}

/// What a test starts with.
pub(crate) struct Test {
    pub(crate) root: Context,
    pub(crate) journal: Journal,
    pub(crate) reports: Reports,
}

impl Test {
    /// Mounts on the root, without config.
    pub(crate) fn mount(&self, def: &PluginDef) -> Mount {
        self.root.plugin(def, Value::Null).expect("the root accepts plugins until it is shut down")
    }

    /// A probe that writes into this test's journal.
    pub(crate) fn probe(&self, name: &str) -> Probe {
        Probe::new(name, &self.journal)
    }
}

/// Waits until everything that can move without the clock has moved.
pub(crate) async fn rest() {
    sleep(Duration::from_millis(1)).await;
}

/// Lets time pass.
pub(crate) async fn pass(milliseconds: u64) {
    sleep(Duration::from_millis(milliseconds)).await;
}

/// Polls a future once: its output if it had nothing to wait for.
pub(crate) async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    poll_fn(|task| match Pin::new(&mut *future).poll(task) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Whether a future is done at its first poll.
pub(crate) async fn at_once(future: impl Future) -> bool {
    poll_once(&mut Box::pin(future)).await.is_some()
}

/// A list of lines that plugins append to.
#[derive(Clone, Default)]
pub(crate) struct Journal(Rc<RefCell<Vec<String>>>);

impl Journal {
    pub(crate) fn push(&self, line: impl Into<String>) {
        self.0.borrow_mut().push(line.into());
    }

    /// All lines since the last `take`.
    pub(crate) fn take(&self) -> Vec<String> {
        self.0.take()
    }

    /// All lines, which stay.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.borrow().clone()
    }

    /// How often a line is there.
    pub(crate) fn count(&self, line: &str) -> usize {
        self.0.borrow().iter().filter(|it| *it == line).count()
    }

    /// A synchronous cleanup that writes one line.
    pub(crate) fn line(&self, line: &str) -> impl FnOnce() + use<> {
        let (journal, line) = (self.clone(), line.to_owned());
        move || journal.push(line)
    }
}

/// A gate that plugin code waits at.
#[derive(Clone)]
pub(crate) struct Gate(Rc<GateState>);

struct GateState {
    open: watch::Sender<bool>,
    arrived: Cell<usize>,
    opens_at: usize,
}

impl Gate {
    /// A gate that the test opens.
    pub(crate) fn shut() -> Gate {
        Gate::of(usize::MAX)
    }

    /// A barrier: it opens when so many wait at it.
    pub(crate) fn of(opens_at: usize) -> Gate {
        Gate(Rc::new(GateState {
            open: watch::Sender::new(false),
            arrived: Cell::new(0),
            opens_at,
        }))
    }

    pub(crate) fn open(&self) {
        self.0.open.send_replace(true);
    }

    /// Shuts it again, for whoever comes next.
    pub(crate) fn close(&self) {
        self.0.open.send_replace(false);
    }

    /// How many have come to the gate so far.
    pub(crate) fn arrived(&self) -> usize {
        self.0.arrived.get()
    }

    pub(crate) async fn pass(&self) {
        self.0.arrived.set(self.0.arrived.get() + 1);
        if self.0.arrived.get() >= self.0.opens_at {
            self.open();
        }
        let mut open = self.0.open.subscribe();
        open.wait_for(|open| *open).await.expect("the sender lives as long as the gate");
    }
}

/// The reports of a kernel. Strict: a report that is not taken fails the test.
#[derive(Clone, Default)]
pub(crate) struct Reports(Rc<RefCell<Vec<Report>>>);

impl Reports {
    /// What `Context::root_with` wants.
    pub(crate) fn recorder(&self) -> impl Fn(&Report) + use<> {
        let reports = self.clone();
        move |report| reports.0.borrow_mut().push(report.clone())
    }

    /// All reports since the last `take`.
    pub(crate) fn take(&self) -> Vec<Report> {
        self.0.take()
    }

    /// The only report since the last `take`.
    pub(crate) fn take_one(&self) -> Report {
        let lines = self.lines();
        let only: Result<[Report; 1], _> = self.take().try_into();
        let [report] = only.unwrap_or_else(|_| panic!("one report was expected, not {lines:#?}"));
        report
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.borrow().iter().map(ToString::to_string).collect()
    }
}

/// The service behind every name that a probe gives; it says who provided it.
pub(crate) struct Label(pub(crate) String);

/// Provides a [`Label`] under a name.
pub(crate) fn give(ctx: &Context, name: &str, label: &str) -> Result<Undo, Error> {
    ctx.provide_named(name, Rc::new(Label(label.to_owned())))
}

/// The checked read of a [`Label`].
pub(crate) fn read(ctx: &Context, name: &str) -> Result<String, Error> {
    Ok(ctx.service_named::<Label>(name)?.0.clone())
}

/// The optional read of a [`Label`].
pub(crate) fn get(ctx: &Context, name: &str) -> Option<String> {
    Some(ctx.get_named::<Label>(name)?.0.clone())
}

/// An event without content.
pub(crate) struct Ping;

impl Emit for Ping {
    const NAME: &'static str = "test/ping";
}

/// Writes one line at each [`Ping`].
pub(crate) fn hear(ctx: &Context, journal: &Journal, line: &str) -> Result<Undo, Error> {
    let (journal, line) = (journal.clone(), line.to_owned());
    ctx.on(move |_: &Context, _: &Ping| journal.push(line.clone()))
}

/// Writes the state a plugin is in, and each that follows.
pub(crate) fn states(mount: &Mount) -> Journal {
    let journal = Journal::default();
    journal.push(mount.state().to_string());
    let seen = journal.clone();
    mount.observe(move |state| seen.push(state.to_string()));
    journal
}

/// A plugin that needs services by name and does what its body says.
pub(crate) fn define<const N: usize>(
    name: &str,
    needs: [&str; N],
    body: impl AsyncFn(Context) -> Result<(), BoxError> + 'static,
) -> PluginDef {
    let body = Rc::new(body);
    PluginDef::dynamic(name, &json!(needs.to_vec()), None, move |ctx, _config| {
        let body = body.clone();
        Box::pin(async move { body(ctx).await.map(|()| None) })
    })
}

/// A plugin for tests: says when it starts and stops, needs and gives labels, waits at gates, fails on request.
///
/// It writes `name start` first thing in its body and `name stop` in its cleanup. A cleanup that takes time writes
/// `name stopping` before and `name stop` after. It registers the cleanup first, so that it is the last to be undone.
#[derive(Clone)]
pub(crate) struct Probe {
    name: String,
    journal: Journal,
    needs: Vec<String>,
    gives: Vec<String>,
    label: String,
    body_gate: Option<Gate>,
    cleanup_gate: Option<Gate>,
    cleanup_delay: Duration,
    failure: Option<String>,
}

impl Probe {
    pub(crate) fn new(name: &str, journal: &Journal) -> Probe {
        Probe {
            name: name.to_owned(),
            journal: journal.clone(),
            needs: Vec::new(),
            gives: Vec::new(),
            label: name.to_owned(),
            body_gate: None,
            cleanup_gate: None,
            cleanup_delay: Duration::ZERO,
            failure: None,
        }
    }

    pub(crate) fn needs(mut self, service: &str) -> Probe {
        self.needs.push(service.to_owned());
        self
    }

    /// Provides a label under this name, from the start of its body on.
    pub(crate) fn gives(mut self, service: &str) -> Probe {
        self.gives.push(service.to_owned());
        self
    }

    /// What its labels say, its own name without this.
    pub(crate) fn label(mut self, label: &str) -> Probe {
        label.clone_into(&mut self.label);
        self
    }

    /// After everything is registered its body waits here.
    pub(crate) fn body_gate(mut self, gate: &Gate) -> Probe {
        self.body_gate = Some(gate.clone());
        self
    }

    pub(crate) fn cleanup_gate(mut self, gate: &Gate) -> Probe {
        self.cleanup_gate = Some(gate.clone());
        self
    }

    pub(crate) fn cleanup_delay(mut self, milliseconds: u64) -> Probe {
        self.cleanup_delay = Duration::from_millis(milliseconds);
        self
    }

    /// Its body ends with this error.
    pub(crate) fn fails(mut self, message: &str) -> Probe {
        self.failure = Some(message.to_owned());
        self
    }

    pub(crate) fn def(self) -> PluginDef {
        let needs = json!(self.needs);
        let name = self.name.clone();
        PluginDef::dynamic(&name, &needs, None, move |ctx, _config| {
            Box::pin(self.clone().start(ctx))
        })
    }

    pub(crate) fn mount(self, ctx: &Context) -> Mount {
        ctx.plugin(&self.def(), Value::Null).expect("the context of a running plugin")
    }

    async fn start(self, ctx: Context) -> Result<Option<Cleanup>, BoxError> {
        self.journal.push(format!("{} start", self.name));
        let cleanup = self.clone();
        ctx.effect(move || cleanup.cleanup())?;
        for service in &self.gives {
            give(&ctx, service, &self.label)?;
        }
        if let Some(gate) = &self.body_gate {
            gate.pass().await;
        }
        match self.failure {
            Some(message) => Err(message.into()),
            None => Ok(None),
        }
    }

    fn cleanup(self) -> Cleanup {
        match self.cleanup_gate.is_some() || !self.cleanup_delay.is_zero() {
            true => Cleanup::future(async move || self.stop_slowly().await),
            false => Cleanup::sync(move || self.journal.push(format!("{} stop", self.name))),
        }
    }

    async fn stop_slowly(self) {
        self.journal.push(format!("{} stopping", self.name));
        sleep(self.cleanup_delay).await;
        if let Some(gate) = &self.cleanup_gate {
            gate.pass().await;
        }
        self.journal.push(format!("{} stop", self.name));
    }
}
