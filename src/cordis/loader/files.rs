//! The files as the loader reads them, and what it last read of each: so whoever watches can tell a change from a mere
//! event.
//!
//! Watch for: a name may stand for anything, also for a pipe that nobody writes to. Opening one must not hold the program.

use std::{
    borrow::Borrow,
    cell::RefCell,
    collections::HashMap,
    fs::{self, File, FileType, Metadata},
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, Error, ErrorKind, Read},
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use nix::libc;

use super::{Cause, owner::objection};

/// A list or a script has some kilobytes; what is larger was named by mistake.
const LARGEST: u64 = 1 << 20;

/// The content of a file at one moment, as far as it matters whether it is another one now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Print {
    /// Not there, or not to be read.
    Missing,
    /// Nothing but white space: what is left between the two steps of a careless save.
    Blank,
    /// A folder, a pipe, a socket or a device.
    NoFile,
    /// Length and hash of the bytes.
    Content(usize, u64),
}

impl Print {
    /// Reads a file for its print only.
    pub(crate) fn look(path: &Path) -> Self {
        match fs::metadata(path) {
            Ok(found) if found.is_file() => Self::of(&read(path).map(|(bytes, _)| bytes)),
            Ok(_) => Self::NoFile,
            Err(_) => Self::Missing,
        }
    }

    /// Whether a writer may be half-way.
    pub(crate) fn is_unsettled(self) -> bool {
        matches!(self, Self::Missing | Self::Blank)
    }

    fn of(read: &Result<impl AsRef<[u8]>, impl Borrow<Error>>) -> Self {
        match read {
            Ok(bytes) => Self::of_bytes(bytes.as_ref()),
            Err(err) if err.borrow().kind() == ErrorKind::InvalidInput => Self::NoFile,
            Err(_) => Self::Missing,
        }
    }

    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
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
    /// Reads the list and remembers what it was.
    pub(super) fn read(&self, path: &Path) -> Result<Vec<u8>, Cause> {
        let (print, read) = read_code(path);
        self.keep([(print, path.to_owned())]);
        read
    }

    /// Remembers what files were that somebody else has read.
    pub(super) fn keep(&self, prints: impl IntoIterator<Item = (Print, PathBuf)>) {
        self.0.borrow_mut().extend(prints.into_iter().map(|(print, path)| (path, print)));
    }

    pub(super) fn last(&self, path: &Path) -> Option<Print> {
        self.0.borrow().get(path).copied()
    }
}

/// Reads a list or a script. One that others can write is refused, whatever it says.
pub(crate) fn read_code(path: &Path) -> (Print, Result<Vec<u8>, Cause>) {
    let read = read(path);
    let print = Print::of(&read.as_ref().map(|(bytes, _)| bytes));
    let unreadable = |err| Cause::Read(Arc::new(err));
    let trusted = read.map_err(unreadable).and_then(|(bytes, found)| {
        let objection = objection(path, &found).map_err(unreadable)?;
        objection.map_or(Ok(bytes), |problem| Err(Cause::Untrusted(problem)))
    });
    (print, trusted)
}

/// Reads a regular file, and nothing else; with what is known of it.
fn read(path: &Path) -> io::Result<(Vec<u8>, Metadata)> {
    let found = fs::metadata(path).map_err(|err| explained(path, err))?;
    regular(found.file_type())?;
    // Something else may have the name by now; a pipe would be opened only when somebody writes to it.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    regular(found.file_type())?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(wrong(format!("it is larger than {} MiB", LARGEST >> 20)));
    }
    Ok((bytes, found))
}

fn regular(kind: FileType) -> io::Result<()> {
    let what = match kind {
        it if it.is_file() => return Ok(()),
        it if it.is_dir() => "a folder",
        it if it.is_fifo() => "a named pipe",
        it if it.is_socket() => "a socket",
        _ => "a device",
    };
    Err(wrong(format!("it is {what}, not a regular file")))
}

fn wrong(problem: String) -> Error {
    Error::new(ErrorKind::InvalidInput, problem)
}

/// That a link points nowhere is another thing than that there is none.
fn explained(path: &Path, err: Error) -> Error {
    match fs::read_link(path) {
        Ok(target) if err.kind() == ErrorKind::NotFound => {
            let problem = format!("it is a link to `{}`, which is not there", target.display());
            Error::new(ErrorKind::NotFound, problem)
        }
        _ => err,
    }
}
