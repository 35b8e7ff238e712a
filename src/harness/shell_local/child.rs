//! The bash of one command: how it is started, and how it ended.
//!
//! Full-size counterpart: the process handling of the local shell.
//! Watch for: what a command gets is all said here: a session of its own, no terminal, no editor, and no input unless
//! somebody has some for it.

use std::{
    io::ErrorKind,
    process::{ExitStatus, Stdio},
    rc::Rc,
    time::Duration,
};

use nix::unistd::Pid;
use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use tokio::{
    io::AsyncWriteExt,
    process::{ChildStderr, ChildStdin, ChildStdout},
    time::timeout,
};

use super::family::{AFTER_KILL, Family, Mark, end_within};
use crate::harness::shell::{ShellError, ShellSpec, Vars};

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

/// A command that was started.
pub(super) struct Child {
    leader: Box<dyn ChildWrapper>,
    pub(super) family: Rc<Family>,
    /// Where its input goes, if it has any.
    pub(super) stdin: Option<ChildStdin>,
}

/// Starts the command in a session of its own: no terminal to take, and one signal reaches its children too.
pub(super) fn start(
    spec: &ShellSpec,
    vars: Vars,
    mark: Mark,
    stdin: Stdio,
) -> Result<(Child, ChildStdout, ChildStderr), ShellError> {
    // Checked first: otherwise the system blames `bash` for a directory that is gone.
    if !spec.cwd.is_dir() {
        return Err(ShellError::NoDirectory { path: spec.cwd.clone() });
    }
    let mut command = CommandWrap::with_new("bash", |it| {
        // `--`, because a command may begin with a dash; no BASH_ENV, because it names a file that bash would run first.
        it.args(["-c", "--", &spec.command]).current_dir(&spec.cwd);
        it.env_clear().envs(vars).envs(QUIET).envs([mark.variable()]).env_remove("BASH_ENV");
        it.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    });
    let mut leader =
        command.wrap(ProcessSession).spawn().map_err(|source| match source.kind() {
            ErrorKind::NotFound => ShellError::NoBash,
            ErrorKind::ArgumentListTooLong => ShellError::TooLong { bytes: spec.command.len() },
            _ => ShellError::Start { source },
        })?;
    let stdout = leader.stdout().take().expect("stdout is piped");
    let stderr = leader.stderr().take().expect("stderr is piped");
    let stdin = leader.stdin().take();
    let id = leader.id().expect("nobody has waited for it yet");
    let id = Pid::from_raw(i32::try_from(id).expect("the system's own ids are i32"));
    let family = Family::new(id, mark);
    // Not the wrapper's own `wait`: where orphans become our children (as process 1 of a container) it would wait for
    // those too, and `server &` would hang.
    Ok((Child { leader: leader.into_inner(), family, stdin }, stdout, stderr))
}

/// Gives a command its input. One that does not read it, or ends before, has done nothing wrong.
pub(super) async fn feed(stdin: Option<ChildStdin>, input: &[u8]) {
    if let Some(mut stdin) = stdin {
        stdin.write_all(input).await.ok();
    }
}

impl Child {
    /// Resolves when bash ends, whatever its children do.
    pub(super) async fn exit(&mut self) -> Option<ExitStatus> {
        self.leader.wait().await.ok()
    }

    /// After a TERM: see [`end_within`]. There is no status if the system cannot even kill bash.
    pub(super) async fn end(&mut self, grace: Duration) -> Option<ExitStatus> {
        end_within(grace, &[Rc::clone(&self.family)]).await;
        timeout(AFTER_KILL, self.exit()).await.ok().flatten()
    }
}
