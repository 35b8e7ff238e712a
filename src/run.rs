//! One run of the program: root context, loader, signals, exit status.
//!
//! Provides `console`, `env` and `trust` on the root context; emits `console/signal`, `cordis/hurry` and `env/check`;
//! listens to `cordis/notice`, `cordis/warning` and `loader/before-apply`; answers `trust/confirm`.
//! Full-size counterpart: the launchers of the applications.
//! Watch for: it knows the loader and the console, and nothing of agents. Whether there is a conversation is decided by
//! the list of plugins.

mod announce;
mod beginning;
mod check;
mod list;
mod papers;
mod reports;
mod schema;
mod signals;
mod start;
mod trace;
mod types;

use std::convert::Infallible;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::time::{sleep, timeout};

use self::announce::announce;
use self::reports::Reports;
use self::signals::Signals;
use crate::cordis::{Builtins, Context, Hurry, LoaderOptions, Notice, Warning};
use crate::extras::sandbox::launch::launch;
use crate::harness::cli::arguments::{Arguments, OutputFormat, Refused};
use crate::harness::cli::console::{Console, Signal};
use crate::harness::cli::output::unwritten;
use crate::harness::cli::results::unbegun;
use crate::harness::cli::status::{COMPLETED, FAILED, INTERRUPTED, MISUSED, STDOUT_CLOSED};
use crate::harness::env::Env;
use crate::harness::trust::{Confirm, ConfirmChange, Trust};

/// A turn that is asked to stop has so long to close its log.
const LAST_WORDS: Duration = Duration::from_secs(4);
/// Plugins have so long to stop,
const GRACE: Duration = Duration::from_secs(5);
/// and only so long when somebody is in a hurry.
const HURRY: Duration = Duration::from_secs(1);
/// More files than are open before the first plugin is mounted.
const FILES: usize = 16;

/// Runs the program with these plugins to choose from, and gives its exit status.
pub fn run(builtins: Builtins) -> ExitCode {
    if let Some(status) = launch(std::env::args_os()) {
        return status;
    }
    let is_hidden = hide_memory();
    let arguments = match Arguments::read(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(Refused::Asked(text)) => return answered(text.as_bytes()),
        Err(Refused::Usage(text, format)) => {
            return refused(format, "usage", &text, MISUSED);
        }
    };
    if let Some(status) = paper(&arguments, &builtins) {
        return status;
    }
    trace::show(arguments.verbose);
    if !is_hidden {
        tracing::warn!("the memory of this process can be read by others");
    }
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(err) => {
            let text = format!("cannot start: {err}");
            return refused(arguments.format(), "configuration", &text, FAILED);
        }
    };
    let status = runtime.block_on(Program::run(arguments, builtins));
    // Work on other threads, such as a name being looked up, is not waited for.
    runtime.shutdown_background();
    ExitCode::from(status)
}

/// What needs neither plugins nor a session: a text on stdout, or a file.
fn paper(arguments: &Arguments, builtins: &Builtins) -> Option<ExitCode> {
    let here = Path::new("");
    if arguments.types {
        return Some(written(arguments, types::write(here)));
    }
    if let Some(with) = arguments.init {
        return Some(written(arguments, beginning::write(here, with, builtins)));
    }
    if arguments.schema {
        return Some(answered(schema::text(builtins).as_bytes()));
    }
    if let Some(shell) = arguments.completions {
        return Some(answered(&papers::completions(shell)));
    }
    arguments.man.then(|| match papers::manual() {
        Ok(page) => answered(&page),
        Err(err) => refused(OutputFormat::Text, "usage", &err.to_string(), FAILED),
    })
}

fn written(arguments: &Arguments, outcome: Result<String, String>) -> ExitCode {
    match outcome {
        Ok(text) => {
            if !arguments.quiet {
                let _closed = put(io::stderr(), format!("[nano-cordis] {text}\n").as_bytes());
            }
            ExitCode::from(COMPLETED)
        }
        Err(text) => refused(OutputFormat::Text, "usage", &text, MISUSED),
    }
}

/// The runtime, which panics instead of giving an error where it may open too few files. So that is tried before.
fn runtime() -> io::Result<LocalRuntime> {
    let open = (0..FILES).map(|_| io::stdin().as_fd().try_clone_to_owned());
    drop(open.collect::<io::Result<Vec<_>>>()?);
    Builder::new_current_thread().enable_all().build_local(LocalOptions::default())
}

/// The end of a run that has not begun.
fn refused(format: OutputFormat, code: &str, text: &str, status: u8) -> ExitCode {
    // It has failed already, and worse than by not saying so.
    let _closed = put(io::stdout(), unbegun(format, code, text, status).as_bytes());
    let _closed = put(io::stderr(), format!("nano-cordis: {text}\n").as_bytes());
    ExitCode::from(status)
}

/// A text that the user asked for, on stdout.
fn answered(text: &[u8]) -> ExitCode {
    let status = match put(io::stdout(), text) {
        Ok(()) => COMPLETED,
        Err(err) if err.kind() == ErrorKind::BrokenPipe => STDOUT_CLOSED,
        Err(err) => {
            let _closed =
                put(io::stderr(), format!("nano-cordis: {}\n", unwritten(&err)).as_bytes());
            FAILED
        }
    };
    ExitCode::from(status)
}

fn put(mut stream: impl Write, text: &[u8]) -> io::Result<()> {
    stream.write_all(text)?;
    stream.flush()
}

/// A child of ours, which runs as the same user, must not read the key out of this process. Says whether that is so.
// Differs: debug builds can be looked into, or no debugger could attach. And nothing is hidden from the superuser.
fn hide_memory() -> bool {
    #[cfg(all(target_os = "linux", not(debug_assertions)))]
    return nix::sys::prctl::set_dumpable(false).is_ok();
    #[cfg(not(all(target_os = "linux", not(debug_assertions))))]
    true
}

struct Program {
    root: Context,
    console: Rc<Console>,
    reports: Rc<Reports>,
}

impl Program {
    async fn run(arguments: Arguments, builtins: Builtins) -> u8 {
        let mut signals = Signals::listen();
        let env = Rc::new(Env::process());
        let console = Rc::new(Console::new(arguments, |name| env.get(name)));
        trace::through(&console, &env);
        let options = list::options(console.arguments(), builtins, env.clone());
        let reports = Rc::new(Reports::to(console.clone()));
        let program = Program { root: root(&console, &reports, env), console, reports };
        if list::is_own(&options) {
            announce(&program.root, &program.console).expect("a new root context is active");
        }
        let status = program.serve(&mut signals, options).await;
        program.console.close();
        program.shut_down(&mut signals).await;
        program.console.settle(status)
    }

    async fn serve(&self, signals: &mut Signals, options: LoaderOptions) -> u8 {
        let stop = tokio::select! {
            biased;
            status = self.console.stop_requested() => status,
            status = self.console.finished() => return status,
            never = self.pass_on(signals) => match never {},
            never = self.lead(options) => match never {},
        };
        self.root.emit(&Signal::Stop);
        if self.console.is_led() {
            tokio::select! {
                _ = self.console.finished() => {}
                () = sleep(LAST_WORDS) => {}
                _impatient = signals.next() => self.console.hurry(),
            }
        }
        stop
    }

    /// Ends all plugins. A signal that comes now, and a second Ctrl-C before, take the time away that they give others.
    async fn shut_down(&self, signals: &mut Signals) {
        let mut ending = pin!(self.root.shutdown(GRACE));
        let impatience = async {
            if !self.console.is_hurried() {
                signals.next().await;
            }
        };
        let ended = tokio::select! {
            biased;
            () = impatience => None,
            ended = &mut ending => Some(ended),
        };
        if ended.is_none() {
            self.root.emit(&Hurry);
        }
        let hung = match ended {
            Some(ended) => ended.hung,
            None => timeout(HURRY, ending).await.map(|it| it.hung).unwrap_or_default(),
        };
        for plugin in hung {
            self.console.warn(&format!("{plugin} did not stop within {} s", GRACE.as_secs()));
        }
    }

    async fn pass_on(&self, signals: &mut Signals) -> Infallible {
        loop {
            let status = signals.next().await;
            if status == INTERRUPTED {
                self.console.was_interrupted();
            }
            match status {
                INTERRUPTED if self.console.takes_back_question() => {}
                INTERRUPTED if self.console.is_led() => self.root.emit(&Signal::Interrupt),
                INTERRUPTED => self.console.finish(INTERRUPTED),
                status => self.console.request_stop(status),
            }
        }
    }
}

fn root(console: &Rc<Console>, reports: &Rc<Reports>, env: Rc<Env>) -> Context {
    let sink = reports.clone();
    let root = Context::root_with(move |report| sink.receive(report));
    let (sink, safety) = (console.clone(), console.clone());
    let prepared = root
        .provide(console.clone())
        .and_then(|_| root.provide(env))
        .and_then(|_| root.on(move |_, Notice(line): &Notice| sink.notice(line)))
        .and_then(|_| root.on(move |_, Warning(line): &Warning| safety.warn(line)))
        .and_then(|_| Trust::watch(&root));
    let sink = console.clone();
    let confirm = async move |_, asked: Rc<Confirm>| Ok(sink.confirm(&asked).await);
    let prepared = prepared.and_then(|()| root.answer::<ConfirmChange>(confirm));
    prepared.expect("a new root context is active and has no services");
    root
}
