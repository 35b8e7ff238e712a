//! Part of `tool-files`: a file is the old one or the new one, and never a part of either.
//!
//! Watch for: the new text is written beside the old one and takes its name at once; so a link to the file stays a link, and
//! a hard link keeps the old text. Nothing here waits for anybody, so no end of a turn comes between.

// Omitted: extended attributes and access lists are not carried over; what editors do about them differs.
use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

use nix::unistd::{AccessFlags, access};

use super::{
    error::FileError,
    open::{open, read_whole},
    place::Place,
    seen::Version,
};

/// An error if the file, or the folder where it would come to be, cannot be written, as the system sees it. It is only
/// asked: whoever watches the file would take a file that was opened for a change.
pub(super) fn check_writable(place: &Place) -> Result<(), FileError> {
    let may = |path: &Path| access(path, AccessFlags::W_OK);
    let folder = place.path.ancestors().skip(1).find(|it| it.exists());
    let file = place.exists.then_some(place.path.as_path());
    let all = file.into_iter().chain(folder).try_for_each(may);
    all.map_err(|err| FileError::Write { name: place.name.clone(), source: err.into() })
}

/// Puts a new text in the place of one that is still this version.
pub(super) fn replace(place: &Place, text: &[u8], expected: Version) -> Result<(), FileError> {
    let write = |source| FileError::Write { name: place.name.clone(), source };
    let (_, found) = open(place)?;
    let fresh = Fresh::beside(&place.path, 0o600).map_err(write)?;
    let ours = fresh.file.metadata().map_err(write)?;
    if (ours.uid(), ours.gid()) != (found.uid(), found.gid()) {
        fchown(&fresh.file, Some(found.uid()), Some(found.gid()))
            .map_err(|source| FileError::Owner { name: place.name.clone(), source })?;
    }
    fresh.fill(text).map_err(write)?;
    // Afterwards, because a write takes some modes away.
    let mode = Permissions::from_mode(found.mode() & 0o7777);
    fresh.file.set_permissions(mode).map_err(write)?;
    let (now, _) = read_whole(place)?;
    if Version::of(&now) != expected {
        return Err(FileError::Changed { name: place.name.clone() });
    }
    fs::rename(&fresh.path, &place.path).map_err(write)
}

/// Makes a file where nothing is, and the folders that it needs.
pub(super) fn create(place: &Place, text: &[u8]) -> Result<(), FileError> {
    let write = |source| FileError::Write { name: place.name.clone(), source };
    let folder = place.path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(write)?;
    if folder.canonicalize().map_err(write)? != folder {
        // Somebody has put a link there meanwhile.
        return Err(FileError::Appeared { name: place.name.clone() });
    }
    let fresh = Fresh::beside(&place.path, 0o666).map_err(write)?;
    fresh.fill(text).map_err(write)?;
    // A link never takes the place of something, as a rename would.
    match fs::hard_link(&fresh.path, &place.path) {
        Err(err) if err.kind() == ErrorKind::AlreadyExists => {
            Err(FileError::Appeared { name: place.name.clone() })
        }
        // There are file systems without hard links.
        Err(_) => fs::rename(&fresh.path, &place.path).map_err(write),
        Ok(()) => Ok(()),
    }
}

/// A file that is there only until it has its name.
struct Fresh {
    file: File,
    path: PathBuf,
}

impl Fresh {
    fn beside(path: &Path, mode: u32) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = path.with_file_name(format!(".nano-cordis-{}-{count}.tmp", process::id()));
            match OpenOptions::new().write(true).create_new(true).mode(mode).open(&path) {
                Ok(file) => return Ok(Self { file, path }),
                Err(err) if err.kind() == ErrorKind::AlreadyExists => {}
                Err(err) => return Err(err),
            }
        }
    }

    /// On the disk before it has the name, so that no power cut leaves an empty file of that name.
    fn fill(&self, text: &[u8]) -> io::Result<()> {
        (&self.file).write_all(text)?;
        self.file.sync_all()
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // It has gone already if it took the other's place.
        fs::remove_file(&self.path).ok();
    }
}
