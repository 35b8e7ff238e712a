//! The program of one command, which is bash, or of another plugin: how it is started, and how it ended.
//!
//! Full-size counterpart: the process handling of the local shell.
//! Watch for: what a command gets is all said here: a session of its own, no terminal, no editor, and no input unless
//! somebody has some for it.

use std::{
    ffi::OsStr,
    io::{self, ErrorKind},
    process::{ExitStatus, Stdio},
    rc::Rc,
    time::Duration,
};

use nix::unistd::Pid;
use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use tokio::{
    io::AsyncWriteExt,
    process::{ChildStderr, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use super::family::{AFTER_KILL, Family, Mark, end_within};
use crate::harness::shell::{Argv, ShellError, ShellSpec, Vars};

/// No colours, no pagers, no editors, no questions: nobody is there to answer.
const QUIET: [(&str, &str); 7] = [
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// A program that was started.
pub(crate) struct Child {
    pub(crate) leader: Box<dyn ChildWrapper>,
    pub(crate) family: Rc<Family>,
}

/// Starts the command.
pub(super) fn start(
    spec: &ShellSpec,
    argv: Argv,
    vars: Vars,
    mark: Mark,
    stdin: Stdio,
) -> Result<(Child, ChildStdout, ChildStderr), ShellError> {
    // Checked first: otherwise the system blames `bash` for a directory that is gone.
    if !spec.cwd.is_dir() {
        return Err(ShellError::NoDirectory { path: spec.cwd.clone() });
    }
    let mut child = Child::start(argv.program, mark, |it| {
        it.args(argv.args).current_dir(&spec.cwd);
        // No BASH_ENV, because it names a file that bash would run first.
        it.env_clear().envs(vars).envs(QUIET).env_remove("BASH_ENV");
        it.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    })
    .map_err(|source| match source.kind() {
        ErrorKind::NotFound => ShellError::NoBash,
        ErrorKind::ArgumentListTooLong => ShellError::TooLong { bytes: spec.command.len() },
        _ => ShellError::Start { source },
    })?;
    let stdout = child.leader.stdout().take().expect("stdout is piped");
    let stderr = child.leader.stderr().take().expect("stderr is piped");
    Ok((child, stdout, stderr))
}

/// Gives a command its input. One that does not read it, or ends before, has done nothing wrong.
pub(super) async fn feed(stdin: Option<ChildStdin>, input: &[u8]) {
    if let Some(mut stdin) = stdin {
        stdin.write_all(input).await.ok();
    }
}

impl Child {
    /// Starts a program in a session of its own: no terminal to take, and one signal reaches its children too.
    pub(crate) fn start(
        program: impl AsRef<OsStr>,
        mark: Mark,
        set: impl FnOnce(&mut Command),
    ) -> io::Result<Self> {
        let mut command = CommandWrap::with_new(program, |it| {
            set(it);
            it.envs([mark.variable()]);
        });
        let leader = command.wrap(ProcessSession).spawn()?;
        let id = leader.id().expect("nobody has waited for it yet");
        let id = Pid::from_raw(i32::try_from(id).expect("the system's own ids are i32"));
        // Not the wrapper's own `wait`: where orphans become our children (as process 1 of a container) it would wait
        // for those too, and `server &` would hang.
        Ok(Child { leader: leader.into_inner(), family: Family::new(id, mark) })
    }

    /// Resolves when the program ends, whatever its children do.
    pub(crate) async fn exit(&mut self) -> Option<ExitStatus> {
        self.leader.wait().await.ok()
    }

    /// After a TERM: see [`end_within`]. There is no status if the system cannot even kill it.
    pub(crate) async fn end(&mut self, grace: Duration) -> Option<ExitStatus> {
        end_within(grace, &[Rc::clone(&self.family)]).await;
        timeout(AFTER_KILL, self.exit()).await.ok().flatten()
    }
}
