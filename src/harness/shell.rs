//! Shell: what it is to run a command, for whoever runs it and whoever asks. This is the definition, not a plugin.
//!
//! A provider (`shell_local.rs`) provides `shell`; a user (`tool_bash.rs`) needs it; neither knows the other.
//! Raises `shell/env` and `shell/program`, through [`child_env`] and [`child_program`].
//! Full-size counterpart: the shell package.
//! Watch for: `resolve` fills in every default, so that a spec can be shown, logged or refused before it is run; a
//! command that fails is a result, an error means that no command ran.

mod environment;
mod program;

use std::{io, path::PathBuf};

use thiserror::Error;
use tokio_util::sync::CancellationToken;

pub use self::environment::{ShellEnv, Vars, child_env};
pub use self::program::{Argv, ShellProgram, child_program};
use crate::cordis::{BoxError, LocalBoxFuture, Service};

/// The service `shell`.
pub trait Shell: 'static {
    /// Fills in what the request leaves open, and refuses what cannot be run.
    fn resolve(&self, request: &ShellRequest) -> Result<ShellSpec, ShellError>;

    /// Runs the command. A pulled `cancel` brings the result within 100 ms, whatever the command does.
    fn run(
        &self,
        spec: ShellSpec,
        cancel: CancellationToken,
    ) -> LocalBoxFuture<'static, Result<ShellResult, ShellError>>;
}

impl Service for dyn Shell {
    const NAME: &str = "shell";
}

// Omitted: the full version also takes input, an environment, output limits and a sandbox policy with each request, and
// knows commands that go on in the background. A model that needs one of these can say so in bash.
/// What is asked for. Only the command is needed.
#[derive(Clone, Debug, Default)]
pub struct ShellRequest {
    /// Text for the shell.
    pub command: String,
    /// Where to run it; a relative path starts at the folder of the program.
    pub cwd: Option<PathBuf>,
    /// The deadline. The provider has a default and a cap.
    pub timeout_ms: Option<u64>,
    /// Where output goes that is too long for the result: the folder of the session, if there is one.
    pub spill_dir: Option<PathBuf>,
}

/// What will be run, nothing left open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellSpec {
    /// Text for the shell.
    pub command: String,
    /// Where it runs, in full.
    pub cwd: PathBuf,
    /// After this long the command and its children are stopped.
    pub timeout_ms: u64,
    /// A folder for output that is too long; it is made when it is needed, for the user alone. Without one the middle of
    /// such output is lost.
    pub spill_dir: Option<PathBuf>,
}

/// How a command ended, whether well or not.
#[derive(Clone, Debug, Default)]
pub struct ShellResult {
    /// The exit code, 128 + N after a signal; `None` if a cancelled command had not ended yet.
    pub exit_code: Option<i32>,
    /// The signal that ended it, as in `SIGKILL`.
    pub signal: Option<String>,
    /// Whether the deadline ended it.
    pub timed_out: bool,
    /// Whether the caller ended it.
    pub cancelled: bool,
    /// The deadline that it had.
    pub timeout_ms: u64,
    /// What it printed.
    pub stdout: Output,
    /// What it complained about.
    pub stderr: Output,
    /// Whether it left processes behind that still run.
    pub left_children: bool,
}

/// One stream of a command: all of it, or its two ends with a line between them that says how much is left out.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// What the model may see.
    pub text: String,
    /// How many bytes `text` lacks.
    pub left_out: u64,
    /// Where the whole stream, or the first part of it, is kept.
    pub file: Option<PathBuf>,
    /// Whether some bytes were no UTF-8 and are U+FFFD in `text`.
    pub replaced: bool,
}

/// Why a command did not run.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ShellError {
    #[error("the folder that the program was started in cannot be found: {source}")]
    NoCurrentDirectory { source: io::Error },
    #[error("the working directory {} is not there", path.display())]
    NoDirectory { path: PathBuf },
    #[error("the command holds a NUL byte, which no program can be given")]
    NulByte,
    #[error(
        "the command is {bytes} bytes long, more than the system passes on; write it to a file in parts and run that"
    )]
    TooLong { bytes: usize },
    #[error(
        "no `bash` in the PATH; install bash, or give the shell entry in cordis.yml another provider"
    )]
    NoBash,
    #[error("refused: {reason}")]
    Refused { reason: String },
    #[error("bash could not be started: {source}")]
    Start { source: io::Error },
    #[error("the environment of the command could not be made: {source}")]
    Environment { source: BoxError },
    #[error("the program of the command could not be made ready: {source}")]
    Program { source: BoxError },
    #[error("the command was cancelled before it began")]
    Cancelled,
    #[error("the shell was unloaded before the command ended")]
    Unloaded,
}
