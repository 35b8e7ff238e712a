//! The folder of the logs: `.nano/sessions`, closed to other users and to version control.
//!
//! Watch for: nothing is made before there is an event to keep, and nothing outside is ever reached through a link.

use std::{
    ffi::OsStr,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{
        self,
        ErrorKind::{self, InvalidInput, PermissionDenied, Unsupported},
        Write,
    },
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf, absolute},
    time::SystemTime,
};

use super::error::PersistenceError;
use crate::harness::session::id::is_id;

/// Where the logs are.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder by its full path, so that it stays the same one whatever becomes of the current folder.
    pub fn at(dir: &Path) -> Result<Self, PersistenceError> {
        let path = absolute(dir).map_err(PersistenceError::io("find", dir))?;
        let folder = Self { path };
        folder.refuse_links()?;
        Ok(folder)
    }

    /// Its full path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The log of a session.
    pub fn log(&self, id: &str) -> PathBuf {
        self.path.join(format!("{id}.jsonl"))
    }

    /// Makes the folder, with a `.gitignore` beside what must not be published.
    pub fn create(&self) -> Result<(), PersistenceError> {
        self.refuse_links()?;
        let top = self.own().last().unwrap_or(&self.path);
        // A folder that was there before may hold what is to be published, unless it has our name.
        let is_ours = top.ends_with(".nano") || !top.exists();
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.path);
        made.map_err(PersistenceError::io("make", &self.path))?;
        if is_ours { Self::hide(top) } else { Ok(()) }
    }

    /// Waits until the names in it, and it itself, are on the disk.
    pub fn sync(&self) -> Result<(), PersistenceError> {
        let above = self.own().last().and_then(Path::parent);
        for folder in self.own().chain(above) {
            sync_names(folder)?;
        }
        Ok(())
    }

    /// Keeps what is in this folder out of version control.
    fn hide(top: &Path) -> Result<(), PersistenceError> {
        let ignore = top.join(".gitignore");
        match write_new(&ignore, b"*\n") {
            Err(err) if err.kind() != ErrorKind::AlreadyExists => {
                Err(PersistenceError::io("write", ignore)(err))
            }
            _ => Ok(()),
        }
    }

    /// The sessions in it, last changed first.
    pub fn ids(&self) -> Result<Vec<(String, SystemTime)>, PersistenceError> {
        let read = || -> io::Result<Vec<_>> {
            fs::read_dir(&self.path)?
                .filter_map(|it| it.map(|it| session(&it)).transpose())
                .collect()
        };
        let mut ids = match read() {
            Err(err) if err.kind() == ErrorKind::NotFound => Vec::new(),
            ids => ids.map_err(PersistenceError::io("read", &self.path))?,
        };
        ids.sort_by(|(a, a_changed), (b, b_changed)| {
            b_changed.cmp(a_changed).then_with(|| b.cmp(a))
        });
        Ok(ids)
    }

    /// The session whose id is `text`, or the only one whose id begins so.
    pub fn find(&self, text: &str) -> Result<String, PersistenceError> {
        if !is_id(text) {
            return Err(PersistenceError::BadId(text.into()));
        }
        let ids: Vec<String> = self.ids()?.into_iter().map(|(id, _)| id).collect();
        let mut candidates: Vec<_> =
            ids.iter().filter(|it| it.starts_with(text)).cloned().collect();
        match candidates.len() {
            _ if candidates.iter().any(|it| it == text) => Ok(text.into()),
            0 => {
                let newest = ids.into_iter().take(5).collect();
                Err(PersistenceError::Unknown { id: text.into(), dir: self.path.clone(), newest })
            }
            1 => Ok(candidates.remove(0)),
            _ => Err(PersistenceError::Ambiguous { id: text.into(), candidates }),
        }
    }

    /// The folder and, if it lies in a `.nano`, all from there; innermost first.
    fn own(&self) -> impl Iterator<Item = &Path> {
        let depth =
            self.path.ancestors().position(|it| it.file_name() == Some(OsStr::new(".nano")));
        self.path.ancestors().take(depth.unwrap_or(0) + 1)
    }

    /// A project that is cloned could bring such a link, and have the log written where its author wants it.
    fn refuse_links(&self) -> Result<(), PersistenceError> {
        match self.own().find(|it| it.is_symlink()) {
            Some(link) => Err(PersistenceError::Linked { path: link.into() }),
            None => Ok(()),
        }
    }
}

/// Makes a file of these bytes, or none at all.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        fs::remove_file(path).ok();
    }
    written
}

/// Waits until the names in a folder are on the disk.
pub(super) fn sync_names(folder: &Path) -> Result<(), PersistenceError> {
    match File::open(folder).and_then(|it| it.sync_all()) {
        // Not every system lets a folder be synced, nor every folder be opened by those who may write to it.
        Err(err) if matches!(err.kind(), InvalidInput | PermissionDenied | Unsupported) => Ok(()),
        synced => synced.map_err(PersistenceError::io("sync", folder)),
    }
}

fn session(entry: &fs::DirEntry) -> Option<(String, SystemTime)> {
    let name = entry.file_name();
    let id = name.to_str()?.strip_suffix(".jsonl").filter(|it| is_id(it))?;
    let changed = entry.metadata().and_then(|it| it.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    Some((id.into(), changed))
}
