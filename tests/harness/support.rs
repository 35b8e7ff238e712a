//! A kernel in a test: plugins mounted by name, a paused clock, and no report that the test does not expect.
//!
//! A test reads `run(async |app| { … })`. A wait that never ends fails at once, since nothing advances the clock but
//! waiting.

use std::{
    cell::RefCell, collections::HashMap, env, path::Path, process::Command, rc::Rc, time::Duration,
};

use nano_cordis::{
    cordis::{Context, Emit, Mount, NoConfig, Outcome, PluginDef, Service, State, Svc, plugin},
    harness::{
        persistence, prompt,
        session::{
            self, Session,
            event::{EventBody, FORMAT, Reason},
            message::{AssistantMessage, Message},
        },
    },
};
use serde_json::{Value, json};
use tokio::{runtime::Builder, task::LocalSet, time::timeout};

/// Runs a test in a kernel of its own, and takes that down in order.
pub(crate) fn run(test: impl AsyncFnOnce(&App)) {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let app = App::new();
        let day = Duration::from_hours(24);
        timeout(day, Box::pin(test(&app))).await.expect("something waits for ever");
        let end = app.ctx.shutdown(day).await;
        assert_eq!((end.hung, end.failures.len()), (vec![], 0));
        assert_eq!(*app.reports.borrow(), [""; 0], "reports that the test did not expect");
    });
}

/// What a test works with.
pub(crate) struct App {
    /// The root.
    pub(crate) ctx: Context,
    reports: Rc<RefCell<Vec<String>>>,
    mounts: RefCell<HashMap<String, Mount>>,
}

impl App {
    fn new() -> Self {
        let reports: Rc<RefCell<Vec<String>>> = Rc::default();
        let seen = Rc::clone(&reports);
        let ctx = Context::root_with(move |report| seen.borrow_mut().push(report.to_string()));
        Self { ctx, reports, mounts: RefCell::default() }
    }

    /// Mounts a built-in plugin, which must start.
    pub(crate) async fn mount(&self, name: &str, config: Value) -> Mount {
        self.mount_as(name, &builtin(name), config).await
    }

    /// Mounts any plugin, which must start.
    pub(crate) async fn mount_as(&self, name: &str, def: &PluginDef, config: Value) -> Mount {
        let mount = self.ctx.plugin_named(name, def, config).unwrap();
        assert_eq!(
            mount.ready().await.unwrap(),
            State::Active,
            "{name} waits for {:?}",
            mount.missing()
        );
        self.mounts.borrow_mut().insert(name.into(), mount.clone());
        mount
    }

    /// Unloads a plugin that was mounted.
    pub(crate) async fn unmount(&self, name: &str) {
        let mount = self.mounts.borrow_mut().remove(name).expect("it was mounted");
        mount.dispose().await;
    }

    /// A plugin that does nothing, and a service as it sees it: what is registered through it goes with the plugin.
    pub(crate) async fn caller<S: Service + ?Sized>(&self, name: &str) -> Svc<S> {
        let view: Rc<RefCell<Option<Svc<S>>>> = Rc::default();
        let seen = Rc::clone(&view);
        let body = move |_: Context, _: NoConfig, service: Svc<S>| {
            seen.replace(Some(service));
            async { Ok::<_, nano_cordis::cordis::BoxError>(()) }
        };
        self.mount_as(name, &plugin(body), json!({})).await;
        view.take().expect("the plugin is active")
    }

    /// A service as the root sees it.
    pub(crate) fn service<S: Service + ?Sized>(&self) -> Svc<S> {
        self.ctx.get().expect("its provider is mounted")
    }

    /// What `note` makes of each event of a kind, in order.
    pub(crate) fn record<E: Emit, T: 'static>(
        &self,
        note: impl Fn(&E) -> T + 'static,
    ) -> Rc<RefCell<Vec<T>>> {
        let notes: Rc<RefCell<Vec<T>>> = Rc::default();
        let seen = Rc::clone(&notes);
        self.on(move |_: &Context, event: &E| seen.borrow_mut().push(note(event)));
        notes
    }

    /// A listener that lasts as long as the test.
    pub(crate) fn on<E: Emit, O: Outcome>(&self, listener: impl Fn(&Context, &E) -> O + 'static) {
        self.ctx.on(listener).unwrap();
    }

    /// Takes the reports so far, of which there must be one.
    pub(crate) fn take_report(&self) -> String {
        let mut reports = self.reports.take();
        assert_eq!(reports.len(), 1, "{reports:?}");
        reports.remove(0)
    }
}

/// A plugin of this crate by the name it has in YAML.
pub(crate) fn builtin(name: &str) -> PluginDef {
    match name {
        "session" => plugin(session::apply),
        "prompt" => plugin(prompt::apply),
        "persistence" => plugin(persistence::apply),
        _ => unreachable!("no plugin `{name}`"),
    }
}

/// A folder that goes with the test, and its path.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Runs `child` in a process of its own, after a line of shell, and gives the folder it worked in. That process is this
/// test program again, told to run the same test; there it does the work of the child, and gives nothing.
pub(crate) fn in_process(
    shell: &str,
    test: &str,
    child: impl FnOnce(&Path),
) -> Option<tempfile::TempDir> {
    if let Some(dir) = env::var_os("NANO_TEST_DIR") {
        child(Path::new(&dir));
        return None;
    }
    let folder = folder();
    let script = format!("{shell}; exec \"$0\" --exact {test} --nocapture");
    let output = Command::new("sh")
        .arg("-c")
        .arg(script)
        .arg(env::current_exe().unwrap())
        .env("NANO_TEST_DIR", folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
    Some(folder)
}

/// Logs a turn in which the user says something and is answered.
pub(crate) fn talk(session: &Rc<Session>, text: &str, answer: &str) {
    let turn = session.turns() + 1;
    let answer = AssistantMessage { content: Some(answer.into()), ..Default::default() };
    turn_of(session, text, vec![answered(turn, 1, answer)]);
}

/// Logs a turn of one step, with these events after what the user says.
pub(crate) fn turn_of(session: &Rc<Session>, text: &str, events: Vec<EventBody>) {
    let (turn, step) = (session.turns() + 1, 1);
    let mut bodies = vec![
        EventBody::TurnStart { turn, format: FORMAT, cwd: String::new() },
        EventBody::StepStart { turn, step },
        EventBody::UserMessage { turn, step, message: Message::user(text) },
    ];
    bodies.extend(events);
    bodies.push(EventBody::StepEnd { turn, step });
    bodies.push(EventBody::TurnEnd { turn, reason: Reason::Completed, error: None });
    for body in bodies {
        session.append(body).unwrap();
    }
}

/// The event of an answer of the model.
pub(crate) fn answered(turn: u32, step: u32, message: AssistantMessage) -> EventBody {
    let (usage, finish_reason, request_hash, interrupted) = (None, None, None, false);
    EventBody::AssistantMessage {
        turn,
        step,
        message: message.into(),
        usage,
        finish_reason,
        request_hash,
        interrupted,
    }
}
