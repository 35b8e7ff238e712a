//! Part of `tool-files`: where a path leads.
//!
//! Watch for: a path is judged by where it really ends, after all links. What is not there yet is judged by the folder
//! that it would be in.

use std::{
    env, fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    rc::Rc,
};

use super::error::FileError;
use crate::harness::cli::text::line;

/// The folder that the tools stay in, without links.
#[derive(Clone)]
pub(super) struct Root(Rc<Path>);

/// Where a path leads.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Without links.
    pub(super) path: PathBuf,
    /// As messages call it: as seen from the root.
    pub(super) name: String,
    /// Whether something is there.
    pub(super) exists: bool,
}

impl Root {
    /// The folder of the config, or the one that the program runs in.
    pub(super) fn new(folder: Option<PathBuf>) -> Result<Self, FileError> {
        let wrong = |path: &Path, source| FileError::Root { path: path.to_owned(), source };
        let here = || env::current_dir().map_err(|err| wrong(Path::new("."), err));
        let folder = folder.map_or_else(here, Ok)?;
        let path = folder.canonicalize().map_err(|err| wrong(&folder, err))?;
        if !path.is_dir() {
            return Err(wrong(&folder, ErrorKind::NotADirectory.into()));
        }
        Ok(Self(path.into()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// As seen from the root.
    pub(super) fn name(&self, path: &Path) -> String {
        match path.strip_prefix(&self.0) {
            Ok(inner) if inner.as_os_str().is_empty() => ".".into(),
            Ok(inner) => line(&inner.to_string_lossy()),
            Err(_) => line(&path.to_string_lossy()),
        }
    }

    /// A path of something that is there.
    pub(super) fn find(&self, asked: &str) -> Result<Place, FileError> {
        let place = self.place(asked)?;
        if !place.exists {
            return Err(FileError::Missing { name: place.name });
        }
        Ok(place)
    }

    /// A path of something that is there or may come to be.
    pub(super) fn place(&self, asked: &str) -> Result<Place, FileError> {
        if asked.trim().is_empty() {
            return Err(FileError::NoPath { root: self.0.to_path_buf() });
        }
        let joined = self.0.join(asked);
        match joined.canonicalize() {
            Ok(path) => self.inside(asked, path, true),
            Err(err) if err.kind() == ErrorKind::NotFound => {
                let path = absent(&joined).map_err(|err| self.hidden(asked, &joined, err))?;
                self.inside(asked, path, false)
            }
            Err(source) => {
                let err = FileError::Read { name: line(asked), source };
                Err(self.hidden(asked, &joined, err))
            }
        }
    }

    fn inside(&self, asked: &str, path: PathBuf, exists: bool) -> Result<Place, FileError> {
        if !path.starts_with(&self.0) {
            return Err(self.outside(asked));
        }
        Ok(Place { name: self.name(&path), path, exists })
    }

    fn outside(&self, asked: &str) -> FileError {
        FileError::Outside { asked: line(asked), root: self.0.to_path_buf() }
    }

    /// What is wrong with a path says nothing about what is elsewhere.
    fn hidden(&self, asked: &str, joined: &Path, err: FileError) -> FileError {
        let nearest = joined.ancestors().find_map(|it| it.canonicalize().ok());
        match nearest {
            Some(real) if real.starts_with(&self.0) => err,
            _ => self.outside(asked),
        }
    }
}

/// The real path of something that is not there, below the nearest folder that is.
fn absent(path: &Path) -> Result<PathBuf, FileError> {
    let name = || line(&path.to_string_lossy());
    let mut missing = Vec::new();
    let mut nearest = path;
    while fs::symlink_metadata(nearest).is_err() {
        let Some(last) = nearest.file_name() else {
            return Err(FileError::Upwards { name: name() });
        };
        missing.push(last);
        nearest = nearest.parent().unwrap_or(Path::new("/"));
    }
    let real = nearest.canonicalize().map_err(|source| match fs::read_link(nearest) {
        Ok(target) => FileError::Dangling {
            name: line(&nearest.to_string_lossy()),
            target: line(&target.to_string_lossy()),
        },
        Err(_) => FileError::Read { name: name(), source },
    })?;
    Ok(missing.iter().rev().fold(real, |path, name| path.join(name)))
}
