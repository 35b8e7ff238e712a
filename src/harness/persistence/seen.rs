//! Part of `persistence`: a saved session as it is now, to be looked at and not gone on with.
//!
//! Watch for: it may belong to a program that runs. It is neither locked nor changed.

use super::{
    Persistence,
    error::PersistenceError,
    file,
    read::{Log, Tail},
};
use crate::harness::session::event::Event;

/// What a log holds.
#[derive(Debug)]
pub struct Seen {
    /// Its id, in full.
    pub id: String,
    /// Its events.
    pub events: Vec<Event>,
    /// The session whose turns it began with.
    pub forked_from: Option<String>,
    /// What is not whole in it.
    pub notes: Vec<String>,
}

impl Persistence {
    /// Reads a session, of which the id or the beginning of the id is given.
    pub fn look(&self, id: &str) -> Result<Seen, PersistenceError> {
        let id = self.folder.find(id)?;
        let (_, log) = file::look(&self.folder.log(&id))?;
        let notes = lacks(&log);
        let header = log.header.as_ref();
        let forked_from =
            header.and_then(|it| Some(it["forkedFrom"]["session"].as_str()?.to_owned()));
        Ok(Seen { id, events: log.events, forked_from, notes })
    }
}

fn lacks(log: &Log) -> Vec<String> {
    let open = log.trace.open_turn().map(|turn| format!("turn {turn} has not come to its end"));
    let torn = (log.tail == Tail::Torn)
        .then(|| "the log ends with a write that was cut short; it is left out".to_owned());
    open.into_iter().chain(torn).collect()
}
