//! Part of `script`: all that a script plugin consists of, translated and linked, so that the engine reads no file.

use std::{collections::HashMap, sync::Arc};

use super::failure::Place;

/// A stack trace of more lines was not written by the engine.
pub(super) const TRACE: usize = 200;

/// The modules of one script plugin.
#[derive(Debug, Default)]
pub(super) struct Program {
    /// The module that the entry names.
    pub(super) entry: String,
    /// By their full path.
    pub(super) modules: HashMap<String, Arc<Module>>,
    /// Who imports what by which words: importer and specifier to module.
    pub(super) links: HashMap<(String, String), String>,
}

/// One file of it.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// What the engine runs.
    pub(super) code: String,
    /// As messages call the file.
    pub(super) shown: String,
    /// Where what the engine runs stands in the source; empty if that is what it runs.
    pub(super) positions: Vec<Position>,
    /// What it imports, types left out.
    pub(super) imports: Vec<Import>,
}

/// One import of a file.
#[derive(Debug, Clone)]
pub(super) struct Import {
    /// In its own words.
    pub(super) specifier: String,
    /// What of it, each by the name that it has there.
    pub(super) names: Vec<String>,
    /// Where the file says so.
    pub(super) place: Place,
}

/// What stands at this place of the code stood there in the source. Lines and columns from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) code: (u32, u32),
    pub(super) source: (u32, u32),
}

impl Program {
    /// The place that a line of a stack trace speaks of, if it is in one of the files.
    pub(super) fn place(&self, trace: &str) -> Option<Place> {
        let inner = trace.trim().strip_prefix("at ")?;
        let inner = inner.rsplit_once('(').map_or(inner, |(_, it)| it.trim_end_matches(')'));
        let (rest, column) = inner.rsplit_once(':')?;
        let (file, line) = rest.rsplit_once(':')?;
        let module = self.modules.get(file)?;
        Some(module.place(line.parse().ok()?, column.parse().ok()?))
    }

    /// A whole stack trace with the places of the source; what is not of the script's files is left out.
    pub(super) fn trace(&self, stack: &str) -> String {
        let shown = |line: &str| {
            let place = self.place(line)?;
            let function = line.trim().strip_prefix("at ").and_then(|it| it.split_once(" ("));
            Some(match function {
                Some((name, _)) => format!("    at {name} ({place})"),
                None => format!("    at {place}"),
            })
        };
        stack.lines().take(TRACE).filter_map(shown).collect::<Vec<_>>().join("\n")
    }

    /// Who imports a name from a module that does not have it, and that module in the words of the import.
    pub(super) fn import_of(&self, name: &str, target: &str) -> Option<&Import> {
        self.modules.iter().find_map(|(importer, module)| {
            module.imports.iter().find(|it| {
                let link = (importer.clone(), it.specifier.clone());
                let is_link = self.links.get(&link).is_some_and(|it| it == target);
                is_link && it.names.iter().any(|it| it == name)
            })
        })
    }
}

impl Module {
    /// A place in the code as one in the source. The engine counts from 1, and in bytes; editors count as JavaScript does.
    pub(super) fn place(&self, line: u32, column: u32) -> Place {
        let line = line.saturating_sub(1);
        let text = self.code.split('\n').nth(line as usize).unwrap_or_default();
        let mut before = (column as usize).saturating_sub(1).min(text.len());
        while !text.is_char_boundary(before) {
            before -= 1;
        }
        let column = text[..before].encode_utf16().count();
        let code = (line, u32::try_from(column).unwrap_or(u32::MAX));
        let after = self.positions.partition_point(|it| it.code <= code);
        let (line, column) = match after.checked_sub(1).and_then(|at| self.positions.get(at)) {
            Some(it) if it.code.0 == code.0 => it.source,
            _ => code,
        };
        Place { file: self.shown.clone(), line: line + 1, column: column + 1 }
    }
}
