//! Part of `script`: the shell, for scripts that run commands, scripts that are the shell, and those that add something to
//! the shell of this machine.

use std::{path::PathBuf, rc::Rc, time::Duration};

use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    Bridge, Done, Reply,
    callback::{Callback, Cancelling},
    codec, number, shown, text,
};
use crate::{
    cordis::{LocalBoxFuture, Need, Optional},
    extras::script::failure::Failure,
    harness::{
        shell::{Output, Shell, ShellError, ShellRequest, ShellResult, ShellSpec},
        shell_local::{self, LocalShell},
        trust::Trust,
    },
};

/// A cancelled command may take so long to say how it ended.
const LAST_WORD: Duration = Duration::from_millis(80);
/// A script has so much longer than the deadline, in which it can stop what it started.
const SLACK: Duration = Duration::from_secs(5);
const TIMEOUT_MS: u64 = 120_000;
const LONGEST_MS: u64 = 600_000;

/// A shell that a script provides.
pub(super) struct ScriptShell {
    bridge: Rc<Bridge>,
    run: Rc<Callback>,
    _object: Rc<Callback>,
    /// The shell of this machine, if the script adds something to it.
    local: Option<LocalShell>,
}

impl ScriptShell {
    pub(super) fn new(
        bridge: &Rc<Bridge>,
        run: Rc<Callback>,
        object: Rc<Callback>,
        local: &Value,
    ) -> Self {
        let local = number(local).and_then(|it| bridge.shells.borrow().get(&it).cloned());
        Self { bridge: bridge.clone(), run, _object: object, local }
    }
}

impl Shell for ScriptShell {
    // Differs: a script's own `resolve` runs first thing in `run`, because nobody waits for a script here.
    fn resolve(&self, request: &ShellRequest) -> Result<ShellSpec, ShellError> {
        if let Some(local) = &self.local {
            return local.resolve(request);
        }
        if request.command.contains('\0') {
            return Err(ShellError::NulByte);
        }
        let here =
            std::env::current_dir().map_err(|source| ShellError::NoCurrentDirectory { source })?;
        let cwd = request.cwd.as_ref().map_or_else(|| here.clone(), |it| here.join(it));
        let timeout_ms = request.timeout_ms.unwrap_or(TIMEOUT_MS).clamp(1, LONGEST_MS);
        let (command, spill_dir) = (request.command.clone(), request.spill_dir.clone());
        Ok(ShellSpec { command, cwd, timeout_ms, spill_dir })
    }

    fn run(
        &self,
        spec: ShellSpec,
        cancel: CancellationToken,
    ) -> LocalBoxFuture<'static, Result<ShellResult, ShellError>> {
        let (bridge, token, timeout_ms) =
            (self.bridge.clone(), self.bridge.token(), spec.timeout_ms);
        // By this number `super.run` finds the token.
        bridge.runs.borrow_mut().insert(token.number, cancel.clone());
        let work = self.run.call(vec![spec_json(&spec), token.number.into()]);
        Box::pin(async move {
            let ended = |timed_out, cancelled| {
                Ok(ShellResult { timed_out, cancelled, timeout_ms, ..ShellResult::default() })
            };
            let given_up = async {
                cancel.cancelled().await;
                sleep(LAST_WORD).await;
            };
            let result = tokio::select! {
                biased;
                said = bridge.with_signal(token.number, &cancel, work) => match said {
                    Err(_) if cancel.is_cancelled() => Err(ShellError::Cancelled),
                    said => read(said, timeout_ms),
                },
                () = given_up => ended(false, true),
                () = sleep(Duration::from_millis(timeout_ms) + SLACK) => {
                    bridge.abort(token.number);
                    ended(true, false)
                }
            };
            drop(token);
            result
        })
    }
}

fn read(said: Result<Value, Failure>, timeout_ms: u64) -> Result<ShellResult, ShellError> {
    let said = said.map_err(|failure| {
        tracing::warn!("shell: {failure}");
        ShellError::Refused { reason: failure.problem }
    })?;
    if let Value::String(text) = said {
        let stdout = Output { text, ..Output::default() };
        return Ok(ShellResult {
            exit_code: Some(0),
            timeout_ms,
            stdout,
            ..ShellResult::default()
        });
    }
    if !said.is_object() {
        let reason = "a shell gives `{ exitCode, stdout, stderr }`, or a text".to_owned();
        return Err(ShellError::Refused { reason });
    }
    let is = |key: &str| said[key].as_bool().unwrap_or_default();
    let code = said.get("exitCode").map_or(Some(0), Value::as_i64);
    Ok(ShellResult {
        exit_code: code.and_then(|it| i32::try_from(it).ok()),
        signal: said["signal"].as_str().map(str::to_owned),
        timed_out: is("timedOut"),
        cancelled: is("cancelled"),
        timeout_ms,
        stdout: output(&said, "stdout"),
        stderr: output(&said, "stderr"),
        left_children: is("leftChildren"),
    })
}

fn output(said: &Value, stream: &str) -> Output {
    let more = &said["more"][stream];
    Output {
        text: said[stream].as_str().unwrap_or_default().to_owned(),
        left_out: more["leftOut"].as_u64().unwrap_or_default(),
        file: more["file"].as_str().map(PathBuf::from),
        replaced: more["replaced"].as_bool().unwrap_or_default(),
    }
}

fn result_json(it: &ShellResult) -> Value {
    let more =
        |it: &Output| json!({ "leftOut": it.left_out, "file": it.file, "replaced": it.replaced });
    json!({
        "exitCode": it.exit_code,
        "signal": it.signal,
        "timedOut": it.timed_out,
        "cancelled": it.cancelled,
        "timeoutMs": it.timeout_ms,
        "stdout": it.stdout.text,
        "stderr": it.stderr.text,
        "leftChildren": it.left_children,
        "more": { "stdout": more(&it.stdout), "stderr": more(&it.stderr) },
    })
}

fn spec_json(it: &ShellSpec) -> Value {
    json!({
        "command": it.command, "cwd": it.cwd, "timeoutMs": it.timeout_ms, "spillDir": it.spill_dir,
    })
}

fn request(it: &Value) -> Result<ShellRequest, String> {
    let path = |key: &str| it[key].as_str().map(PathBuf::from);
    let command = it.as_str().or(it["command"].as_str()).ok_or("a command is a text")?.to_owned();
    let timeout_ms = it["timeoutMs"].as_u64();
    Ok(ShellRequest { command, cwd: path("cwd"), timeout_ms, spill_dir: path("spillDir") })
}

impl Bridge {
    /// Operations on shells; none if it is not one of these.
    pub(super) fn shell(self: &Rc<Self>, operation: &str, args: &[Value]) -> Option<Reply> {
        Some(match (operation, args) {
            ("shell.resolve", [ctx, request]) => Reply::Now(self.resolve(ctx, request)),
            ("shell.run", [cancel, ctx, request]) => {
                let going = self.run_command(cancel, ctx, request);
                going.map_or_else(|problem| Reply::Now(Err(problem)), Reply::Later)
            }
            ("local.start", [ctx, config]) => Reply::Now(self.start_local(ctx, config)),
            ("local.resolve", [shell, request]) => Reply::Now(self.resolve_local(shell, request)),
            ("local.run", [run, shell, spec]) => {
                let going = self.run_local(self.cancel_of(run), None, shell, spec);
                going.map_or_else(|problem| Reply::Now(Err(problem)), Reply::Later)
            }
            ("local.own", [cancel, shell, spec]) => {
                let (held, cancel) = self.cancellation(cancel);
                let going = self.run_local(cancel, Some(held), shell, spec);
                going.map_or_else(|problem| Reply::Now(Err(problem)), Reply::Later)
            }
            _ => return None,
        })
    }

    fn resolve(&self, ctx: &Value, asked: &Value) -> Done {
        let shell = self.context(ctx)?.service::<dyn Shell>().map_err(shown)?;
        shell.resolve(&request(asked)?).map(|it| spec_json(&it)).map_err(shown)
    }

    fn run_command(
        self: &Rc<Self>,
        cancel: &Value,
        ctx: &Value,
        asked: &Value,
    ) -> Result<LocalBoxFuture<'static, Done>, String> {
        let shell = self.context(ctx)?.service::<dyn Shell>().map_err(shown)?;
        let spec = shell.resolve(&request(asked)?).map_err(shown)?;
        let (held, cancel) = self.cancellation(cancel);
        Ok(Box::pin(async move {
            let result = shell.run(spec, cancel).await;
            drop(held);
            result.map(|it| result_json(&it)).map_err(shown)
        }))
    }

    fn start_local(&self, ctx: &Value, config: &Value) -> Done {
        let ctx = self.context(ctx)?;
        let config = if config.is_null() { json!({}) } else { config.clone() };
        let config: shell_local::Config = codec::parsed("config", &config)?;
        let env = self.env.clone().ok_or("there is no environment")?;
        let trust = Optional::<Trust>::extract(&ctx).map_err(shown)?;
        let shell = LocalShell::start(&ctx, config, env, trust).map_err(shown)?;
        let number = self.number();
        self.shells.borrow_mut().insert(number, shell);
        Ok(number.into())
    }

    /// The end of the run of the agent that a command belongs to. After that, nothing ends it but its deadline.
    fn cancel_of(&self, run: &Value) -> CancellationToken {
        let known = number(run).and_then(|it| self.runs.borrow().get(&it).cloned());
        known.unwrap_or_default()
    }

    fn local(&self, shell: &Value) -> Result<LocalShell, String> {
        let shell = number(shell).and_then(|it| self.shells.borrow().get(&it).cloned());
        shell.ok_or_else(|| "this shell is gone".to_owned())
    }

    fn resolve_local(&self, shell: &Value, asked: &Value) -> Done {
        let shell = self.local(shell)?;
        shell.resolve(&request(asked)?).map(|it| spec_json(&it)).map_err(shown)
    }

    /// `super.run(spec)` ends with the run that the script was asked for; a run of its own, with its own signal.
    fn run_local(
        &self,
        cancel: CancellationToken,
        held: Option<Cancelling>,
        shell: &Value,
        asked: &Value,
    ) -> Result<LocalBoxFuture<'static, Done>, String> {
        let shell = self.local(shell)?;
        text("a command", &asked["command"])?;
        let spec = shell.resolve(&request(asked)?).map_err(shown)?;
        let going = shell.run(spec, cancel);
        Ok(Box::pin(async move {
            let result = going.await;
            drop(held);
            result.map(|it| result_json(&it)).map_err(shown)
        }))
    }
}
