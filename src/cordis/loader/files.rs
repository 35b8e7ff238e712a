//! What the loader last read of each file, so that whoever watches can tell a change from a mere event.

use std::{
    cell::RefCell,
    collections::HashMap,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
};

/// The content of a file at one moment, as far as it matters whether it is another one now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Print {
    /// Not there, or not to be read.
    Missing,
    /// Nothing but white space: what is left between the two steps of a careless save.
    Blank,
    /// A pipe or a device, which cannot be read twice.
    Stream,
    /// Length and hash of the bytes.
    Content(usize, u64),
}

impl Print {
    /// Reads a file for its print only.
    pub(crate) fn look(path: &Path) -> Self {
        match fs::metadata(path) {
            Ok(found) if found.is_file() => {
                fs::read(path).map_or(Self::Missing, |bytes| Self::of(&bytes))
            }
            Ok(found) if !found.is_dir() => Self::Stream,
            _ => Self::Missing,
        }
    }

    /// Whether a writer may be half-way.
    pub(crate) fn is_unsettled(self) -> bool {
        matches!(self, Self::Missing | Self::Blank)
    }

    fn of(bytes: &[u8]) -> Self {
        if bytes.trim_ascii().is_empty() {
            return Self::Blank;
        }
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        Self::Content(bytes.len(), hasher.finish())
    }
}

/// The prints of everything that was read so far.
#[derive(Default)]
pub(super) struct Files(RefCell<HashMap<PathBuf, Print>>);

impl Files {
    /// Reads a file and remembers what it was.
    pub(super) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let bytes = fs::read(path);
        let print = match &bytes {
            Ok(bytes) if path.is_file() => Print::of(bytes),
            Ok(_) => Print::Stream,
            Err(_) => Print::Missing,
        };
        self.0.borrow_mut().insert(path.to_owned(), print);
        bytes
    }

    /// Remembers what files were that somebody else has read.
    pub(super) fn keep(&self, prints: impl IntoIterator<Item = (Print, PathBuf)>) {
        self.0.borrow_mut().extend(prints.into_iter().map(|(print, path)| (path, print)));
    }

    pub(super) fn last(&self, path: &Path) -> Option<Print> {
        self.0.borrow().get(path).copied()
    }
}
