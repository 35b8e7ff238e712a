//! Part of `script`: reads a script and all that it imports.

use std::{
    collections::HashSet,
    fs, io,
    path::{Component, Path, PathBuf},
};

use super::{
    failure::{Failure, Place},
    imports::HOST,
    program::Program,
    translate::{Import, translate},
};

/// What is tried, in this order, for an import that names no file as it is written.
const ENDINGS: [&str; 4] = ["ts", "mts", "js", "mjs"];

/// Reads the program of an entry. Whatever came of it, the second value names every file that matters.
pub(super) fn read(entry: &Path, base: &Path) -> (Result<Program, Failure>, Vec<PathBuf>) {
    let mut reading = Reading { base: normal(base), program: Program::default() };
    let outcome = reading.read_all(entry);
    let files = reading.program.files.clone();
    (outcome.map(|()| reading.program), files)
}

struct Reading {
    base: PathBuf,
    program: Program,
}

impl Reading {
    fn read_all(&mut self, entry: &Path) -> Result<(), Failure> {
        self.program.entry = name_of(entry);
        let (mut waiting, mut seen) = (vec![(entry.to_owned(), None)], HashSet::new());
        while let Some((path, importer)) = waiting.pop() {
            if seen.insert(path.clone()) {
                let imports = self.read_one(&path, importer.as_ref())?;
                for import in imports {
                    if let Some(target) = self.link(&path, &import) {
                        waiting.push((target, Some(import)));
                    }
                }
            }
        }
        Ok(())
    }

    fn read_one(&mut self, path: &Path, importer: Option<&Import>) -> Result<Vec<Import>, Failure> {
        self.program.files.push(path.to_owned());
        let shown = self.shown(path);
        let source = fs::read(path).map_err(|err| missing(&shown, &err, importer))?;
        let source = String::from_utf8(source)
            .map_err(|_| Failure::new(format!("{shown} is not UTF-8")))?;
        let translated = translate(path, &shown, &source)?;
        self.program.modules.insert(name_of(path), translated.module);
        Ok(translated.imports)
    }

    /// Notes what an import means; gives the file, if it is one.
    fn link(&mut self, importer: &Path, import: &Import) -> Option<PathBuf> {
        let specifier = &import.specifier;
        let host = HOST.iter().find(|it| *it == specifier);
        let target = match host {
            Some(name) => return self.note(importer, specifier, (*name).to_owned()),
            None => normal(&importer.parent().unwrap_or(importer).join(specifier)),
        };
        let found = existing(&target);
        if found.is_none() && specifier.ends_with("/cordis/index.ts") {
            return self.note(importer, specifier, HOST[0].to_owned());
        }
        let target = found.unwrap_or(target);
        self.note(importer, specifier, name_of(&target));
        Some(target)
    }

    fn note(&mut self, importer: &Path, specifier: &str, target: String) -> Option<PathBuf> {
        self.program.links.insert((name_of(importer), specifier.to_owned()), target);
        None
    }

    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.base).unwrap_or(path).display().to_string()
    }
}

fn missing(shown: &str, err: &io::Error, importer: Option<&Import>) -> Failure {
    let place: Option<Place> = importer.map(|it| it.place.clone());
    Failure { problem: format!("cannot read {shown}: {err}"), place, ..Failure::new("") }
}

/// The file that an import means: as written, with an ending, the TypeScript of a `.js`, or the index of a folder.
fn existing(target: &Path) -> Option<PathBuf> {
    if target.is_file() {
        return Some(target.to_owned());
    }
    let with = |ending: &&str| PathBuf::from(format!("{}.{ending}", target.display()));
    let as_typescript = (target.extension()? == "js").then(|| target.with_extension("ts"));
    ENDINGS
        .iter()
        .map(with)
        .chain(as_typescript)
        .chain(ENDINGS.iter().map(|it| target.join(format!("index.{it}"))))
        .find(|it| it.is_file())
}

pub(super) fn name_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// An absolute path without `.` and `..`, whether or not there is such a file.
pub(super) fn normal(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut normal = PathBuf::new();
    for part in absolute.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            other => normal.push(other),
        }
    }
    normal
}
