//! One command as the system sees it: a leader, its process group, and how they are made to end.
//!
//! Full-size counterpart: the process handling of the local shell.
//! Watch for: a number of a group means nothing once the group is gone, so it is forgotten then, not kept for later.

use std::{cell::RefCell, collections::BTreeSet, io::ErrorKind, process::Stdio, rc::Rc, time::Duration};

use nix::{
    sys::{
        signal::{Signal, killpg},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::Pid,
};
use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use tokio::{
    process::{ChildStderr, ChildStdout},
    time::{sleep, timeout},
};

use crate::harness::shell::{ShellError, ShellSpec, Vars};

/// No colours, no pagers, no editors, no questions: nobody is there to answer.
const QUIET: [(&str, &str); 6] = [
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
];
/// How long the system may take to end what was killed.
const AFTER_KILL: Duration = Duration::from_secs(1);
/// How often to look at a group that is about to end,
pub(super) const SOON: Duration = Duration::from_millis(10);
/// and at one that may live for long.
pub(super) const SOMETIMES: Duration = Duration::from_secs(1);

/// A process group: a command and the children that did not leave it.
// Omitted: a child that starts a session of its own (a daemon) is out of reach. Only a control group would hold it, and
// those need rights that a user's program does not have everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group(Pid);

/// The groups that may still have processes.
pub(super) type Groups = Rc<RefCell<BTreeSet<Group>>>;

/// A command that was started.
pub(super) struct Child {
    leader: Box<dyn ChildWrapper>,
    pub(super) group: Group,
}

/// Starts the command in a session of its own: no terminal to take, and one signal reaches its children too.
pub(super) fn start(spec: &ShellSpec, vars: Vars) -> Result<(Child, ChildStdout, ChildStderr), ShellError> {
    // Checked first: otherwise the system blames `bash` for a directory that is gone.
    if !spec.cwd.is_dir() {
        return Err(ShellError::NoDirectory { path: spec.cwd.clone() });
    }
    let mut command = CommandWrap::with_new("bash", |it| {
        // `--`, because a command may begin with a dash; no BASH_ENV, because it names a file that bash would run first.
        it.args(["-c", "--", &spec.command]).current_dir(&spec.cwd);
        it.env_clear().envs(vars).envs(QUIET).env_remove("BASH_ENV");
        it.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    });
    let mut leader = command.wrap(ProcessSession).spawn().map_err(|source| match source.kind() {
        ErrorKind::NotFound => ShellError::NoBash,
        ErrorKind::ArgumentListTooLong => ShellError::TooLong { bytes: spec.command.len() },
        _ => ShellError::Start { source },
    })?;
    let stdout = leader.stdout().take().expect("stdout is piped");
    let stderr = leader.stderr().take().expect("stderr is piped");
    let id = leader.id().expect("nobody has waited for it yet");
    let group = Group(Pid::from_raw(i32::try_from(id).expect("the system's own ids are i32")));
    // Not the wrapper's own `wait`: where orphans become our children (as process 1 of a container) it would wait for
    // those too, and `server &` would hang.
    Ok((Child { leader: leader.into_inner(), group }, stdout, stderr))
}

impl Child {
    /// Resolves when the leader ends, whatever its children do. May be called again.
    pub(super) async fn exit(&mut self) -> Option<std::process::ExitStatus> {
        self.leader.wait().await.ok()
    }

    /// After a TERM: waits for the whole group, and kills what is left when the grace is over.
    pub(super) async fn end(&mut self, grace: Duration) {
        let group = self.group;
        end_within(grace, &[group], async || {
            self.exit().await;
            group.gone(SOON).await;
        })
        .await;
    }
}

impl Group {
    pub(super) fn signal(self, signal: Signal) {
        // An error means that nobody is left to be signalled.
        killpg(self.0, signal).ok();
    }

    /// Whether no process is left that we could stop. Not to be asked before the leader was waited for.
    fn is_gone(self) -> bool {
        // Orphans become children of process 1; where that is us, nobody else buries them.
        let anyone = Pid::from_raw(-self.0.as_raw());
        while let Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) = waitpid(anyone, Some(WaitPidFlag::WNOHANG)) {}
        killpg(self.0, None).is_err()
    }

    /// Resolves when no process is left. The system tells nobody about orphans, so this looks from time to time.
    pub(super) async fn gone(self, every: Duration) {
        while !self.is_gone() {
            sleep(every).await;
        }
    }
}

/// Stops every group: TERM to all at once, KILL after the grace.
pub(super) async fn stop_all(groups: &[Group], grace: Duration) {
    groups.iter().for_each(|it| it.signal(Signal::SIGTERM));
    end_within(grace, groups, async || {
        for group in groups {
            group.gone(SOON).await;
        }
    })
    .await;
}

async fn end_within(grace: Duration, groups: &[Group], mut gone: impl AsyncFnMut()) {
    if timeout(grace, gone()).await.is_err() {
        groups.iter().for_each(|it| it.signal(Signal::SIGKILL));
        timeout(AFTER_KILL, gone()).await.ok();
    }
}
