//! Part of `tool-files`: opens regular files, and never waits for anything else.

use std::{
    fs::{self, File, FileType, Metadata},
    io::{self, Read},
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::Path,
};

use nix::libc;

use super::{error::FileError, place::Place};

/// What can be changed at all. A text that somebody wrote is smaller.
pub(super) const LARGEST: u64 = 8 << 20;

/// Opens a regular file, for reading.
pub(super) fn open(place: &Place) -> Result<(File, Metadata), FileError> {
    let read = |source| FileError::Read { name: place.name.clone(), source };
    // Asked first: to open a device may be to do something with it.
    regular(&place.name, fs::symlink_metadata(&place.path).map_err(read)?.file_type())?;
    let file = open_at_once(&place.path).map_err(read)?;
    let found = file.metadata().map_err(read)?;
    // Something else may have had the name by then.
    regular(&place.name, found.file_type())?;
    Ok((file, found))
}

/// A pipe that nobody writes to and a link that came meanwhile hold nobody up.
pub(super) fn open_at_once(path: &Path) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;
    File::options().read(true).custom_flags(flags).open(path)
}

/// All of a file that can be changed, and what the system knows of it.
pub(super) fn read_whole(place: &Place) -> Result<(Vec<u8>, Metadata), FileError> {
    let (file, found) = open(place)?;
    let large = |size| FileError::Large { name: place.name.clone(), size, limit: LARGEST };
    if found.len() > LARGEST {
        return Err(large(found.len()));
    }
    let bytes = read_some(file, LARGEST + 1)
        .map_err(|source| FileError::Read { name: place.name.clone(), source })?;
    match bytes.len() as u64 {
        size if size > LARGEST => Err(large(size)),
        _ => Ok((bytes, found)),
    }
}

fn read_some(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn regular(name: &str, kind: FileType) -> Result<(), FileError> {
    let name = name.to_owned();
    let what = match kind {
        it if it.is_file() => return Ok(()),
        it if it.is_dir() => return Err(FileError::Folder { name }),
        it if it.is_fifo() => "a named pipe",
        it if it.is_socket() => "a socket",
        it if it.is_symlink() => "a link by now",
        _ => "a device",
    };
    Err(FileError::NoFile { name, what })
}
