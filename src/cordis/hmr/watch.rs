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
    fn start(
        &self,
        folders: &BTreeSet<PathBuf>,
        stirred: Sender<()>,
    ) -> Result<Box<dyn Any>, String>;
}

/// The system's watcher.
pub struct System;

impl Watch for System {
    fn start(
        &self,
        folders: &BTreeSet<PathBuf>,
        stirred: Sender<()>,
    ) -> Result<Box<dyn Any>, String> {
        let stir = move |event| {
            if matters(&event) {
                // Full means that a look is due already; closed means that nobody looks any more.
                stirred.try_send(()).ok();
            }
        };
        let mut watcher = notify::recommended_watcher(stir).map_err(|err| err.to_string())?;
        for folder in folders {
            watcher.watch(folder, RecursiveMode::NonRecursive).map_err(|err| err.to_string())?;
        }
        Ok(Box::new(watcher))
    }
}

/// Reading a file is an event too, and the loader reads: whoever listened to that would never come to rest.
fn matters(event: &notify::Result<notify::Event>) -> bool {
    match event {
        Ok(event) => {
            !matches!(event.kind, EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_)))
        }
        Err(_) => true,
    }
}

/// The folders in which something happens when one of the files becomes another one: its own, that of each link on the
/// way to it, and those of what the links point to.
pub(super) fn folders(files: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut folders = BTreeSet::new();
    for file in files {
        follow(file, &mut folders, &mut 40);
    }
    folders
}

/// Links may point in circles, so only so many are followed.
fn follow(path: &Path, folders: &mut BTreeSet<PathBuf>, left: &mut usize) {
    folders.extend(folder(path));
    for place in path.ancestors() {
        let Ok(target) = fs::read_link(place) else { continue };
        if *left == 0 {
            return;
        }
        *left -= 1;
        folders.extend(folder(place));
        follow(&place.parent().unwrap_or(Path::new("")).join(target), folders, left);
    }
}

/// Under its one true name, so that no folder is watched twice. If it is gone, the nearest one in which it may come back.
fn folder(path: &Path) -> Option<PathBuf> {
    let here =
        |it: &Path| if it.as_os_str().is_empty() { PathBuf::from(".") } else { it.to_owned() };
    path.ancestors().skip(1).find_map(|it| fs::canonicalize(here(it)).ok())
}
