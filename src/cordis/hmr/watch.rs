//! Watching folders: the system's own way, and a place for another one.
//!
//! Watch for: never a file, always its folder. A save by rename puts another file under the name, and a watch on the file
//! would stay with the old one.

use std::{
    any::Any,
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use notify::{EventKind, RecursiveMode, Watcher, event::ModifyKind};
use tokio::sync::mpsc::Sender;

/// Says that something happened in some folders. What it was is no concern of whoever watches.
pub trait Watch: 'static {
    /// Begins to watch; ends when the returned value is dropped. The channel holds one message: more would say no more.
    ///
    /// # Errors
    /// Why the system cannot, in one line.
    fn start(&self, places: &Places, stirred: Sender<()>) -> Result<Box<dyn Any>, String>;
}

/// Where something happens when one of some files becomes another one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The folders of the files, of each link on the way to them, and of what the links point to.
    pub folders: BTreeSet<PathBuf>,
    /// The files and links in these folders that matter.
    pub files: BTreeSet<PathBuf>,
}

/// The system's watcher.
pub struct System;

impl Watch for System {
    fn start(&self, places: &Places, stirred: Sender<()>) -> Result<Box<dyn Any>, String> {
        let files = places.files.clone();
        let stir = move |event| {
            if matters(&event, &files) {
                // Full means that a look is due already; closed means that nobody looks any more.
                stirred.try_send(()).ok();
            }
        };
        let mut watcher = notify::recommended_watcher(stir).map_err(|err| err.to_string())?;
        for folder in &places.folders {
            watcher.watch(folder, RecursiveMode::NonRecursive).map_err(|err| err.to_string())?;
        }
        Ok(Box::new(watcher))
    }
}

/// Reading a file is an event too, and the loader reads: whoever listened to that would never come to rest. That a file
/// has other permissions or another owner matters for the files themselves only.
fn matters(event: &notify::Result<notify::Event>, files: &BTreeSet<PathBuf>) -> bool {
    let Ok(event) = event else { return true };
    match event.kind {
        EventKind::Access(_) => false,
        EventKind::Modify(ModifyKind::Metadata(_)) => {
            event.paths.iter().any(|it| files.contains(it))
        }
        _ => true,
    }
}

impl Places {
    pub(super) fn of(files: &[PathBuf]) -> Self {
        let mut places = Self::default();
        for file in files {
            places.follow(file, &mut 40);
        }
        places
    }

    /// Links may point in circles, so only so many are followed.
    fn follow(&mut self, path: &Path, left: &mut usize) {
        self.add(path);
        for place in path.ancestors() {
            let Ok(target) = fs::read_link(place) else { continue };
            if *left == 0 {
                return;
            }
            *left -= 1;
            self.add(place);
            self.follow(&place.parent().unwrap_or(Path::new("")).join(target), left);
        }
    }

    fn add(&mut self, path: &Path) {
        let Some(folder) = folder(path) else { return };
        self.files.extend(path.file_name().map(|it| folder.join(it)));
        self.folders.insert(folder);
    }
}

/// Under its one true name, so that no folder is watched twice. If it is gone, the nearest one in which it may come back.
fn folder(path: &Path) -> Option<PathBuf> {
    let here =
        |it: &Path| if it.as_os_str().is_empty() { PathBuf::from(".") } else { it.to_owned() };
    path.ancestors().skip(1).find_map(|it| fs::canonicalize(here(it)).ok())
}
