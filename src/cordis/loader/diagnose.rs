//! Words for what is wrong with a set of entries: who failed, and who waits for whom.

use super::{Entry, plan::Slot};
use crate::cordis::{Error, State};

/// Where an entry stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The list or `--disable` says so.
    Disabled,
    /// Its module could not be loaded.
    NotLoaded,
    /// It is mounted; this is the state of its plugin.
    Mounted(State),
}

/// One entry, for people to look at.
#[derive(Debug, Clone)]
pub struct EntryStatus {
    /// As in the file.
    pub id: String,
    /// As in the file.
    pub name: String,
    /// Where it stands.
    pub standing: Standing,
    /// The services it waits for.
    pub missing: Vec<String>,
    /// Why it failed, or why a newer version of it could not be loaded.
    pub error: Option<String>,
    /// Whether the program may run without it.
    pub optional: bool,
    /// Whether its plugin guards something.
    pub guard: bool,
    /// Whether what runs is not what the file says, because that could not be loaded.
    pub stale: bool,
}

impl EntryStatus {
    /// What became of one entry.
    pub(super) fn of(slot: &Slot) -> Self {
        let Entry { id, name, optional, .. } = slot.entry.clone();
        let running = slot.running.as_ref();
        let standing = match running {
            _ if slot.entry.disabled => Standing::Disabled,
            None => Standing::NotLoaded,
            Some(running) => Standing::Mounted(running.mount.state()),
        };
        let waits = running.filter(|_| standing == Standing::Mounted(State::Pending));
        let missing = waits.map(|it| it.mount.missing()).unwrap_or_default();
        let error = slot.failure.clone().or_else(|| running?.mount.error().map(|err| cause(&err)));
        let stale = running.is_some() && slot.failure.is_some();
        let guard = running.is_some_and(|it| it.def.is_guard());
        Self { id, name, standing, missing, error, optional, guard, stale }
    }
}

/// The error of a plugin without its path, which whoever reads it knows.
fn cause(err: &Error) -> String {
    match err {
        Error::Body { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

/// More than this is no longer read.
const SHOWN: usize = 8;

/// Why the program is not complete, in one line; nothing if every entry that must run does.
///
/// Failures come first, because they are causes; then the waits, each with a word if no entry looks like a provider.
pub(super) fn problem(entries: &[EntryStatus]) -> Option<String> {
    let wanted: Vec<_> =
        entries.iter().filter(|it| !it.optional && it.standing != Standing::Disabled).collect();
    let failures = wanted.iter().filter_map(|it| failure(it));
    let waits = wanted
        .iter()
        .flat_map(|it| it.missing.iter().map(|service| wait(&it.id, service, &wanted)));
    let moving = wanted.iter().filter_map(|it| moving(it));
    let all: Vec<String> = failures.chain(waits).chain(moving).collect();
    let more = all.len().saturating_sub(SHOWN);
    let rest = (more > 0).then(|| format!("and {more} more"));
    let shown: Vec<_> = all.into_iter().take(SHOWN).chain(rest).collect();
    (!shown.is_empty()).then(|| shown.join("; "))
}

fn failure(entry: &EntryStatus) -> Option<String> {
    let error = entry.error.as_deref().unwrap_or("no reason is known");
    match entry.standing {
        Standing::NotLoaded | Standing::Mounted(State::Failed) => {
            Some(format!("entry `{}`: {error}", entry.id))
        }
        Standing::Mounted(State::Disposed) => {
            Some(format!("entry `{}` was unmounted by another plugin", entry.id))
        }
        _ => None,
    }
}

fn moving(entry: &EntryStatus) -> Option<String> {
    let what = match entry.standing {
        Standing::Mounted(State::Loading) => "is still starting",
        Standing::Mounted(State::Unloading) => "is still stopping",
        Standing::Mounted(State::Pending) if entry.missing.is_empty() => "is about to start",
        _ => return None,
    };
    Some(format!("entry `{}` {what}", entry.id))
}

/// Nobody declares what it provides, so the likely provider is the entry that is called like the service.
fn wait(id: &str, service: &str, wanted: &[&EntryStatus]) -> String {
    let called_so =
        |it: &&&EntryStatus| [&it.id, &it.name].iter().any(|name| plain(name) == plain(service));
    match wanted.iter().find(called_so) {
        Some(_) => format!("`{id}` waits for `{service}`"),
        None => format!("`{id}` waits for `{service}`, which no entry provides"),
    }
}

/// `agentLoop` and `./src/harness/agent-loop.ts` are the same word.
fn plain(name: &str) -> String {
    let stem = name.rsplit('/').next().unwrap_or(name).split('.').next().unwrap_or(name);
    stem.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}
