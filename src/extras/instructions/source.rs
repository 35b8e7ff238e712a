//! Part of `instructions`: which files there are, and what they say.
//!
//! Watch for: a name may stand for anything, for a pipe that nobody writes to or for a link out of the project. What cannot
//! be read is said and left out; nothing waits, and no more is read than there can be room for.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use nix::libc;

use super::{FileName, shown};

/// One file that was read.
#[derive(Debug, PartialEq)]
pub(super) struct Source {
    /// As messages and the model call it: as seen from the project.
    pub(super) name: String,
    pub(super) text: String,
    /// All of its bytes; more than the text has if it was too long.
    pub(super) size: u64,
}

/// What there is, those of the project first, and what could not be taken.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) files: Vec<Source>,
    pub(super) problems: Vec<String>,
}

/// Reads the files of these names in each folder from that of the project down to this one.
pub(super) fn find(folder: &Path, names: &[FileName], max_bytes: usize) -> Found {
    let mut found = Found::default();
    let folder = match folder.canonicalize() {
        Ok(folder) => folder,
        Err(err) => {
            found.problems.push(format!("{} cannot be read: {err}", folder.display()));
            return found;
        }
    };
    let project = folder.ancestors().find(|it| it.join(".git").exists()).unwrap_or(&folder);
    let mut folders: Vec<_> = folder.ancestors().take_while(|it| it.starts_with(project)).collect();
    folders.reverse();
    for folder in folders {
        let mut here: Vec<Source> = Vec::new();
        for FileName(name) in names {
            let path = folder.join(name);
            match read(&path, project, max_bytes) {
                Ok(None) => {}
                Ok(Some((source, problem))) => {
                    found.problems.extend(problem);
                    let is_new = here.iter().all(|it| it.text != source.text);
                    // The same under two names is one.
                    here.extend(is_new.then_some(source));
                }
                Err(err) => {
                    found.problems.push(format!("{} is left out: {err}", shown(&path, project)));
                }
            }
        }
        found.files.append(&mut here);
    }
    found
}

/// A file, and what is odd about it. None if there is none, or nothing in it.
fn read(path: &Path, project: &Path, max: usize) -> io::Result<Option<(Source, Option<String>)>> {
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(err) if err.kind() == ErrorKind::NotFound && path.symlink_metadata().is_err() => {
            return Ok(None);
        }
        Err(err) => return Err(err),
    };
    inside(&real, project)?;
    let found = fs::metadata(&real)?;
    regular(&found)?;
    // Something else may have the name by now; a pipe would be opened only when somebody writes to it.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;
    let file = File::options().read(true).custom_flags(flags).open(&real)?;
    let found = file.metadata()?;
    regular(&found)?;
    let mut bytes = Vec::new();
    // One more, so that a text that is cut ends where a character does, whatever follows.
    file.take(max as u64 + 4).read_to_end(&mut bytes)?;
    let name = shown(path, project);
    let is_whole = bytes.len() as u64 >= found.len();
    let (text, problem) = decoded(&bytes, is_whole, &name)?;
    let source = Source { name, text, size: found.len() };
    Ok((!source.text.trim().is_empty()).then_some((source, problem)))
}

fn inside(real: &Path, project: &Path) -> io::Result<()> {
    let problem = || format!("it is a link out of the project, to {}", real.display());
    real.starts_with(project).then_some(()).ok_or_else(|| io::Error::other(problem()))
}

fn regular(found: &fs::Metadata) -> io::Result<()> {
    let problem = || io::Error::other("it is not a regular file");
    found.is_file().then_some(()).ok_or_else(problem)
}

fn decoded(bytes: &[u8], is_whole: bool, name: &str) -> io::Result<(String, Option<String>)> {
    if bytes.contains(&0) {
        return Err(io::Error::other("it is not a text"));
    }
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = match std::str::from_utf8(text) {
        // The last character was cut.
        Err(err) if !is_whole && err.error_len().is_none() => &text[..err.valid_up_to()],
        _ => text,
    };
    let lossy = String::from_utf8_lossy(text);
    let odd = lossy.matches('\u{fffd}').count() - text_marks(text);
    let problem = (odd > 0).then(|| {
        let plural = if odd == 1 { " of it is" } else { "s of it are" };
        format!("{name} is not UTF-8: {odd} character{plural} shown as \u{fffd}; save it as UTF-8")
    });
    Ok((lossy.replace("\r\n", "\n"), problem))
}

/// How often the sign for what is no character was written by somebody.
fn text_marks(text: &[u8]) -> usize {
    text.windows(3).filter(|it| *it == "\u{fffd}".as_bytes()).count()
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn what_is_no_utf_8_is_replaced_and_counted_and_a_cut_character_is_not() {
        let latin = decoded(b"caf\xe9 \xef\xbf\xbd", true, "A.md").unwrap();
        let cut = decoded(&"ab中".as_bytes()[..4], false, "A.md").unwrap();

        assert_eq!(latin.0, "caf\u{fffd} \u{fffd}");
        let said = "A.md is not UTF-8: 1 character of it is shown as \u{fffd}; save it as UTF-8";
        assert_eq!(latin.1.unwrap(), said);
        assert_eq!(cut, ("ab".to_owned(), None));
    }
}
