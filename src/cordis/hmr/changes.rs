//! Which of the watched files are not as the loader knows them.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::cordis::{Loader, loader::files::Print};

/// A file that was written since the loader read it.
#[derive(PartialEq)]
pub(super) struct Change {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    now: Print,
    time: Option<SystemTime>,
}

/// What a write came to.
#[derive(PartialEq)]
pub(super) enum Kind {
    /// It says something else.
    Other,
    /// It says what it said.
    Same,
}

impl Change {
    /// Whether its writer may be half-way.
    pub(super) fn is_unsettled(&self) -> bool {
        self.now.is_unsettled()
    }
}

/// When each file was last written, as far as that has been acted upon.
#[derive(Default)]
pub(super) struct Memory(HashMap<PathBuf, Option<SystemTime>>);

impl Memory {
    pub(super) fn changes(&mut self, loader: &Loader) -> Vec<Change> {
        loader.watched().into_iter().filter_map(|path| self.change(path, loader)).collect()
    }

    fn change(&mut self, path: PathBuf, loader: &Loader) -> Option<Change> {
        let (now, time) = (Print::look(&path), time(&path));
        let written = *self.0.entry(path.clone()).or_insert(time) != time;
        let kind = if loader.last_read(&path) == Some(now) { Kind::Same } else { Kind::Other };
        (written || kind == Kind::Other).then_some(Change { path, kind, now, time })
    }

    /// This change has been acted upon.
    pub(super) fn keep(&mut self, change: Change) {
        self.0.insert(change.path, change.time);
    }
}

fn time(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|it| it.modified()).ok()
}
