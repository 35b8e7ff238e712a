//! One command as the system sees it: bash, the processes that it started, and how they are made to end.
//!
//! Full-size counterpart: the process handling of the local shell.
//! Watch for: the number of a session means nothing once its last process is gone, so it is forgotten then, not kept.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    fs,
    io::ErrorKind,
    process::{ExitStatus, Stdio},
    rc::Rc,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::{Pid, getsid},
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
/// How often to look for processes that are about to end,
pub(super) const SOON: Duration = Duration::from_millis(10);
/// and for those that may live for long.
pub(super) const SOMETIMES: Duration = Duration::from_secs(5);

/// A command and all processes of its session: those that it started, unless they began a session of their own.
// Omitted: such a daemon is out of reach. Only a control group would hold it, and a user's program may not always make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Family(Pid);

/// The families that may still have processes.
pub(super) type Families = Rc<RefCell<BTreeSet<Family>>>;

/// A command that was started.
pub(super) struct Child {
    leader: Box<dyn ChildWrapper>,
    pub(super) family: Family,
}

/// Starts the command in a session of its own: no terminal to take, and one signal reaches its children too.
pub(super) fn start(
    spec: &ShellSpec,
    vars: Vars,
) -> Result<(Child, ChildStdout, ChildStderr), ShellError> {
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
    let mut leader =
        command.wrap(ProcessSession).spawn().map_err(|source| match source.kind() {
            ErrorKind::NotFound => ShellError::NoBash,
            ErrorKind::ArgumentListTooLong => ShellError::TooLong { bytes: spec.command.len() },
            _ => ShellError::Start { source },
        })?;
    let stdout = leader.stdout().take().expect("stdout is piped");
    let stderr = leader.stderr().take().expect("stderr is piped");
    let id = leader.id().expect("nobody has waited for it yet");
    let family = Family(Pid::from_raw(i32::try_from(id).expect("the system's own ids are i32")));
    // Not the wrapper's own `wait`: where orphans become our children (as process 1 of a container) it would wait for
    // those too, and `server &` would hang.
    Ok((Child { leader: leader.into_inner(), family }, stdout, stderr))
}

impl Child {
    /// Resolves when bash ends, whatever its children do.
    pub(super) async fn exit(&mut self) -> Option<ExitStatus> {
        self.leader.wait().await.ok()
    }

    /// After a TERM: see [`end_within`]. There is no status if the system cannot even kill bash.
    pub(super) async fn end(&mut self, grace: Duration) -> Option<ExitStatus> {
        end_within(grace, &[self.family]).await;
        timeout(AFTER_KILL, self.exit()).await.ok().flatten()
    }
}

impl Family {
    /// Signals all, the main group first and at once: bash must not see a child die and go on with the next command.
    pub(super) fn signal(self, signal: Signal) {
        let groups = self.groups().unwrap_or_else(|| BTreeSet::from([self.0]));
        let (main, others): (Vec<_>, Vec<_>) = groups.into_iter().partition(|it| *it == self.0);
        for group in main.into_iter().chain(others) {
            // An error means that nobody was left to be signalled.
            killpg(group, signal).ok();
        }
    }

    /// Resolves when nobody is left. The system tells nobody about orphans, so this looks from time to time.
    pub(super) async fn gone(self, every: Duration) {
        while !self.is_gone() {
            sleep(every).await;
        }
    }

    fn is_gone(self) -> bool {
        self.groups().map_or_else(|| killpg(self.0, None).is_err(), |it| it.is_empty())
    }

    /// The process groups of the session that have a living process: `timeout` and job control make their own. Only
    /// the process table tells, and it tells the living from the dead that nobody has buried yet. `None` where there
    /// is no such table; then the main group is all that can be reached.
    fn groups(self) -> Option<BTreeSet<Pid>> {
        let all = fs::read_dir("/proc").ok()?.flatten();
        let all = all.filter_map(|it| it.file_name().to_str()?.parse().ok()).map(Pid::from_raw);
        // Asked first, because a server has thousands of processes and to read about one takes long.
        let ours = all.filter(|it| getsid(Some(*it)) == Ok(self.0));
        Some(ours.filter_map(living_group).collect())
    }
}

/// The group of a process, unless it is dead. `stat` is `pid (name) state parent group …`, and a name may hold anything.
fn living_group(process: Pid) -> Option<Pid> {
    let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let (state, group) = (fields.next()?, fields.nth(1)?);
    let is_alive = !matches!(state, "Z" | "X");
    is_alive.then(|| group.parse().ok().map(Pid::from_raw)).flatten()
}

/// Stops all families: TERM at once, KILL after the grace.
pub(super) async fn stop_all(families: &[Family], grace: Duration) {
    signal_all(families, Signal::SIGTERM);
    end_within(grace, families).await;
}

/// Waits until nobody is left, and kills who is when the grace is over.
async fn end_within(grace: Duration, families: &[Family]) {
    let all_gone = async {
        for family in families {
            family.gone(SOON).await;
        }
    };
    if timeout(grace, all_gone).await.is_ok() {
        return;
    }
    let killed = async {
        while families.iter().any(|it| !it.is_gone()) {
            signal_all(families, Signal::SIGKILL);
            sleep(SOON).await;
        }
    };
    timeout(AFTER_KILL, killed).await.ok();
}

fn signal_all(families: &[Family], signal: Signal) {
    for family in families {
        family.signal(signal);
    }
}
