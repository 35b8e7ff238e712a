//! The processes of one command: which they are, and how they are made to end.
//!
//! Full-size counterpart: the process handling of the local shell, which knows the main group only.
//! Watch for: the number of a session means nothing once its last process is gone, so it is forgotten then, not kept.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read},
    rc::Rc,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::{Pid, getsid},
};
use tokio::time::{sleep, timeout};

/// A variable in the environment of each command, by which its processes are known wherever they went.
const MARK: &str = "NANO_CORDIS_COMMAND";
/// An environment is read at one go if it is not longer than this.
const ENVIRONMENT: usize = 64 << 10;
/// How long the system may take to end what was killed.
pub(crate) const AFTER_KILL: Duration = Duration::from_secs(1);
/// How often to look for processes that are about to end,
pub(crate) const SOON: Duration = Duration::from_millis(10);
/// and for those that may live for long.
pub(crate) const SOMETIMES: Duration = Duration::from_secs(5);

/// The value of that variable: it tells one command of one shell from all others.
#[derive(Clone, Debug)]
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new(shell: &str, number: u64) -> Self {
        Self(format!("{shell}-{number}"))
    }

    pub(crate) fn variable(&self) -> (&str, &str) {
        (MARK, &self.0)
    }

    /// Whether a process was started with this mark. One that hides its environment, as `sudo` does, is not known by it.
    fn is_on(&self, process: Pid) -> Marked {
        let Ok(mut vars) = environment(process) else { return Marked::No };
        let command_line = || fs::read(format!("/proc/{process}/cmdline"));
        if vars.is_empty() && command_line().is_ok_and(|it| it.is_empty()) {
            return Marked::Later;
        }
        if vars.is_empty() {
            // It may have become that program between the two.
            vars = environment(process).unwrap_or_default();
        }
        let mut values = vars
            .split(|it| *it == 0)
            .filter_map(|it| it.strip_prefix(MARK.as_bytes()).and_then(|it| it.strip_prefix(b"=")));
        match values.next() {
            Some(value) if value == self.0.as_bytes() => Marked::Yes,
            None if vars.is_empty() => Marked::Unsure,
            _ => Marked::No,
        }
    }
}

/// Whether a process has a mark.
enum Marked {
    Yes,
    No,
    /// It becomes another program just now, which may take a while: until then it has no command line and no environment.
    Later,
    /// Its environment is empty each time that it is read.
    Unsure,
}

/// A command and all processes that it started: those of its session, and those that left it for one of their own.
// Omitted: a daemon that also threw its environment away, or wrote its title over it as nginx does, is out of reach. Only a
// control group would hold it, and a user's program may not always make one.
#[derive(Debug)]
pub(crate) struct Family {
    leader: Pid,
    mark: Mark,
    has_session: Cell<bool>,
    /// Whose environment was empty when it was looked at last.
    unsure: RefCell<BTreeSet<Pid>>,
    /// Where the numbers of processes begin again.
    round: i32,
}

/// The families that may still have processes.
pub(crate) type Families = Rc<RefCell<Vec<Rc<Family>>>>;

impl Family {
    pub(crate) fn new(leader: Pid, mark: Mark) -> Rc<Self> {
        let round = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
        let round = round.trim().parse().unwrap_or(i32::MAX);
        let (has_session, unsure) = (Cell::new(true), RefCell::default());
        Rc::new(Self { leader, mark, has_session, unsure, round })
    }

    /// Signals all, the main group first and at once: bash must not see a child die and go on with the next command.
    pub(crate) fn signal(&self, signal: Signal) {
        let found = self.look();
        let groups = found.map_or_else(|| BTreeSet::from([self.leader]), |it| it.groups);
        let (main, others): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|it| *it == self.leader);
        for group in main.into_iter().chain(others) {
            // An error means that nobody was left to be signalled.
            killpg(group, signal).ok();
        }
    }

    /// Resolves when nobody is left. The system tells nobody about orphans, so this looks from time to time.
    pub(crate) async fn gone(&self, every: Duration) {
        while !self.is_gone() {
            sleep(every).await;
        }
    }

    fn is_gone(&self) -> bool {
        match self.look() {
            Some(Found { groups, more }) => groups.is_empty() && !more,
            None => killpg(self.leader, None).is_err(),
        }
    }

    /// Looks for the process groups that have a living process: `timeout` and job control make their own. Only the
    /// process table tells, and it tells the living from the dead that nobody has buried yet. `None` where there is no
    /// such table; then the main group is all that can be reached.
    fn look(&self) -> Option<Found> {
        let all = fs::read_dir("/proc").ok()?.flatten();
        let all = all.filter_map(|it| it.file_name().to_str()?.parse().ok()).map(Pid::from_raw);
        let (mut groups, mut unsure) = (BTreeSet::new(), BTreeSet::new());
        let (mut has_session, mut later) = (false, false);
        for process in all {
            // Asked first, because a server has thousands of processes and to read about one takes long.
            let Ok(session) = getsid(Some(process)) else { continue };
            let is_within = session == self.leader && self.has_session.get();
            has_session |= is_within;
            if !is_within && !self.may_have_begun(session) {
                continue;
            }
            match if is_within { Marked::Yes } else { self.mark.is_on(process) } {
                Marked::Yes => groups.extend(living_group(process)),
                Marked::Later => later |= living_group(process).is_some(),
                Marked::Unsure if living_group(process).is_some() => drop(unsure.insert(process)),
                Marked::Unsure | Marked::No => {}
            }
        }
        self.has_session.set(has_session);
        // Whoever had none at two looks is a stranger.
        let before = self.unsure.replace(unsure);
        let more = later || self.unsure.borrow().iter().any(|it| !before.contains(it));
        Some(Found { groups, more })
    }

    /// A session has the number of its first process, and numbers rise until they begin again: one that is less than
    /// half of the way round above ours is not older. 0 is that of the system itself.
    fn may_have_begun(&self, session: Pid) -> bool {
        session.as_raw() != 0
            && (session.as_raw() - self.leader.as_raw()).rem_euclid(self.round) < self.round / 2
    }
}

/// What one look at the process table found.
struct Found {
    /// The process groups of the command.
    groups: BTreeSet<Pid>,
    /// There may be more at the next look.
    more: bool,
}

/// What a process was started with, at one go: between two it may become another program, and the rest is nowhere.
fn environment(process: Pid) -> io::Result<Vec<u8>> {
    let (mut vars, mut length) = (vec![0; ENVIRONMENT], 0);
    let mut file = File::open(format!("/proc/{process}/environ"))?;
    while let count @ 1.. = file.read(&mut vars[length..])? {
        length += count;
        if length == vars.len() {
            vars.resize(length * 2, 0);
        }
    }
    vars.truncate(length);
    Ok(vars)
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
pub(crate) async fn stop_all(families: &[Rc<Family>], grace: Duration) {
    signal_all(families, Signal::SIGTERM);
    end_within(grace, families).await;
}

/// Waits until nobody is left, and kills who is when the grace is over.
pub(crate) async fn end_within(grace: Duration, families: &[Rc<Family>]) {
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

fn signal_all(families: &[Rc<Family>], signal: Signal) {
    for family in families {
        family.signal(signal);
    }
}
