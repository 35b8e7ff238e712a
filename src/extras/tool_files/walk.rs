//! Part of `tool-files`: which files a search sees, and which of them a pattern of paths means.
//!
//! Watch for: hidden files are seen, because a project has some; the folders of version control and of the agent are not.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder};

use super::{error::FileError, place::Root};
use crate::harness::cli::text::line;

const UNSEEN: [&str; 5] = [".git", ".hg", ".jj", ".nano", ".svn"];

/// A walk as `.gitignore` says. What stands above the root counts only if it is of the same repository.
pub(super) fn walk(root: &Root, from: &Path) -> WalkBuilder {
    let is_repository = root.path().ancestors().any(|it| it.join(".git").exists());
    let mut walk = WalkBuilder::new(from);
    walk.hidden(false).require_git(false).parents(is_repository).filter_entry(is_seen);
    walk
}

fn is_seen(entry: &DirEntry) -> bool {
    entry.depth() == 0 || !UNSEEN.iter().any(|it| entry.file_name() == *it)
}

/// A pattern of paths below a folder.
pub(super) struct Pattern(GlobMatcher);

impl Pattern {
    /// A pattern without `/` means names in any folder, as in `.gitignore`.
    pub(super) fn new(pattern: &str, root: &Root, from: &Path) -> Result<Self, FileError> {
        let wrong = |problem: &str| {
            Err(FileError::Glob { pattern: line(pattern), problem: problem.to_owned() })
        };
        let below = |folder: &Path| {
            let rest = pattern.strip_prefix(folder.to_str()?)?;
            rest.strip_prefix('/')
        };
        let inner = below(from).or_else(|| below(root.path()));
        let inner = inner.unwrap_or(pattern).trim_start_matches("./");
        if inner.starts_with('/') {
            return Err(FileError::Outside {
                asked: line(pattern),
                root: root.path().to_path_buf(),
            });
        }
        if inner.is_empty() {
            return wrong("it is empty");
        }
        if inner.split('/').any(|it| it == "..") {
            return wrong("`..` leads nowhere in it; say where to begin with `path`");
        }
        let whole = if inner.contains('/') { inner.to_owned() } else { format!("**/{inner}") };
        let built = GlobBuilder::new(&whole).literal_separator(true).empty_alternates(true).build();
        match built {
            Ok(glob) => Ok(Self(glob.compile_matcher())),
            Err(err) => wrong(&err.kind().to_string()),
        }
    }

    /// The path is as seen from that folder.
    pub(super) fn fits(&self, path: &Path) -> bool {
        self.0.is_match(path)
    }
}
