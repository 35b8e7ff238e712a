//! Part of `script`: all that a script plugin consists of, translated and linked, so that the engine reads no file.

use std::{collections::HashMap, path::PathBuf};

use super::failure::Place;

/// The modules of one script plugin.
#[derive(Debug, Default)]
pub(super) struct Program {
    /// The module that the entry names.
    pub(super) entry: String,
    /// By their full path.
    pub(super) modules: HashMap<String, Module>,
    /// Who imports what by which words: importer and specifier to module.
    pub(super) links: HashMap<(String, String), String>,
    /// Every file that was read, or would have been if it were there.
    pub(super) files: Vec<PathBuf>,
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
}

impl Module {
    /// A place in the code, counted from 1, as one in the source.
    pub(super) fn place(&self, line: u32, column: u32) -> Place {
        let code = (line.saturating_sub(1), column.saturating_sub(1));
        let after = self.positions.partition_point(|it| it.code <= code);
        let (line, column) = match after.checked_sub(1).and_then(|at| self.positions.get(at)) {
            Some(it) if it.code.0 == code.0 => it.source,
            _ => code,
        };
        Place { file: self.shown.clone(), line: line + 1, column: column + 1 }
    }
}
