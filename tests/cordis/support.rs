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

use serde_json::Value;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};

use nano_cordis::cordis::{
    BoxError, Cleanup, Context, Emit, Error, Mount, PluginDef, Report, Undo,
};

pub(crate) use probe::{Label, Probe, define, get, give, read};
pub(crate) use process::alone;

mod probe;
mod process;

/// On the paused clock this passes in no time as soon as every task waits for something that never comes.
const FOREVER: Duration = Duration::from_hours(24);

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

    /// A running plugin that does nothing by itself, and its context, for the test to act in its name.
    pub(crate) async fn host(&self, name: &str) -> (Context, Mount) {
        let kept = Kept::default();
        let mount = self.mount(&define(name, [], kept.context()));
        mount.ready().await.expect("its body cannot fail");
        (kept.last(), mount)
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
pub(crate) async fn at_once(future: impl IntoFuture) -> bool {
    poll_once(&mut Box::pin(future.into_future())).await.is_some()
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

    /// A cleanup that writes `name begin`, waits at the gate, and writes `name end`.
    pub(crate) fn gated(&self, name: &str, gate: &Gate) -> Cleanup {
        let (journal, name, gate) = (self.clone(), name.to_owned(), gate.clone());
        Cleanup::future(async move || {
            journal.push(format!("{name} begin"));
            gate.pass().await;
            journal.push(format!("{name} end"));
            Ok(())
        })
    }
}

/// Where plugin code leaves something for the test, or the test for plugin code.
#[derive(Clone)]
pub(crate) struct Kept<T>(Rc<RefCell<Vec<T>>>);

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept(Rc::default())
    }
}

impl<T: Clone> Kept<T> {
    pub(crate) fn keep(&self, value: T) {
        self.0.borrow_mut().push(value);
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.0.borrow().clone()
    }

    pub(crate) fn last(&self) -> T {
        self.0.borrow().last().cloned().expect("something was kept before")
    }
}

impl Kept<Context> {
    /// A body that only hands out its context, the newest of its runs last.
    pub(crate) fn context(&self) -> impl AsyncFn(Context) -> Result<(), BoxError> + use<> {
        let kept = self.clone();
        async move |ctx| {
            kept.keep(ctx);
            Ok(())
        }
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
        assert_eq!(lines.len(), 1, "one report was expected, not {lines:#?}");
        self.take().remove(0)
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.borrow().iter().map(ToString::to_string).collect()
    }
}

/// An event without content.
pub(crate) struct Ping;

impl Emit for Ping {
    const NAME: &'static str = "test/ping";
}

/// How many listeners a [`Ping`] would reach.
pub(crate) fn listeners(ctx: &Context) -> usize {
    ctx.listener_count(Ping::NAME)
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
