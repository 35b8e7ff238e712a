//! Part of `tool-files`: `glob`, the paths that a pattern means.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    rc::Rc,
    sync::{Mutex, PoisonError},
};

use ignore::{DirEntry, WalkBuilder, WalkState};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::{
    change::parsed,
    error::FileError,
    job::on_thread,
    place::{Place, Root},
    walk::{Pattern, walk},
};
use crate::harness::{
    cli::text::line,
    tools::{Call, Tool},
};

/// So many paths are told.
const PATHS: usize = 100;

const DESCRIPTION: &str = "Find files and folders by a pattern of their paths: `src/**/*.rs`, `*.{ts,tsx}`, `docs/*`. A \
                           pattern without `/` means names in any folder. Sorted, at most 100; what `.gitignore` names \
                           is left out.";

/// What the model fills in.
#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The pattern, as seen from `path`.
    pattern: String,
    /// The folder to begin with.
    path: Option<String>,
}

pub(super) fn tool(root: &Root) -> Tool {
    let (asked, root) = (root.clone(), root.clone());
    let run = async move |arguments: Arguments, call: Rc<Call>| {
        let (from, pattern) = plan(&root, &arguments)?;
        let base = root.path().to_owned();
        let walk = walk(&root, &from.path);
        let search = move |stop: &CancellationToken| find(&walk, &from.path, &base, &pattern, stop);
        on_thread(&call.cancel, search).await
    };
    Tool::typed("glob", DESCRIPTION, run).checked(move |arguments| {
        let arguments: Arguments = parsed(arguments)?;
        plan(&asked, &arguments).map(drop).map_err(|it| it.to_string())
    })
}

fn plan(root: &Root, asked: &Arguments) -> Result<(Place, Pattern), FileError> {
    let from = root.find(asked.path.as_deref().unwrap_or("."))?;
    if !from.path.is_dir() {
        return Err(FileError::NoFolder { name: from.name });
    }
    let pattern = Pattern::new(&asked.pattern, root, &from.path)?;
    Ok((from, pattern))
}

/// The first paths of all, and how many there are.
#[derive(Default)]
struct Found {
    paths: BTreeSet<PathBuf>,
    count: usize,
    unread: usize,
}

fn find(
    walk: &WalkBuilder,
    from: &Path,
    base: &Path,
    pattern: &Pattern,
    stop: &CancellationToken,
) -> String {
    let found = Mutex::new(Found::default());
    let keep = |entry: &DirEntry| {
        let inner = entry.path().strip_prefix(from).unwrap_or(entry.path());
        if entry.depth() > 0 && pattern.fits(inner) {
            found.lock().unwrap_or_else(PoisonError::into_inner).add(entry, base);
        }
    };
    walk.build_parallel().run(|| {
        Box::new(|entry| match entry {
            _ if stop.is_cancelled() => WalkState::Quit,
            Ok(entry) => {
                keep(&entry);
                WalkState::Continue
            }
            Err(_) => {
                found.lock().unwrap_or_else(PoisonError::into_inner).unread += 1;
                WalkState::Continue
            }
        })
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner).text()
}

impl Found {
    fn add(&mut self, entry: &DirEntry, base: &Path) {
        let path = entry.path().strip_prefix(base).unwrap_or(entry.path());
        let is_folder = entry.file_type().is_some_and(|it| it.is_dir());
        // An empty part at the end shows as `/`.
        self.paths.insert(if is_folder { path.join("") } else { path.to_owned() });
        self.count += 1;
        if self.paths.len() > PATHS {
            self.paths.pop_last();
        }
    }

    fn text(&self) -> String {
        let mut lines: Vec<_> = self.paths.iter().map(|it| line(&it.to_string_lossy())).collect();
        if lines.is_empty() {
            lines.push("(no match)".into());
        }
        if self.count > lines.len() && !self.paths.is_empty() {
            lines.push(format!(
                "\n[the first {PATHS} of {}; a narrower pattern shows the others]",
                self.count
            ));
        }
        if self.unread > 0 {
            lines.push(format!("\n[{} could not be read]", self.unread));
        }
        lines.join("\n")
    }
}
