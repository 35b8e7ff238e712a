//! `--types`: writes down for editors what a script may use.
//!
//! Part of `run`.
//! Watch for: only a file that this program has written itself is replaced.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::Path,
    process,
};

/// The types, as they are in this build.
const TYPES: &str = include_str!("../extras/script/nano-cordis.d.ts");
const FILE: &str = "nano-cordis.d.ts";
/// How each file begins that was written here.
const MARK: &str = "// Written by `nano-cordis --types`";

/// Writes the types into a folder. Says what was done, or why nothing was.
pub(super) fn write(folder: &Path) -> Result<String, String> {
    let file = folder.join(FILE);
    match standing(&file) {
        Ok(Standing::Foreign) => Err(format!(
            "{FILE} is there and was not written by `nano-cordis --types`; nothing was changed"
        )),
        Ok(Standing::Current) => Ok(format!("{FILE} is up to date")),
        Ok(Standing::Absent | Standing::Older) => {
            replace(folder, &file).map_err(|err| format!("cannot write {FILE}: {err}"))?;
            Ok(format!("wrote {FILE}"))
        }
        Err(err) => Err(format!("cannot read {FILE}: {err}")),
    }
}

enum Standing {
    Absent,
    Older,
    Current,
    Foreign,
}

/// What stands in the place of the file. Only a regular file is opened: anything else might never end.
fn standing(file: &Path) -> io::Result<Standing> {
    let found = match file.symlink_metadata() {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(Standing::Absent),
        found => found?,
    };
    if !found.is_file() {
        return Ok(Standing::Foreign);
    }
    let mut begin = Vec::new();
    File::open(file)?.take(TYPES.len() as u64 + 1).read_to_end(&mut begin)?;
    Ok(match begin {
        it if it == TYPES.as_bytes() => Standing::Current,
        it if it.starts_with(MARK.as_bytes()) => Standing::Older,
        _ => Standing::Foreign,
    })
}

/// An editor that reads meanwhile finds the old file or the new one, whole.
fn replace(folder: &Path, file: &Path) -> io::Result<()> {
    let draft = folder.join(format!(".{FILE}.{}", process::id()));
    let mut made = OpenOptions::new().write(true).create_new(true).open(&draft)?;
    let written = made.write_all(TYPES.as_bytes()).and_then(|()| fs::rename(&draft, file));
    if written.is_err() {
        drop(fs::remove_file(&draft));
    }
    written
}
