//! Part of `tool-files`: which files a session has read, and what they were then.
//!
//! Watch for: the content decides. A time is no proof that nothing changed, nor that something did.

use std::{
    cell::RefCell,
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

use super::{error::FileError, place::Place};
use crate::harness::session::Session;

/// The content of a file at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    size: usize,
    hash: u64,
}

impl Version {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        Self { size: bytes.len(), hash: hasher.finish() }
    }
}

/// What each session knows; calls of no session share one place.
#[derive(Default)]
pub(super) struct Seen(RefCell<HashMap<String, HashMap<PathBuf, Version>>>);

impl Seen {
    /// A session has read a file, or written it.
    pub(super) fn note(&self, session: Option<&Session>, path: &Path, version: Version) {
        let mut sessions = self.0.borrow_mut();
        sessions.entry(id(session)).or_default().insert(path.to_owned(), version);
    }

    /// An error if the session does not know this content.
    pub(super) fn check(
        &self,
        session: Option<&Session>,
        place: &Place,
        now: Version,
    ) -> Result<(), FileError> {
        let name = || place.name.clone();
        let sessions = self.0.borrow();
        match sessions.get(&id(session)).and_then(|it| it.get(&place.path)) {
            None => Err(FileError::Unread { name: name() }),
            Some(then) if *then != now => Err(FileError::Changed { name: name() }),
            Some(_) => Ok(()),
        }
    }
}

fn id(session: Option<&Session>) -> String {
    session.map(|it| it.id().to_owned()).unwrap_or_default()
}
