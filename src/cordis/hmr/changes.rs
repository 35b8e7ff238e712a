//! Which of the watched files are not as the loader knows them.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::cordis::{Loader, loader::files::Print};

/// A file that was written, or got other permissions or another owner, since the loader read it.
#[derive(PartialEq)]
pub(super) struct Change {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    now: Print,
    stamp: Option<Stamp>,
}

/// What it came to.
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

/// What is known of a file beside what it says: who may have written it, and when somebody did.
#[derive(Clone, Copy, PartialEq)]
struct Stamp {
    written: SystemTime,
    mode: u32,
    owners: [u32; 3],
}

impl Stamp {
    /// None for a file that is not there. When it was read does not matter.
    fn of(path: &Path) -> Option<Self> {
        let (file, link) = (fs::metadata(path).ok()?, fs::symlink_metadata(path).ok()?);
        let owners = [file.uid(), file.gid(), link.uid()];
        Some(Self { written: file.modified().ok()?, mode: file.mode(), owners })
    }
}

/// The stamp of each file, as far as it has been acted upon.
#[derive(Default)]
pub(super) struct Memory(HashMap<PathBuf, Option<Stamp>>);

impl Memory {
    pub(super) fn changes(&mut self, loader: &Loader) -> Vec<Change> {
        loader.watched().into_iter().filter_map(|path| self.change(path, loader)).collect()
    }

    fn change(&mut self, path: PathBuf, loader: &Loader) -> Option<Change> {
        let (now, stamp) = (Print::look(&path), Stamp::of(&path));
        let touched = *self.0.entry(path.clone()).or_insert(stamp) != stamp;
        let kind = if loader.last_read(&path) == Some(now) { Kind::Same } else { Kind::Other };
        (touched || kind == Kind::Other).then_some(Change { path, kind, now, stamp })
    }

    /// This change has been acted upon.
    pub(super) fn keep(&mut self, change: Change) {
        self.0.insert(change.path, change.stamp);
    }
}
