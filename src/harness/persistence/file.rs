//! One log on disk: open, locked, and only ever longer by whole lines.
//!
//! Watch for: an event is one `write`, line end included. If that fails the file gets its old length back.

use std::{
    fs::{self, File, OpenOptions, Permissions, TryLockError},
    io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write},
    ops::Range,
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use nix::libc;

use super::{
    error::PersistenceError,
    folder::{sync_names, write_new},
    read::{self, Fault, Log, Tail},
};

/// What is longer is not read.
const LARGEST: u64 = 2 << 30;
/// A pipe is not waited for, nor a link followed.
const LOOKING: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK;

/// The log of one session.
// Invariant: the lock is that of the open file. The system drops it with the process, however that ends, and children
// do not inherit it.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    file: File,
    length: u64,
    lacks_line_end: bool,
}

impl LogFile {
    /// A new log; there must be none of that name.
    pub fn create(path: &Path, id: &str) -> Result<Self, PersistenceError> {
        Self::with(OpenOptions::new().create_new(true), "make", path, id)
    }

    /// A log that is there.
    pub fn open(path: &Path, id: &str) -> Result<Self, PersistenceError> {
        let there = path.symlink_metadata().map_err(PersistenceError::io("open", path))?;
        if !there.is_file() {
            return Err(PersistenceError::NotAFile { path: path.into() });
        }
        Self::with(&mut OpenOptions::new(), "open", path, id)
    }

    fn with(
        options: &mut OpenOptions,
        action: &'static str,
        path: &Path,
        id: &str,
    ) -> Result<Self, PersistenceError> {
        let options = options.read(true).append(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let file = options.open(path).map_err(PersistenceError::io(action, path))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(PersistenceError::Locked { id: id.into() }),
            Err(TryLockError::Error(err)) if err.kind() != ErrorKind::Unsupported => {
                Err(PersistenceError::io("lock", path)(err))
            }
            _ => Ok(Self { path: path.into(), file, length: 0, lacks_line_end: false }),
        }
    }

    /// Reads and judges it; nothing is changed.
    pub fn read(&self) -> Result<Log, PersistenceError> {
        judge(&self.file, &self.path)
    }

    /// Begins a new log with this line and with a part of another log, and waits until both are on the disk.
    pub fn begin(
        &mut self,
        line: &str,
        (from, part): (&File, Range<u64>),
    ) -> Result<(), PersistenceError> {
        let copied = self.copy(line, from, part).and_then(|()| self.file.metadata());
        self.length = copied.map_err(|source| self.cut_to(0, source))?.len();
        Ok(())
    }

    fn copy(&self, line: &str, mut from: &File, part: Range<u64>) -> io::Result<()> {
        let (mut to, length) = (&self.file, part.end - part.start);
        to.write_all(format!("{line}\n").as_bytes())?;
        from.seek(SeekFrom::Start(part.start))?;
        if io::copy(&mut from.take(length), &mut to)? < length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        from.seek(SeekFrom::Start(part.end - 1))?;
        let mut last = [0];
        from.read_exact(&mut last)?;
        if last != *b"\n" {
            to.write_all(b"\n")?;
        }
        self.file.sync_all()
    }

    /// Makes the file ready for more events. What was torn is put aside first; the answer says so.
    pub fn go_on(&mut self, log: &Log) -> Result<Option<String>, PersistenceError> {
        let private = self.file.set_permissions(Permissions::from_mode(0o600));
        private.map_err(PersistenceError::io("protect", &self.path))?;
        self.length = log.whole;
        self.lacks_line_end = log.tail == Tail::NoLineEnd;
        if log.tail != Tail::Torn {
            return Ok(None);
        }
        let torn = self.torn().map_err(PersistenceError::io("read", &self.path))?;
        let aside = put_aside(&self.path, &torn)?;
        self.file.set_len(self.length).map_err(PersistenceError::io("cut", &self.path))?;
        let (count, place, aside) = (torn.len(), self.path.display(), aside.display());
        Ok(Some(format!(
            "{place} ended with a write that was cut short; its bytes ({count}) are now in {aside}"
        )))
    }

    /// Adds a line. On failure the file is as before.
    pub fn append(&mut self, line: &str) -> Result<(), PersistenceError> {
        self.check_unchanged()?;
        let start = if self.lacks_line_end { "\n" } else { "" };
        let text = format!("{start}{line}\n");
        match write_at_once(&self.file, text.as_bytes()) {
            Ok(()) => {
                self.length += text.len() as u64;
                self.lacks_line_end = false;
                Ok(())
            }
            Err(source) => Err(self.cut_to(self.length, source)),
        }
    }

    /// Adds a line and waits until it is on the disk. On failure the file is as before.
    // The one thread waits here, once a turn: when a turn is said to be over, no power cut undoes it.
    pub fn append_and_sync(&mut self, line: &str) -> Result<(), PersistenceError> {
        let before = self.length;
        self.append(line)?;
        self.file.sync_data().map_err(|source| {
            self.length = before;
            self.cut_to(before, source)
        })
    }

    /// Waits until all of it is on the disk.
    pub fn sync(&self) -> Result<(), PersistenceError> {
        self.file.sync_data().map_err(PersistenceError::io("write", &self.path))
    }

    fn cut_to(&self, length: u64, source: io::Error) -> PersistenceError {
        // If even this fails, the half line is a torn write for the next reader. An empty log is none.
        drop(match length {
            0 => fs::remove_file(&self.path),
            _ => self.file.set_len(length),
        });
        PersistenceError::io("write", &self.path)(source)
    }

    /// Two writers would number their events alike, so whoever else wrote here ends this one.
    fn check_unchanged(&self) -> Result<(), PersistenceError> {
        let ours = self.file.metadata().map_err(PersistenceError::io("read", &self.path))?;
        match fs::symlink_metadata(&self.path) {
            Ok(there)
                if (there.dev(), there.ino(), there.len())
                    == (ours.dev(), ours.ino(), self.length) =>
            {
                Ok(())
            }
            Ok(_) => Err(PersistenceError::Changed { path: self.path.clone() }),
            Err(err) if err.kind() == ErrorKind::NotFound => {
                Err(PersistenceError::Removed { path: self.path.clone() })
            }
            Err(err) => Err(PersistenceError::io("read", &self.path)(err)),
        }
    }

    fn torn(&self) -> io::Result<Vec<u8>> {
        let (mut file, mut bytes) = (&self.file, Vec::new());
        file.seek(SeekFrom::Start(self.length))?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// A log as it is now, whoever has it open, and its file. Nothing is locked or changed.
pub(super) fn look(path: &Path) -> Result<(File, Log), PersistenceError> {
    let options = OpenOptions::new().read(true).custom_flags(LOOKING).open(path);
    let file = options.map_err(PersistenceError::io("open", path))?;
    let is_file = file.metadata().map_err(PersistenceError::io("read", path))?.is_file();
    if !is_file {
        return Err(PersistenceError::NotAFile { path: path.into() });
    }
    let log = judge(&file, path)?;
    Ok((file, log))
}

fn judge(mut file: &File, path: &Path) -> Result<Log, PersistenceError> {
    let bytes = file.metadata().map_err(PersistenceError::io("read", path))?.len();
    if bytes > LARGEST {
        return Err(PersistenceError::TooLarge { path: path.into(), bytes });
    }
    let start = file.seek(SeekFrom::Start(0)).map_err(Fault::Io);
    let log = start.and_then(|_| read::read(BufReader::with_capacity(1 << 16, file)));
    log.map_err(|fault| match fault {
        Fault::Line(line, problem) => {
            PersistenceError::Damaged { path: path.into(), line, problem }
        }
        Fault::Io(source) => PersistenceError::io("read", path)(source),
    })
}

/// One write, so that a reader sees all of the line or nothing of it. A short one is a failure, not to be continued.
fn write_at_once(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    loop {
        match file.write(bytes) {
            Ok(written) if written == bytes.len() => return Ok(()),
            Ok(_) => {
                return Err(io::Error::new(ErrorKind::StorageFull, "only a part could be written"));
            }
            Err(err) if err.kind() == ErrorKind::Interrupted => {}
            Err(err) => return Err(err),
        }
    }
}

/// Keeps the bytes in `<id>.jsonl.torn`, or beside it if there is one already.
fn put_aside(log: &Path, bytes: &[u8]) -> Result<PathBuf, PersistenceError> {
    let names = (1..).map(|n| if n == 1 { "jsonl.torn".into() } else { format!("jsonl.torn.{n}") });
    for aside in names.map(|name| log.with_extension(name)) {
        match write_new(&aside, bytes) {
            Ok(()) => {
                sync_names(log.parent().unwrap_or(log))?;
                return Ok(aside);
            }
            Err(err) if err.kind() == ErrorKind::AlreadyExists => {}
            Err(err) => return Err(PersistenceError::io("write", aside)(err)),
        }
    }
    unreachable!("there are always more numbers")
}
