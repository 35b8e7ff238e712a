//! Part of `script`: reads a script and all that it imports, as often as something of it may have changed.
//!
//! Watch for: whoever watches the files asks for their names at each event. What did not change is not read again, and
//! what says the same is not translated again.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet, VecDeque},
    fs,
    io::ErrorKind,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    failure::Failure,
    imports::HOST,
    naming::{bare, existing, name_of, normal},
    program::{Import, Module, Program},
    translate::translate,
};
use crate::cordis::loader::{
    Cause,
    files::{Print, read_code},
};

/// The files of one script.
pub(super) struct Sources {
    /// As the entry calls it.
    pub(super) name: String,
    pub(super) entry: PathBuf,
    /// The folder of the list. Messages call files as seen from there.
    base: PathBuf,
    read: RefCell<HashMap<PathBuf, Source>>,
}

/// A file as it was read.
#[derive(Clone)]
struct Source {
    stamp: Option<Stamp>,
    print: Print,
    module: Result<Arc<Module>, Failure>,
}

/// Changes when somebody writes a file, or another one takes its name.
#[derive(Clone, Copy, PartialEq)]
struct Stamp([i64; 4], [u64; 3]);

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let it = fs::metadata(path).ok()?;
        let times = [it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec()];
        Some(Self(times, [it.dev(), it.ino(), it.size()]))
    }
}

/// How much is to be taken from what was read before.
#[derive(Clone, Copy, PartialEq, Default)]
enum Effort {
    /// Each file is read.
    #[default]
    Read,
    /// Each file is looked at.
    Look,
}

impl Sources {
    /// What an entry of a list in this folder names.
    pub(super) fn new(name: &str, base: &Path) -> Self {
        let entry = normal(&base.join(name));
        Self { name: name.to_owned(), entry, base: normal(base), read: RefCell::default() }
    }

    /// The program, read afresh. The error is the first fault, that of the entry before those of what it imports.
    pub(super) fn program(&self) -> Result<Program, Failure> {
        let walk = self.walk(Effort::Read);
        walk.failure.map_or(Ok(walk.program), Err)
    }

    /// What messages call the file of the entry.
    pub(super) fn shown(&self) -> String {
        shown(&self.entry, &self.base)
    }

    /// Every file that belongs to it now, also those that are imported and not there.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.walk(Effort::Look).files
    }

    fn walk(&self, effort: Effort) -> Walk {
        let mut walk =
            Walk { base: self.base.clone(), effort, before: self.read.take(), ..Walk::default() };
        walk.all(&self.entry);
        self.read.replace(std::mem::take(&mut walk.read));
        walk
    }
}

/// One way through all files.
#[derive(Default)]
struct Walk {
    base: PathBuf,
    effort: Effort,
    before: HashMap<PathBuf, Source>,
    read: HashMap<PathBuf, Source>,
    program: Program,
    files: Vec<PathBuf>,
    failure: Option<Failure>,
}

impl Walk {
    fn all(&mut self, entry: &Path) {
        self.program.entry = name_of(entry);
        let mut waiting = VecDeque::from([(entry.to_owned(), None)]);
        let mut seen = HashSet::new();
        while let Some((path, importer)) = waiting.pop_front() {
            if !seen.insert(path.clone()) {
                continue;
            }
            for import in self.one(&path, importer.as_ref()) {
                match self.link(&path, &import) {
                    Ok(Some(target)) => waiting.push_back((target, Some(import))),
                    Ok(None) => {}
                    Err(problem) => self.fail(Failure::new(problem), Some(&import)),
                }
            }
        }
    }

    /// The imports of one file.
    fn one(&mut self, path: &Path, importer: Option<&Import>) -> Vec<Import> {
        self.files.push(path.to_owned());
        let source = self.source(path);
        self.read.insert(path.to_owned(), source.clone());
        match source.module {
            Ok(module) => {
                let imports = module.imports.clone();
                self.program.modules.insert(name_of(path), module);
                imports
            }
            Err(failure) => {
                self.fail(failure, importer);
                Vec::new()
            }
        }
    }

    /// What cannot be read has no place of its own, but it was imported at one.
    fn fail(&mut self, failure: Failure, importer: Option<&Import>) {
        let imported_at = || importer.map(|it| it.place.clone());
        let place = failure.place.or_else(imported_at);
        self.failure.get_or_insert(Failure { place, ..failure });
    }

    fn source(&mut self, path: &Path) -> Source {
        // Before it is read: what is written meanwhile is read the next time.
        let stamp = Stamp::of(path);
        let before = self.before.remove(path);
        let before = match before {
            Some(it) if self.effort == Effort::Look && stamp.is_some() && it.stamp == stamp => {
                return it;
            }
            other => other,
        };
        let (print, read) = read_code(path);
        let shown = shown(path, &self.base);
        let module = match (read, before) {
            (Err(cause), _) => Err(unreadable(&shown, &cause)),
            (Ok(_), Some(it)) if it.print == print && it.is_translated() => it.module,
            (Ok(bytes), _) => module(path, &shown, bytes).map(Arc::new),
        };
        Source { stamp, print, module }
    }

    /// Notes what an import means; gives the file, if it is one.
    fn link(&mut self, importer: &Path, import: &Import) -> Result<Option<PathBuf>, String> {
        let specifier = &import.specifier;
        if HOST.contains(&specifier.as_str()) {
            self.note(importer, specifier, specifier.clone());
            return Ok(None);
        }
        let folder = importer.parent().unwrap_or(importer);
        let target = normal(&folder.join(specifier));
        if !specifier.starts_with(['.', '/']) {
            return Err(bare(specifier, target.is_file()));
        }
        let found = existing(&target);
        if found.is_none() && specifier.ends_with("/cordis/index.ts") {
            self.note(importer, specifier, HOST[0].to_owned());
            return Ok(None);
        }
        let target = found.unwrap_or(target);
        self.note(importer, specifier, name_of(&target));
        Ok(Some(target))
    }

    fn note(&mut self, importer: &Path, specifier: &str, target: String) {
        self.program.links.insert((name_of(importer), specifier.to_owned()), target);
    }
}

impl Source {
    /// Other permissions, or another name in the messages, are no other text.
    fn is_translated(&self) -> bool {
        self.module.as_ref().map_or_else(|it| it.place.is_some(), |_| true)
    }
}

/// A file as seen from a folder.
fn shown(path: &Path, base: &Path) -> String {
    path.strip_prefix(base).unwrap_or(path).display().to_string()
}

fn module(path: &Path, shown: &str, bytes: Vec<u8>) -> Result<Module, Failure> {
    let source =
        String::from_utf8(bytes).map_err(|_| Failure::new(format!("{shown} is not UTF-8 text")))?;
    translate(path, shown, &source)
}

fn unreadable(shown: &str, cause: &Cause) -> Failure {
    match cause {
        Cause::Read(err) if err.kind() == ErrorKind::NotFound && err.get_ref().is_none() => {
            Failure::new(format!("there is no file {shown}"))
        }
        Cause::Untrusted(problem) => Failure::new(format!("{shown} is refused: {problem}")),
        Cause::Read(err) => Failure::new(format!("{shown} cannot be read: {err}")),
        other => Failure::new(format!("{shown}: {other}")),
    }
}
