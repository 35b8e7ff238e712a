//! Persistence: each event of a session is a line of `<dir>/<id>.jsonl`, written before anybody hears of the event.
//!
//! Needs `session`, whose store it is. Provides `persistence`: load, list, repair. Raises `cordis/notice` and
//! `cordis/warning`.
//! Full-size counterpart: the packages session-persistence and session-persistence-jsonl.
//! Watch for: a log is judged before it is touched. What is refused keeps every byte, and its file is locked against
//! other processes from the judgement to the last event.

pub mod error;
pub mod file;
pub mod folder;
pub mod fork;
pub mod read;
pub mod repair;
pub mod saved;
pub mod seen;
mod store;

use std::{
    cell::RefCell,
    collections::HashMap,
    env,
    path::{Path, PathBuf},
    rc::Rc,
};

use nix::libc;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    cordis::{BoxError, Context, Service, Svc},
    harness::{
        persistence::{
            error::PersistenceError, file::LogFile, folder::Folder, read::Log, saved::Saved,
        },
        session::{
            Sessions, Store,
            event::{Event, EventBody},
        },
    },
};

/// What the entry `persistence` may say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// Where the logs are kept, seen from the folder in which the program was started.
    #[serde(default = "default_dir")]
    #[schemars(length(min = 1))]
    dir: PathBuf,
}

fn default_dir() -> PathBuf {
    ".nano/sessions".into()
}

/// The plugin `persistence`.
pub async fn apply(ctx: Context, config: Config, sessions: Svc<Sessions>) -> Result<(), BoxError> {
    // A file-size limit is to be an error of the write that meets it, not the death of the program.
    drop(signal(SignalKind::from_raw(libc::SIGXFSZ))?);
    let (folder, cwd) = (Folder::at(&config.dir)?, env::current_dir()?);
    let files = RefCell::default();
    let persistence =
        Rc::new(Persistence { ctx: ctx.clone(), sessions: sessions.shared(), folder, cwd, files });
    sessions.keep_in(Rc::clone(&persistence) as Rc<dyn Store>)?;
    ctx.provide(persistence)?;
    Ok(())
}

/// The service `persistence`: the sessions of one folder.
pub struct Persistence {
    ctx: Context,
    sessions: Rc<Sessions>,
    folder: Folder,
    cwd: PathBuf,
    files: RefCell<HashMap<String, LogFile>>,
}

impl Service for Persistence {
    const NAME: &'static str = "persistence";
}

/// A session to go on with.
#[derive(Debug)]
pub struct Loaded {
    /// Its id, in full.
    pub id: String,
    /// Its events so far.
    pub history: Vec<Event>,
    /// What the user ought to know.
    pub notes: Vec<String>,
}

/// What a repair did.
#[derive(Debug)]
pub struct Repaired {
    /// The id of the session, in full.
    pub id: String,
    /// The events that were appended; none if the last turn was closed.
    pub added: Vec<Event>,
    /// What the user ought to know.
    pub notes: Vec<String>,
}

impl Persistence {
    /// The folder of the logs.
    pub fn dir(&self) -> &Path {
        self.folder.path()
    }

    /// Reads a session, of which the id or the beginning of the id is given, and reserves it for this process.
    ///
    /// A log that stops within a turn is refused: to go on would be to guess what the model was told.
    // Differs: the full-size project closes such a turn by itself. Here that is `repair`, and the user's decision.
    pub fn load(&self, id: &str) -> Result<Loaded, PersistenceError> {
        let (id, mut file, log) = self.open_log(id)?;
        if let Some(turn) = log.trace.open_turn() {
            let at = log.events.last().map_or_else(String::new, |it| it.body.kind().into());
            let (path, line) = (self.folder.log(&id), log.line);
            return Err(PersistenceError::OpenTurn { path, id, turn, at, line });
        }
        let mut notes: Vec<String> = file.go_on(&log)?.into_iter().collect();
        notes.extend(self.moved(&log.events));
        self.files.borrow_mut().insert(id.clone(), file);
        Ok(Loaded { id, history: log.events, notes })
    }

    /// The id of the session that changed last, whatever state it is in.
    pub fn newest(&self) -> Result<String, PersistenceError> {
        match self.folder.ids()?.into_iter().next() {
            Some((id, _)) => Ok(id),
            None => Err(PersistenceError::NoSessions { dir: self.dir().into() }),
        }
    }

    /// The saved sessions, last changed first. Reads the beginning and the end of each, never the whole.
    pub fn list(&self) -> Result<Vec<Saved>, PersistenceError> {
        let ids = self.folder.ids()?.into_iter();
        Ok(ids.map(|(id, changed)| saved::look(&self.folder.log(&id), id, changed)).collect())
    }

    /// Closes a turn that a dead process left open, by appending what it owed. Nothing else can be mended that way.
    pub fn repair(&self, id: &str) -> Result<Repaired, PersistenceError> {
        let (id, mut file, log) = self.open_log(id).map_err(|err| match err {
            PersistenceError::Damaged { .. } => {
                PersistenceError::BeyondRepair { source: err.into() }
            }
            err => err,
        })?;
        let notes = file.go_on(&log)?.into_iter().collect();
        let last = log.events.last();
        let (seq, time) = last.map_or((0, 0), |it| (it.seq + 1, it.time.max(self.sessions.now())));
        let bodies = repair::closing(&log.trace);
        let added: Vec<_> =
            (seq..).zip(bodies).map(|(seq, body)| Event { seq, time, body }).collect();
        for event in &added {
            file.append(&event.to_line())?;
        }
        file.sync()?;
        Ok(Repaired { id, added, notes })
    }

    fn open_log(&self, id: &str) -> Result<(String, LogFile, Log), PersistenceError> {
        let id = self.folder.find(id)?;
        let file = LogFile::open(&self.folder.log(&id), &id)?;
        let log = file.read()?;
        Ok((id, file, log))
    }

    /// Paths in the conversation mean another place if the session began in another folder.
    fn moved(&self, events: &[Event]) -> Option<String> {
        let logged = events.iter().rev().find_map(|event| match &event.body {
            EventBody::TurnStart { cwd, .. } if !cwd.is_empty() => Some(cwd),
            _ => None,
        })?;
        let now = self.cwd.to_string_lossy();
        (*logged != now).then(|| format!("this session ran in {logged}; commands run in {now} now"))
    }
}
