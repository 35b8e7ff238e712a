//! Part of `script`: what the words of an import mean, and why some mean nothing here.

use std::path::{Component, Path, PathBuf};

use super::imports::HOST;

/// What is tried, in this order, for an import that names no file as it is written.
const ENDINGS: [&str; 4] = ["ts", "mts", "js", "mjs"];
/// What people know from Node. There is no Node here, so each of them is refused in words.
const NODE: [&str; 20] = [
    "assert",
    "async_hooks",
    "buffer",
    "child_process",
    "crypto",
    "dns",
    "events",
    "fs",
    "http",
    "https",
    "net",
    "os",
    "path",
    "process",
    "readline",
    "stream",
    "timers",
    "url",
    "util",
    "worker_threads",
];

/// Why an import that is no path is not served.
pub(super) fn bare(specifier: &str, is_file: bool) -> String {
    let plain = specifier.strip_prefix("node:").unwrap_or(specifier);
    let plain = plain.split('/').next().unwrap_or(plain);
    if specifier.starts_with("node:") || NODE.contains(&plain) {
        return format!(
            "`{specifier}` is a part of Node, and there is no Node here: a script has no file system and starts no \
             processes; commands go through the service `shell`"
        );
    }
    if is_file {
        return format!(
            "`{specifier}` is no module; the file beside it is imported as `./{specifier}`"
        );
    }
    format!(
        "`{specifier}` cannot be imported: a script imports files by a path that begins with `./` or `../`, and \
         {}; packages are not served",
        HOST.map(|it| format!("`{it}`")).join(", ")
    )
}

/// The file that an import means: as written, with an ending, the TypeScript of a `.js`, or the index of a folder.
pub(super) fn existing(target: &Path) -> Option<PathBuf> {
    let is_there = |it: &PathBuf| it.exists() && !it.is_dir();
    let with = |ending: &&str| PathBuf::from(format!("{}.{ending}", target.display()));
    let ending = target.extension().and_then(|it| it.to_str());
    let as_typescript = match ending {
        Some("js") => Some(target.with_extension("ts")),
        Some("mjs") => Some(target.with_extension("mts")),
        _ => None,
    };
    [target.to_owned()]
        .into_iter()
        .chain(as_typescript)
        .chain(ENDINGS.iter().map(with))
        .chain(ENDINGS.iter().map(|it| target.join(format!("index.{it}"))))
        .find(is_there)
}

/// What the engine calls a file.
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
