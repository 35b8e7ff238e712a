//! Sandbox: commands write below the project folder and the folder for temporary files, and nowhere else.
//!
//! Needs `env`. Listens to `shell/program` and `tools/post-execute`. The parts in its folder: `confine` is what happens in
//! the process of the command, before it becomes bash; `launch` is the hidden command line in between.
//! Full-size counterpart: the sandbox of the local shell.
//! Watch for: the kernel does all of it (Landlock), for the command and whatever it starts. Where it cannot, nothing runs:
//! a command is never started unconfined.

pub(crate) mod confine;
pub(crate) mod launch;

use std::{
    io,
    path::{Path, PathBuf},
    process::Stdio,
    rc::Rc,
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;
use thiserror::Error;
use tokio::{process::Command, time::timeout};

use self::launch::{CONFINED, Limits, THIS_PROGRAM};
use crate::{
    cordis::{BoxError, Context, Svc},
    harness::{
        env::Env,
        shell::{Argv, ShellProgram},
        tools::{Finished, PostExecute, ToolResult},
    },
};

/// The trial takes milliseconds; a system that is so slow has other troubles.
const TRIAL: Duration = Duration::from_secs(10);
/// Whatever others put before a command is confined with it.
const OUTERMOST: i32 = i32::MIN;
/// How a system says that something may not be written, or moved to where it may be.
const DENIALS: [&str; 2] = ["ermission denied", "nvalid cross-device link"];

/// Config of `sandbox`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// Files and folders that commands may write beside the project folder and the one for temporary files.
    writable: Vec<PathBuf>,
    /// Whether commands may use TCP.
    network: Network,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Network {
    #[default]
    On,
    Off,
}

/// Why commands cannot be confined here.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum SandboxError {
    #[error("writable: {} is not there; make it, or take it out", path.display())]
    NotThere { path: PathBuf },
    #[error("{} is the root of all files, so nothing would be confined; {way_out}", path.display())]
    Everything { path: PathBuf, way_out: &'static str },
    #[error("the folder that the program was started in cannot be found: {source}")]
    NoFolder { source: io::Error },
    #[error(
        "commands cannot be confined here: {why}; to run them unconfined, take this entry out or use `--disable` with its id"
    )]
    Refused { why: String },
}

/// The plugin. It tries whether the kernel can do it before the first command comes.
pub async fn apply(ctx: Context, config: Config, env: Svc<Env>) -> Result<(), BoxError> {
    let folder = std::env::current_dir().map_err(|source| SandboxError::NoFolder { source })?;
    let limits = Rc::new(config.limits(&folder, &env)?);
    try_it(&limits).await.map_err(|why| SandboxError::Refused { why })?;
    let line = limits.to_string();
    ctx.intercept_at::<ShellProgram>(OUTERMOST, async move |_, _, next| {
        Ok(limits.around(next.run().await?))
    })?;
    ctx.intercept::<PostExecute>(async move |_, finished, next| {
        Ok(explained(&finished, next.run().await?, &line))
    })?;
    Ok(())
}

impl Config {
    /// Paths in full, because a command may be run in another folder.
    fn limits(self, folder: &Path, env: &Env) -> Result<Limits, SandboxError> {
        let temp = PathBuf::from(env.get("TMPDIR").unwrap_or_else(|| "/tmp".into()));
        let temp = Some(folder.join(temp)).filter(|it| it.exists());
        let named = self.writable.iter().map(|it| folder.join(it));
        let all = [(folder.to_owned(), "start the program in the folder of a project")]
            .into_iter()
            .chain(temp.map(|it| (it, "give TMPDIR another folder")))
            .chain(named.map(|it| (it, "take it out of `writable`")));
        let writable = all.map(|(path, way_out)| match path.canonicalize() {
            Err(_) => Err(SandboxError::NotThere { path }),
            Ok(real) if real.parent().is_none() => Err(SandboxError::Everything { path, way_out }),
            Ok(_) => Ok(path),
        });
        let has_network = self.network == Network::On;
        Ok(Limits { writable: writable.collect::<Result<_, _>>()?, has_network })
    }
}

/// Confines a process that does nothing else. What it says is the reason why that does not work.
async fn try_it(limits: &Limits) -> Result<(), String> {
    let mut trial = Command::new(THIS_PROGRAM);
    trial.args(limits.arguments()).stdin(Stdio::null()).kill_on_drop(true);
    let ended = timeout(TRIAL, trial.output()).await;
    let ended = ended.map_err(|_| "a trial did not end".to_owned())?;
    let ended = ended.map_err(|err| format!("{THIS_PROGRAM} cannot be started: {err}"))?;
    let said = String::from_utf8_lossy(&ended.stderr);
    match ended.stdout.starts_with(CONFINED.as_bytes()) {
        true => Ok(()),
        false if said.trim().is_empty() => Err("a trial ended without a word".into()),
        false => Err(said.trim().trim_start_matches("sandbox: ").to_owned()),
    }
}

/// The result, with a line that says what is confined if that may be why the command failed.
fn explained(finished: &Finished, result: ToolResult, line: &str) -> ToolResult {
    let is_command = finished.call.name == "bash" && !result.is_error;
    if !is_command || !DENIALS.iter().any(|it| result.content.contains(it)) {
        return result;
    }
    ToolResult { content: format!("{}\n[sandbox: {line}]", result.content), ..result }
}
