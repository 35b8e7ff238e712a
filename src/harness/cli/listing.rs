//! Saved sessions as a person reads them.
//!
//! Part of `cli`.

use std::fmt::Write;
use std::time::SystemTime;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::text::{counted, line};
use crate::harness::persistence::Repaired;
use crate::harness::persistence::saved::{Saved, SavedState};

/// One line a session, last changed first: id, local time, turns, state, first words.
pub(super) fn table(sessions: &[Saved]) -> String {
    let width = sessions.iter().map(|it| it.id.len()).max().unwrap_or_default();
    let mut table = String::new();
    for Saved { id, changed, turns, state, words } in sessions {
        let (time, state, words) = (local(*changed), name_of(*state), line(words));
        let turns = counted(*turns, "turn");
        writeln!(table, "{id:width$}  {time}  {turns:<9}  {state:7}  {words}")
            .expect("a string takes all that is written");
    }
    table
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
