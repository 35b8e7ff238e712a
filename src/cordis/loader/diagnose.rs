//! Words for what is wrong with a set of entries: who failed, and who waits for whom.

use std::collections::BTreeSet;

use super::{Applied, Entry, Loader, plan::Slot};
use crate::cordis::{Error, Registered, State, module::did_you_mean, nearest};

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
    /// What its plugin has registered.
    pub registered: Registered,
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
        let registered = running.map(|it| it.mount.registered()).unwrap_or_default();
        Self { id, name, standing, missing, error, optional, guard, stale, registered }
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

/// Who waits for which service.
pub(super) type Waits = BTreeSet<(String, String)>;

impl Loader {
    /// Why the program is not complete, in one line; nothing if every entry that must run does.
    ///
    /// Failures come first, because they are causes; then the waits, each with a word if no entry looks like a provider.
    pub(super) fn fault(&self) -> Option<String> {
        let entries = self.entries();
        let wanted: Vec<_> =
            entries.iter().filter(|it| !it.optional && it.standing != Standing::Disabled).collect();
        let failures = wanted.iter().filter_map(|it| failure(it));
        let waits = wanted
            .iter()
            .flat_map(|it| it.missing.iter().map(|service| self.wait(&it.id, service, &entries)));
        let moving = wanted.iter().filter_map(|it| moving(it));
        listed(failures.chain(waits).chain(moving).collect())
    }

    /// Who waits now of those that a save concerned, and of those that ran before it. At the start whoever started the
    /// loader asks for the fault.
    pub(super) fn new_waits(&self, applied: &Applied) -> Option<String> {
        let entries = self.entries();
        let waits: Waits = { entries.iter() }
            .flat_map(|it| it.missing.iter().map(|service| (it.id.clone(), service.clone())))
            .collect();
        let before = self.waits.replace(Some(waits.clone()))?;
        let is_news =
            |it: &(String, String)| !before.contains(it) || applied.changed.contains(&it.0);
        let news = waits.iter().filter(|it| is_news(it));
        listed(news.map(|(id, service)| self.wait(id, service, &entries)).collect())
    }

    /// Nobody declares what it provides, so the likely provider is the entry that is called like the service.
    fn wait(&self, id: &str, service: &str, entries: &[EntryStatus]) -> String {
        let called_so =
            |it: &&EntryStatus| [&it.id, &it.name].iter().any(|name| plain(name) == plain(service));
        let is_wanted = |it: &&EntryStatus| !it.optional && it.standing != Standing::Disabled;
        if entries.iter().filter(is_wanted).any(|it| called_so(&it)) {
            return format!("`{id}` waits for `{service}`");
        }
        let provided = self.host.service_names();
        let near = nearest(service, provided.iter().map(String::as_str));
        let hint = did_you_mean(near.as_deref());
        format!("`{id}` waits for `{service}`, which no entry provides{hint}")
    }
}

fn listed(all: Vec<String>) -> Option<String> {
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

/// `agentLoop` and `./src/harness/agent-loop.ts` are the same word.
fn plain(name: &str) -> String {
    let stem = name.rsplit('/').next().unwrap_or(name).split('.').next().unwrap_or(name);
    stem.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}
