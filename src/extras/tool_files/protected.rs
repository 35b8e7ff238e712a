//! Part of `tool-files`: what is never written, because it decides what the agent may do or says what it did (D-22).
//!
//! Watch for: files are compared by where they really are, and by what they are, so that no second name of one helps.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{error::FileError, place::Place};
use crate::{
    cordis::{Loader, Optional},
    harness::persistence::Persistence,
};

/// The list, by its usual name: there it would be in force at the next start.
const LIST: &str = "cordis.yml";
/// Where sessions and the history of the prompt are kept.
const KEPT: &str = ".nano";

/// Knows what is in use now; both may change with each save of the list.
pub(super) struct Protected {
    loader: Optional<Loader>,
    saved: Optional<Persistence>,
}

impl Protected {
    pub(super) fn new(loader: Optional<Loader>, saved: Optional<Persistence>) -> Self {
        Self { loader, saved }
    }

    /// An error if nothing may be written there.
    pub(super) fn check(&self, place: &Place) -> Result<(), FileError> {
        match self.objection(&place.path) {
            Some(why) => Err(FileError::Protected { name: place.name.clone(), why }),
            None => Ok(()),
        }
    }

    fn objection(&self, path: &Path) -> Option<&'static str> {
        // Some file systems make no difference between large and small letters.
        if path.file_name().is_some_and(|it| it.eq_ignore_ascii_case(LIST)) {
            return Some("it says which plugins run");
        }
        if path.iter().any(|it| it.eq_ignore_ascii_case(KEPT)) || self.is_session(path) {
            return Some("sessions are kept there");
        }
        let used = self.loader.get().map(|it| it.watched()).unwrap_or_default();
        let is_used = used.iter().any(|used| is_same(&real(used), path));
        is_used.then_some("the running plugins are read from it")
    }

    fn is_session(&self, path: &Path) -> bool {
        self.saved.get().is_some_and(|it| path.starts_with(real(it.dir())))
    }
}

/// Whether two paths name one file; a hard link is a second name too.
fn is_same(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| fs::symlink_metadata(path).map(|it| (it.dev(), it.ino())).ok();
    one == other || id(one).is_some_and(|it| id(other) == Some(it))
}

/// Without links, also if the last part is not there.
fn real(path: &Path) -> PathBuf {
    let in_folder = || {
        let folder = path.parent()?;
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(in_folder).unwrap_or_else(|| path.to_owned())
}
