//! Part of `persistence`: keeps the events of open sessions as they come.
//!
//! Watch for: an event is on its way into the log and not in it yet; what fails here did not happen.

use std::{fs, rc::Rc};

use super::{Persistence, error::PersistenceError, file::LogFile};
use crate::{
    cordis::{BoxError, Notice, Warning},
    harness::session::{
        Session, Store,
        event::{Event, EventBody},
    },
};

impl Store for Persistence {
    /// A session without events has no file, and one that was loaded has it already.
    fn open(&self, session: &Session) -> Result<(), BoxError> {
        if session.is_empty() || self.files.borrow().contains_key(session.id()) {
            return Ok(());
        }
        let file = self.catch_up(session)?;
        self.files.borrow_mut().insert(session.id().into(), file);
        self.ctx.emit(&Notice(format!("session {} is saved again", session.id())));
        Ok(())
    }

    // Differs: the full-size project writes every 200 ms and waits for the disk before each request. One user makes
    // few events, and a write at once leaves no moment in which a kill loses one.
    fn write(&self, session: &Session, line: &str, event: &Event) -> Result<(), BoxError> {
        let id = session.id();
        match self.put(id, line, event) {
            Err(source) if session.is_mid_turn() => {
                Err(PersistenceError::LeftOpen { id: id.into(), source: source.into() }.into())
            }
            kept => Ok(kept?),
        }
    }

    fn close(&self, session: &Session) {
        let kept = self.files.borrow_mut().remove(session.id());
        if kept.is_some() && session.sealed().is_none() {
            self.ctx.emit(&Warning(format!("session {} is no longer saved", session.id())));
        }
    }
}

impl Persistence {
    /// The file of a session that is open already, brought up to date.
    fn catch_up(&self, session: &Session) -> Result<LogFile, PersistenceError> {
        let (id, path, events) = (session.id(), self.folder.log(session.id()), session.events());
        if path.symlink_metadata().is_err() {
            return write_all(self.create(id)?, &events);
        }
        let mut file = LogFile::open(&path, id)?;
        let log = file.read()?;
        let saved = log.events.len();
        let known = |it: &Event| (it.seq, it.time, it.body.kind().to_string());
        if !events.iter().take(saved).map(|it| known(it)).eq(log.events.iter().map(known)) {
            return Err(PersistenceError::Changed { path });
        }
        if let Some(note) = file.go_on(&log)? {
            self.ctx.emit(&Notice(note));
        }
        write_all(file, &events[saved..])
    }

    fn put(&self, id: &str, line: &str, event: &Event) -> Result<(), PersistenceError> {
        let mut files = self.files.borrow_mut();
        if !files.contains_key(id) {
            files.insert(id.into(), self.create(id)?);
        }
        let file = files.get_mut(id).expect("it was put there");
        match event.body {
            EventBody::TurnEnd { .. } => file.append_and_sync(line),
            _ => file.append(line),
        }
    }

    /// A name in a folder is lost in a power cut like anything that was not synced: that costs as much as the end of a
    /// turn does, once a session.
    pub(super) fn create(&self, id: &str) -> Result<LogFile, PersistenceError> {
        self.folder.create()?;
        let file = LogFile::create(&self.folder.log(id), id)?;
        match self.folder.sync() {
            Ok(()) => Ok(file),
            Err(err) => {
                drop(fs::remove_file(self.folder.log(id)));
                Err(err)
            }
        }
    }
}

fn write_all(mut file: LogFile, events: &[Rc<Event>]) -> Result<LogFile, PersistenceError> {
    for event in events {
        file.append(&event.to_line())?;
    }
    Ok(file)
}
