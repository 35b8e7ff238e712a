//! Part of `persistence`: a new session that begins like a saved one.
//!
//! Full-size counterpart: the forks of the session package.
//! Watch for: the log that is read may belong to a program that runs. It is neither locked nor changed, and a new log
//! takes its bytes as they are, unknown fields included.

use serde_json::json;

use super::{
    Loaded, Persistence,
    error::PersistenceError,
    file,
    read::{Log, Tail},
};
use crate::harness::session::event::EventBody;

impl Persistence {
    /// Makes a new session of the whole turns of a saved one, and reserves it for this process.
    pub fn fork(&self, id: &str) -> Result<Loaded, PersistenceError> {
        let from = self.folder.find(id)?;
        let path = self.folder.log(&from);
        let (source, mut log) = file::look(&path)?;
        let (bytes, events) = log.whole_turns();
        let left_out = left_out(&log, &from);
        log.events.truncate(events);
        let (Some(last), turns @ 1..) = (log.events.last(), turns(&log)) else {
            return Err(PersistenceError::NoWholeTurn { path });
        };
        let id = self.sessions.fresh_id();
        let origin = json!({ "session": from, "turns": turns, "seq": last.seq });
        let header = json!({ "type": "session", "id": id, "created": self.sessions.now(), "forkedFrom": origin });
        let mut file = self.create(&id)?;
        file.begin(&header.to_string(), (&source, bytes))?;
        self.files.borrow_mut().insert(id.clone(), file);
        let plural = if turns == 1 { "" } else { "s" };
        let begins = format!("it begins with {turns} turn{plural} of session {from}");
        let notes = [Some(begins), left_out, self.moved(&log.events)];
        Ok(Loaded { id, history: log.events, notes: notes.into_iter().flatten().collect() })
    }
}

fn turns(log: &Log) -> usize {
    log.events.iter().filter(|it| matches!(it.body, EventBody::TurnEnd { .. })).count()
}

fn left_out(log: &Log, from: &str) -> Option<String> {
    match (log.trace.open_turn(), log.tail) {
        (Some(turn), _) => {
            Some(format!("turn {turn} of {from} did not come to its end and is left out"))
        }
        (None, Tail::Torn) => {
            Some(format!("{from} ends with a write that was cut short; it is left out"))
        }
        (None, Tail::Clean | Tail::NoLineEnd) => None,
    }
}
