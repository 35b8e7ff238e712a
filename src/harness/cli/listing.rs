//! Saved sessions and entries as a person reads them.
//!
//! Part of `cli`.

use std::fmt::Write;
use std::time::SystemTime;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::text::{counted, line};
use crate::cordis::State;
use crate::cordis::loader::{EntryStatus, Standing};
use crate::harness::persistence::Repaired;
use crate::harness::persistence::saved::{Saved, SavedState};

/// One line a session, last changed first: id, local time, turns, state, first words.
pub(super) fn table(sessions: &[Saved]) -> String {
    let width = sessions.iter().map(|it| it.id.len()).max().unwrap_or_default();
    let mut table = String::new();
    for Saved { id, changed, turns, state, words, forked_from } in sessions {
        let (time, state, mut words) = (local(*changed), name_of(*state), line(words));
        if let Some(from) = forked_from {
            write!(words, "  (forked from {})", line(from)).expect("as below");
        }
        let turns = counted(*turns, "turn");
        writeln!(table, "{id:width$}  {time}  {turns:<9}  {state:7}  {words}")
            .expect("a string takes all that is written");
    }
    table
}

/// The same with what each has registered below it; `owned` are tools and the paths of the plugins that offer them.
pub(super) fn registered(all: &[EntryStatus], owned: &[(String, String)]) -> String {
    let details = all.iter().map(|it| {
        let path = format!("loader > {}", it.id);
        let is_of = |owner: &str| {
            owner.strip_prefix(&path).is_some_and(|it| it.is_empty() || it.starts_with(" > "))
        };
        let tools = owned.iter().filter(|(_, owner)| is_of(owner)).map(|(name, _)| name.clone());
        let parts = [
            ("provides", it.registered.services.clone()),
            ("tools", tools.collect()),
            ("listens to", it.registered.events.clone()),
        ];
        let said = parts.iter().filter(|(_, names)| !names.is_empty());
        let said: Vec<_> =
            said.map(|(what, names)| format!("{what} {}", names.join(", "))).collect();
        if said.is_empty() { String::new() } else { format!("    {}\n", line(&said.join("; "))) }
    });
    entries(all)
        .lines()
        .zip(details)
        .flat_map(|(entry, details)| [entry.to_owned(), "\n".to_owned(), details])
        .collect()
}

/// One line an entry, in the order of the file: id, name, what became of it.
pub(crate) fn entries(entries: &[EntryStatus]) -> String {
    let width = |part: fn(&EntryStatus) -> &String| {
        entries.iter().map(|it| line(part(it)).chars().count()).max().unwrap_or_default()
    };
    let (ids, names) = (width(|it| &it.id), width(|it| &it.name));
    let row = |it: &EntryStatus| {
        let (id, name, standing) = (line(&it.id), line(&it.name), line(&standing(it)));
        format!("{id:ids$}  {name:names$}  {standing}\n")
    };
    entries.iter().map(row).collect()
}

fn standing(entry: &EntryStatus) -> String {
    let because = |word: &str| match &entry.error {
        Some(error) => format!("{word}: {error}"),
        None => word.to_owned(),
    };
    match entry.standing {
        Standing::Disabled => "disabled".into(),
        Standing::NotLoaded => because("not loaded"),
        Standing::Mounted(State::Active) => because("active"),
        Standing::Mounted(State::Pending) => format!("waits for {}", entry.missing.join(", ")),
        Standing::Mounted(State::Loading) => "still starting".into(),
        Standing::Mounted(State::Failed) => because("failed"),
        Standing::Mounted(State::Unloading | State::Disposed) => {
            "unmounted by another plugin".into()
        }
    }
}

/// What a repair did.
pub(super) fn repair(repaired: &Repaired) -> String {
    let id = &repaired.id;
    let added: Vec<_> = repaired.added.iter().map(|it| it.body.kind()).collect();
    match added.as_slice() {
        [] => format!("session {id} needed no repair\n"),
        added => format!("session {id} is closed now; appended {}\n", added.join(", ")),
    }
}

fn name_of(state: SavedState) -> &'static str {
    match state {
        SavedState::Closed => "closed",
        SavedState::Open => "open",
        SavedState::Damaged => "damaged",
    }
}

fn local(time: SystemTime) -> String {
    match Timestamp::try_from(time) {
        Ok(time) => {
            time.to_zoned_datetime(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
        }
        Err(_) => "(no time)".into(),
    }
}
