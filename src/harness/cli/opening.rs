//! What a run is about: a new session, a saved one, or saved sessions themselves.
//!
//! Part of `cli`. The command line is used once a process; after a reload a new session begins.

use std::rc::Rc;

use super::arguments::OutputFormat;
use super::status::COMPLETED;
use super::{Cli, listing};
use crate::cordis::{BoxError, Svc};
use crate::harness::persistence::{Loaded, Persistence};
use crate::harness::session::Session;

impl Cli {
    /// The session to lead; none if the run was about something else, which is done now.
    pub(super) fn open(&self, is_first: bool) -> Result<Option<Rc<Session>>, BoxError> {
        let arguments = self.console.arguments();
        if !is_first {
            return Ok(Some(self.sessions.create()?));
        }
        match &arguments.repair {
            Some(id) => return self.repair(id).map(|()| None),
            None if arguments.sessions => return self.list().map(|()| None),
            None => {}
        }
        match (&arguments.resume, &arguments.fork) {
            (Some(id), _) => self.resume(id).map(Some),
            (None, Some(id)) => self.go_on(self.saved()?.fork(id)?).map(Some),
            (None, None) if arguments.resume_newest => {
                self.resume(&self.saved()?.newest()?).map(Some)
            }
            (None, None) => Ok(Some(self.sessions.create()?)),
        }
    }

    fn resume(&self, id: &str) -> Result<Rc<Session>, BoxError> {
        self.go_on(self.saved()?.load(id)?)
    }

    fn go_on(&self, loaded: Loaded) -> Result<Rc<Session>, BoxError> {
        loaded.notes.iter().for_each(|it| self.console.notice(it));
        Ok(self.sessions.restore(&loaded.id, loaded.history)?)
    }

    fn repair(&self, id: &str) -> Result<(), BoxError> {
        let repaired = self.saved()?.repair(id)?;
        repaired.notes.iter().for_each(|it| self.console.notice(it));
        self.console.say(&listing::repair(&repaired));
        self.console.finish(COMPLETED);
        Ok(())
    }

    fn list(&self) -> Result<(), BoxError> {
        let saved = self.saved()?;
        match saved.list()?.as_slice() {
            [] => self.console.notice(&format!("no session in {}", saved.dir().display())),
            list => self.console.say(&listing::table(list)),
        }
        self.console.finish(COMPLETED);
        Ok(())
    }

    pub(super) fn saved(&self) -> Result<Svc<Persistence>, BoxError> {
        let missing = "sessions are not saved here: no entry provides `persistence`";
        self.persistence.get().ok_or_else(|| missing.into())
    }

    /// Tells the user how to come back to this conversation.
    pub(super) fn greet(&self, session: &Session) {
        let is_for_people = self.console.format() == OutputFormat::Text;
        if self.console.is_terminal() && is_for_people && !self.console.arguments().quiet {
            self.console.say(&format!("{}\n", introduction(session)));
        } else {
            self.console.notice(&introduction(session));
        }
        if let Some(earlier) = self.console.enter(session.id()) {
            let notice = format!("this is a new session; the one before it was {earlier}");
            self.console.notice(&notice);
        }
    }
}

/// The session, in words.
pub(super) fn introduction(session: &Session) -> String {
    let id = session.id();
    format!("session {id} (continue later: nano-cordis --resume {id})")
}
