//! Shell, local: runs commands with the bash of this machine.
//!
//! Needs `env`; tells `trust` if it is there. Provides `shell`. Raises `shell/env` and `shell/program`. Listens to `cordis/hurry`.
//! Full-size counterpart: the local bash package.
//! Watch for: a command has ended when its bash has, not when its output has. One task lives as long as the last process
//! of a command does, and hands out the result on the way; whatever is left when the plugin unloads is stopped then.

pub(crate) mod capture;
pub(crate) mod child;
pub(crate) mod family;
mod redrawn;

use std::{
    cell::Cell,
    fs,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    rc::Rc,
    time::{Duration, SystemTime},
};

use nix::{libc, sys::signal::Signal};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::{
    join, select,
    signal::unix::{SignalKind, signal},
    sync::oneshot,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use self::{
    capture::Prints,
    child::{Child, feed, start},
    family::{Families, Mark, SOMETIMES, SOON, stop_all},
};
use crate::{
    cordis::{BoxError, Context, Hurry, LocalBoxFuture, Optional, Svc},
    harness::{
        env::{Env, mask::Mask},
        shell::{
            Shell, ShellError, ShellRequest, ShellResult, ShellSpec, child_env, child_program,
        },
        trust::{Acting, Trust},
    },
};

type Answer = Result<ShellResult, ShellError>;

/// How long output and children may outlive a command before they count as left behind.
const DRAIN: Duration = Duration::from_millis(200);
/// How long a cancelled command may take to end before its result is given without its exit code.
const PROMPT: Duration = Duration::from_millis(20);
/// The longest grace at unload: a program that ends waits no longer, and must not leave anyone behind.
const LAST_GRACE: Duration = Duration::from_secs(3);

/// Config of `shell-local`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// Deadline of a command that asks for none, in milliseconds.
    #[schemars(range(min = 1))]
    timeout_ms: u64,
    /// The longest deadline that a command can ask for.
    #[schemars(range(min = 1))]
    max_timeout_ms: u64,
    /// How long a command that is stopped may take to end before it is killed.
    grace_ms: u64,
    /// Environment variables that commands see although their names look secret.
    pass_env: Vec<String>,
}

impl Config {
    /// The defaults, with these variables let through.
    pub fn passing(pass_env: Vec<String>) -> Self {
        Self { pass_env, ..Self::default() }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self { timeout_ms: 120_000, max_timeout_ms: 600_000, grace_ms: 1_500, pass_env: Vec::new() }
    }
}

/// Provides `shell`.
pub async fn apply(
    ctx: Context,
    config: Config,
    env: Svc<Env>,
    trust: Optional<Trust>,
) -> Result<(), BoxError> {
    let shell = LocalShell::start(&ctx, config, env.shared(), trust)?;
    ctx.provide::<dyn Shell>(Rc::new(shell))?;
    Ok(())
}

/// The provider. Copies share everything.
#[derive(Clone)]
pub struct LocalShell {
    ctx: Context,
    config: Rc<Config>,
    env: Rc<Env>,
    trust: Rc<Optional<Trust>>,
    cwd: PathBuf,
    scratch: PathBuf,
    name: Rc<str>,
    commands: Rc<Cell<u64>>,
    families: Families,
}

impl LocalShell {
    /// A shell that ends with the plugin whose context this is: for a provider that adds something to it.
    // The current directory is asked for once: after it was removed the system no longer knows its name, and the user
    // is to be told it.
    pub fn start(
        ctx: &Context,
        config: Config,
        env: Rc<Env>,
        trust: Optional<Trust>,
    ) -> Result<Self, BoxError> {
        let temp = env.get("TMPDIR").unwrap_or_else(|| "/tmp".into());
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        // A file-size limit is to be an error of the write that meets it, not the death of the program.
        drop(signal(SignalKind::from_raw(libc::SIGXFSZ)));
        let name = format!("{}-{now:x}", std::process::id());
        let cwd =
            std::env::current_dir().map_err(|source| ShellError::NoCurrentDirectory { source })?;
        let shell = Self {
            ctx: ctx.clone(),
            config: Rc::new(config),
            env,
            trust: Rc::new(trust),
            cwd,
            scratch: PathBuf::from(temp).join(format!("nano-cordis-{name}")),
            name: name.into(),
            commands: Rc::default(),
            families: Families::default(),
        };
        // The first effects are the last to be undone: by then every task that waits for a command is gone.
        let (left, hurry) = (shell.clone(), CancellationToken::new());
        let hurried = hurry.clone();
        ctx.on(move |_, _: &Hurry| hurry.cancel())?;
        ctx.effect(|| async move || left.stop(hurried).await)?;
        Ok(shell)
    }

    // The task belongs to this plugin and not to the caller, who may be gone before the command is.
    /// Runs a command as [`Shell::run`] does, with this on its standard input. Without any it reads nothing at once.
    pub async fn run_with(
        &self,
        spec: ShellSpec,
        input: Option<Vec<u8>>,
        cancel: CancellationToken,
    ) -> Result<ShellResult, ShellError> {
        let (answer, result) = oneshot::channel();
        let shell = self.clone();
        let live = async move |_| shell.live(spec, input, cancel, answer).await;
        self.ctx.spawn("command", live).map_err(|_| ShellError::Unloaded)?;
        result.await.unwrap_or(Err(ShellError::Unloaded))
    }

    fn grace(&self) -> Duration {
        Duration::from_millis(self.config.grace_ms)
    }

    /// The whole life of one command and of the children it leaves behind.
    async fn live(
        self,
        spec: ShellSpec,
        input: Option<Vec<u8>>,
        cancel: CancellationToken,
        answer: oneshot::Sender<Answer>,
    ) {
        let _acting = self.acting();
        let ready = async {
            let vars = child_env(&self.ctx, &self.env, &self.config.pass_env).await?;
            Ok((vars, child_program(&self.ctx, &spec.command).await?))
        };
        let ready = cancel.run_until_cancelled(ready).await.unwrap_or(Err(ShellError::Cancelled));
        let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
        let started =
            ready.and_then(|(vars, argv)| start(&spec, argv, vars, self.next_mark(), stdin));
        let (mut child, stdout, stderr) = match started {
            Ok(started) => started,
            Err(err) => return drop(answer.send(Err(err))),
        };
        self.families.borrow_mut().push(Rc::clone(&child.family));
        let (stdin, input) = (child.leader.stdin().take(), input.unwrap_or_default());
        let prints = Prints::new(spec.spill_dir.as_deref(), &Mask::new(self.env.secrets()));
        let watched = self.watch(child, &spec, &prints, cancel, answer);
        join!(feed(stdin, &input), prints.read(stdout, stderr), watched);
    }

    async fn watch(
        &self,
        mut child: Child,
        spec: &ShellSpec,
        prints: &Prints,
        cancel: CancellationToken,
        mut answer: oneshot::Sender<Answer>,
    ) {
        let family = Rc::clone(&child.family);
        let mut result = ShellResult { timeout_ms: spec.timeout_ms, ..ShellResult::default() };
        let status = select! {
            (status, timed_out) = self.finish(&mut child, spec) => {
                result.timed_out = timed_out;
                // Both, so that a child that is about to end is not called left behind.
                let quiet = async { join!(prints.ended(), family.gone(SOON)) };
                result.left_children = timeout(DRAIN, quiet).await.is_err();
                status
            }
            () = given_up(&cancel, &mut answer) => {
                result.cancelled = true;
                family.signal(Signal::SIGTERM);
                timeout(PROMPT, child.exit()).await.ok().flatten()
            }
        };
        (result.stdout, result.stderr) = prints.close();
        (result.exit_code, result.signal) = status.map_or((None, None), code_and_signal);
        let (is_stopping, leaves) = (result.cancelled, result.left_children);
        drop(answer.send(Ok(result)));
        if is_stopping {
            child.end(self.grace()).await;
        }
        if is_stopping || leaves {
            family.gone(SOMETIMES).await;
        }
        self.families.borrow_mut().retain(|it| !Rc::ptr_eq(it, &family));
    }

    fn next_mark(&self) -> Mark {
        self.commands.set(self.commands.get() + 1);
        Mark::new(&self.name, self.commands.get())
    }

    /// Waits for the end of the command, or makes one at the deadline; tells whether it did.
    async fn finish(&self, child: &mut Child, spec: &ShellSpec) -> (Option<ExitStatus>, bool) {
        if let Ok(status) = timeout(Duration::from_millis(spec.timeout_ms), child.exit()).await {
            return (status, false);
        }
        child.family.signal(Signal::SIGTERM);
        (child.end(self.grace()).await, true)
    }

    /// A command may change the configuration, and what it leaves behind may do so later.
    fn acting(&self) -> Option<Acting> {
        self.trust.get().map(|it| it.shared().left_behind())
    }

    async fn stop(self, hurry: CancellationToken) {
        let _acting = self.acting();
        let left = self.families.take();
        let with_grace = stop_all(&left, self.grace().min(LAST_GRACE));
        if hurry.run_until_cancelled(with_grace).await.is_none() {
            stop_all(&left, Duration::ZERO).await;
        }
        fs::remove_dir_all(&self.scratch).ok();
    }
}

impl Shell for LocalShell {
    fn resolve(&self, request: &ShellRequest) -> Result<ShellSpec, ShellError> {
        if request.command.contains('\0') {
            return Err(ShellError::NulByte);
        }
        let asked_ms = request.timeout_ms.unwrap_or(self.config.timeout_ms);
        let timeout_ms = asked_ms.clamp(1, self.config.max_timeout_ms);
        let cwd = request.cwd.as_ref().map_or_else(|| self.cwd.clone(), |it| self.cwd.join(it));
        let spill_dir = request.spill_dir.clone().unwrap_or_else(|| self.scratch.clone());
        let (command, spill_dir) = (request.command.clone(), Some(spill_dir));
        Ok(ShellSpec { command, cwd, timeout_ms, spill_dir })
    }

    fn run(&self, spec: ShellSpec, cancel: CancellationToken) -> LocalBoxFuture<'static, Answer> {
        let shell = self.clone();
        Box::pin(async move { shell.run_with(spec, None, cancel).await })
    }
}

async fn given_up(cancel: &CancellationToken, answer: &mut oneshot::Sender<Answer>) {
    select! {
        () = cancel.cancelled() => {}
        () = answer.closed() => {}
    }
}

/// A shell reports a signal N as 128 + N, and so do we.
fn code_and_signal(status: ExitStatus) -> (Option<i32>, Option<String>) {
    match status.signal() {
        None => (status.code(), None),
        Some(number) => {
            let name = Signal::try_from(number)
                .map_or_else(|_| format!("signal {number}"), |it| it.as_str().to_owned());
            (Some(128 + number), Some(name))
        }
    }
}
