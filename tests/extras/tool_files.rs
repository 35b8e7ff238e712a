//! File tools: what they read, change and find, and what they refuse before anybody is asked.

mod changes;
mod pages;
mod paths;
mod protection;
mod searches;

use std::{
    fs,
    path::{Path, PathBuf},
};

use nano_cordis::harness::tools::ToolResult;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::hooks::rig::{Rig, agent};

/// An agent whose file tools stay in a folder.
fn list(root: &Path, more: &str) -> String {
    let config = json!({ "root": root });
    format!(
        "
- {{id: session, name: session}}
- {{id: prompt, name: prompt}}
- {{id: tools, name: tools}}
- {{id: echo, name: echo}}
- {{id: llm, name: llm-fake}}
- {{id: loop, name: agent-loop}}
- {{id: files, name: tool-files, config: {config}}}
{more}"
    )
}

/// What a test works with: a folder, and an agent whose file tools stay in it.
struct Desk<'a> {
    rig: &'a Rig,
    root: PathBuf,
}

/// Runs a test with file tools of an empty folder.
fn desk(test: impl AsyncFnOnce(&Desk<'_>)) {
    desk_with("", test);
}

/// The same, with more entries.
fn desk_with(more: &str, test: impl AsyncFnOnce(&Desk<'_>)) {
    let folder: TempDir = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    agent(&list(&root, more), async |rig| test(&Desk { rig, root }).await);
}

impl Desk<'_> {
    /// Puts a file there.
    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.root.join(name)).unwrap()
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    /// The names of all that is in the folder.
    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.root).unwrap();
        let mut names: Vec<_> =
            names.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.rig.call(tool, &arguments.to_string()).await
    }

    /// What came of a call that has to work.
    async fn done(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert!(!result.is_error, "{result:?}");
        result.content
    }

    /// What is said of a call that must not.
    async fn refused(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert!(result.is_error && !result.content.contains('\n'), "{result:?}");
        result.content.trim_start_matches("Error: ").to_owned()
    }

    async fn read(&self, name: &str) -> String {
        self.done("read", json!({ "file_path": name })).await
    }

    async fn edit(&self, name: &str, old: &str, new: &str) -> String {
        self.done("edit", edit(name, old, new)).await
    }
}

fn edit(name: &str, old: &str, new: &str) -> Value {
    json!({ "file_path": name, "old_string": old, "new_string": new })
}
