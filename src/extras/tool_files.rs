//! File tools: lets the model read, write, change and find files without going through a shell.
//!
//! Needs `tools`; uses `loader` and `persistence` if they are there. Registers the tools `read`, `write`, `edit`, `glob` and
//! `grep`. The parts in its folder: `place` says where a path leads and `protected` what is never written; `open` reads
//! without ever waiting; `seen` knows what was read before; `pages` is what `read` shows; `change`, `replace`,
//! `store` and `diff` are the way of a change; `walk`, `glob`, `grep` and `scan` are the searches, `job` their thread.
//! Full-size counterpart: the file tools of the agent bundle, which know notebooks and images too.
//! Watch for: a file is overwritten only if the model has read it and it is still what it read; that is asked before the
//! user is, and again right before the write. And no tool leaves its root, whatever links there are.

mod change;
mod diff;
mod error;
mod glob;
mod grep;
mod job;
mod open;
mod pages;
mod place;
mod protected;
mod replace;
mod scan;
mod seen;
mod store;
mod walk;

use std::{path::PathBuf, rc::Rc};

use schemars::JsonSchema;
use serde::Deserialize;

use self::{change::Desk, place::Root, protected::Protected};
use crate::{
    cordis::{BoxError, Context, Loader, Optional, Svc},
    harness::{persistence::Persistence, tools::Tools},
};

/// Config of `tool-files`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// The folder that the tools do not leave; without it the one that the program runs in.
    root: Option<PathBuf>,
}

/// Registers the tools.
pub async fn apply(
    _ctx: Context,
    config: Config,
    tools: Svc<Tools>,
    loader: Optional<Loader>,
    saved: Optional<Persistence>,
) -> Result<(), BoxError> {
    let root = Root::new(config.root)?;
    let protected = Protected::new(loader, saved);
    let desk = Rc::new(Desk::new(root.clone(), protected));
    tools.register(pages::tool(&desk))?;
    tools.register(change::write_tool(&desk))?;
    tools.register(change::edit_tool(&desk))?;
    tools.register(glob::tool(&root))?;
    tools.register(grep::tool(&root))?;
    Ok(())
}
