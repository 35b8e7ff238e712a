//! One run of the program: root context, loader, signals, exit status.
//!
//! Provides `console` and `env` on the root context; emits `console/signal`; listens to `cordis/notice`.
//! Full-size counterpart: the launchers of the applications.
//! Watch for: it knows the loader and the console, and nothing of agents. Whether there is a conversation is decided by
//! the list of plugins.

use std::convert::Infallible;
use std::error::Error as _;
use std::future::pending;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal as Listener, SignalKind, signal};
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::cordis::loader::{self, Loader, LoaderOptions, Notice, Standing};
use crate::cordis::module::{Builtins, ModuleKey, ModuleSource};
use crate::cordis::{Context, Mount, PluginDef, Report, Service, State, What};
use crate::harness::cli::arguments::{Arguments, Refused};
use crate::harness::cli::console::{Console, Entered, Signal};
use crate::harness::env::Env;

/// The list of plugins where no file gives one.
const BUILT_IN: &str = include_str!("../cordis.yml");
const FILE: &str = "cordis.yml";
/// The plugin that notices saves.
const WATCHER: &str = "hmr";

const MISUSED: u8 = 2;
/// 128 and the number of the signal.
const HANGUP: u8 = 129;
const INTERRUPTED: u8 = 130;
const TERMINATED: u8 = 143;

/// A turn that is asked to stop has so long to close its log, and plugins so long to stop.
const LAST_WORDS: Duration = Duration::from_secs(4);
const GRACE: Duration = Duration::from_secs(5);
/// A plugin that starts for so long is named; a one-shot waits three times that, then gives up.
const SLOW_START: Duration = Duration::from_secs(10);
const PATIENCE: u32 = 3;

/// Runs the program with these plugins to choose from, and gives its exit status.
pub fn run(builtins: Builtins) -> ExitCode {
    let arguments = match Arguments::read(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(Refused::Asked(text)) => return printed(io::stdout(), &text, 0),
        Err(Refused::Usage(text)) => return printed(io::stderr(), &format!("nano-cordis: {text}\n"), MISUSED),
    };
    hide_memory();
    trace(arguments.verbose);
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(err) => return printed(io::stderr(), &format!("nano-cordis: cannot start: {err}\n"), 1),
    };
    let status = LocalSet::new().block_on(&runtime, Program::run(arguments, builtins));
    // Work on other threads, such as a name being looked up, is not waited for.
    runtime.shutdown_background();
    ExitCode::from(status)
}

fn printed(mut stream: impl Write, text: &str, status: u8) -> ExitCode {
    // A reader that has gone wanted no more of it.
    let _closed = stream.write_all(text.as_bytes());
    ExitCode::from(status)
}

/// A child of ours, which runs as the same user, must not read the key out of this process.
fn hide_memory() {
    // Debug builds can be looked into, or no debugger could attach.
    #[cfg(all(target_os = "linux", not(debug_assertions)))]
    drop(nix::sys::prctl::set_dumpable(false));
}

fn trace(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let only_ours = Targets::new().with_target(env!("CARGO_CRATE_NAME"), level);
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(false).without_time();
    tracing_subscriber::registry().with(only_ours).with(lines).init();
}

struct Program {
    root: Context,
    console: Rc<Console>,
}

impl Program {
    async fn run(arguments: Arguments, builtins: Builtins) -> u8 {
        let signals = Signals::listen();
        let env = Rc::new(Env::process());
        let console = Rc::new(Console::new(arguments, env.get("TERM").as_deref()));
        let options = options(console.arguments(), builtins, env.clone());
        let program = Program { root: root(&console, env), console };
        let status = program.serve(signals, options).await;
        let left = program.root.shutdown(GRACE).await;
        left.hung.iter().for_each(|it| program.console.warn(&format!("{it} did not stop within {} s", GRACE.as_secs())));
        program.console.close();
        status
    }

    async fn serve(&self, mut signals: Signals, options: LoaderOptions) -> u8 {
        let stop = tokio::select! {
            biased;
            status = self.console.finished() => return status,
            status = self.console.stop_requested() => status,
            never = self.pass_on(&mut signals) => match never {},
            never = self.lead(options) => match never {},
        };
        self.root.emit(&Signal::Stop);
        if self.console.is_led() {
            tokio::select! {
                _ = self.console.finished() => {}
                () = sleep(LAST_WORDS) => {}
                _impatient = signals.next() => {}
            }
        }
        stop
    }

    async fn pass_on(&self, signals: &mut Signals) -> Infallible {
        loop {
            match signals.next().await {
                INTERRUPTED if self.console.is_led() => self.root.emit(&Signal::Interrupt),
                INTERRUPTED => self.console.finish(INTERRUPTED),
                status => self.console.request_stop(status),
            }
        }
    }
}

/// From the list of plugins to a conversation.
impl Program {
    async fn lead(&self, options: LoaderOptions) -> Infallible {
        let loader = self.root.plugin(&loader::plugin(options), Value::Null).expect("the root context is active");
        if let Err(problem) = self.started(&loader).await {
            return self.refuse(&problem).await;
        }
        let Some(loader) = self.root.get::<Loader>() else { return self.refuse("the loader has gone").await };
        let problem = loader.problem().or_else(|| self.is_leaderless());
        match &problem {
            Some(problem) if self.must_be_whole(&loader) => return self.refuse(problem).await,
            Some(problem) => self.console.warn(problem),
            None => {}
        }
        self.console.open();
        self.stand_in(&loader, problem.is_some()).await
    }

    /// Waits until every entry is at rest. Who is slow is named.
    async fn started(&self, loader: &Mount) -> Result<(), String> {
        let mut ready = std::pin::pin!(loader.ready());
        for waited in 1.. {
            match timeout(SLOW_START, &mut ready).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(err)) => return Err(err.source().map_or_else(|| err.to_string(), ToString::to_string)),
                Err(_) if waited >= PATIENCE && self.console.arguments().is_one_shot() => {
                    return Err(format!("still starting after {} s: {}", 30, self.starting()));
                }
                Err(_) => self.console.warn(&format!("still starting: {}", self.starting())),
            }
        }
        unreachable!("the loop above has no end")
    }

    fn starting(&self) -> String {
        let fibers = self.root.fibers().into_iter().filter(|it| it.state == State::Loading && it.name != Loader::NAME);
        fibers.map(|it| it.name).collect::<Vec<_>>().join(", ")
    }

    /// Only a person at a terminal can mend the list, and only if a save of it is noticed.
    fn must_be_whole(&self, loader: &Loader) -> bool {
        self.console.arguments().is_one_shot() || !self.console.is_terminal() || !notices_saves(loader)
    }

    fn is_leaderless(&self) -> Option<String> {
        (!self.console.is_led()).then(|| "no entry leads a conversation; `name: cli` does".into())
    }

    async fn refuse(&self, problem: &str) -> Infallible {
        self.console.fail(MISUSED, problem);
        pending().await
    }

    /// While no plugin leads the conversation, somebody has to hear Ctrl-C and the end of input.
    async fn stand_in(&self, loader: &Loader, mut is_known: bool) -> Infallible {
        loop {
            self.console.until_led(false).await;
            drop(loader.applied().await);
            let Some(problem) = self.is_leaderless() else { continue };
            match is_known {
                _ if !notices_saves(loader) => return self.refuse(&problem).await,
                true => is_known = false,
                false => self.console.warn(&loader.problem().unwrap_or(problem)),
            }
            tokio::select! {
                () = self.console.until_led(true) => {}
                entered = self.console.unattended(), if self.console.is_terminal() => {
                    self.console.finish(if entered == Entered::Interrupt { INTERRUPTED } else { MISUSED });
                    pending().await
                }
            }
        }
    }
}

fn notices_saves(loader: &Loader) -> bool {
    let is_watcher = |name: &str| name == WATCHER || name.ends_with("/hmr.ts");
    loader.entries().iter().any(|it| is_watcher(&it.name) && it.standing == Standing::Mounted(State::Active))
}

fn root(console: &Rc<Console>, env: Rc<Env>) -> Context {
    let sink = console.clone();
    let root = Context::root_with(move |report| {
        if !is_fault_of_list(report) {
            sink.report(report);
        }
    });
    let sink = console.clone();
    let prepared = root
        .provide(console.clone())
        .and_then(|_| root.provide(env))
        .and_then(|_| root.on(move |_, Notice(line): &Notice| sink.notice(line)));
    prepared.expect("a new root context is active and has no services");
    root
}

/// What the loader refuses ends the program with the same words, or is said by the loader itself.
fn is_fault_of_list(report: &Report) -> bool {
    report.plugin == Loader::NAME && report.what == What::BodyFailed
}

fn options(arguments: &Arguments, builtins: Builtins, env: Rc<Env>) -> LoaderOptions {
    LoaderOptions {
        file: arguments.config.clone().or_else(file_here),
        text: BUILT_IN,
        modules: Rc::new(if arguments.is_one_shot() { without_watcher(builtins) } else { builtins }),
        env: Rc::new(move |name| env.get(name)),
        set: arguments.set.clone(),
        disable: arguments.disable.clone(),
    }
}

/// A one-shot ends with the plugins that it began with: instead of the watcher there is a plugin that does nothing.
fn without_watcher(builtins: Builtins) -> Builtins {
    let schema = builtins.load(&ModuleKey(WATCHER.into())).ok().and_then(|it| it.schema().cloned());
    let idle = PluginDef::dynamic(WATCHER, &json!([]), schema, |_, _| Box::pin(async { Ok(None) }));
    builtins.with(WATCHER, idle.expect("the schema of a plugin is one, and an empty list names no service twice"))
}

/// A file that is there but cannot be read is an error, and never a reason to fall back.
fn file_here() -> Option<PathBuf> {
    let found = Path::new(FILE).symlink_metadata();
    let is_absent = found.is_err_and(|it| it.kind() == io::ErrorKind::NotFound);
    (!is_absent).then(|| FILE.into())
}

/// The signals that concern a whole program. Heard from the beginning: the editor must find a handler in place.
struct Signals {
    hangup: Listener,
    interrupt: Listener,
    terminate: Listener,
}

impl Signals {
    fn listen() -> Self {
        let listen = |kind| signal(kind).expect("these signals can be handled, and the runtime is there");
        Signals {
            hangup: listen(SignalKind::hangup()),
            interrupt: listen(SignalKind::interrupt()),
            terminate: listen(SignalKind::terminate()),
        }
    }

    /// The next one, as the exit status that belongs to it.
    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => INTERRUPTED,
            _ = self.terminate.recv() => TERMINATED,
            _ = self.hangup.recv() => HANGUP,
        }
    }
}
