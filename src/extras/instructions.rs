//! Instructions: what the people of a project wrote for agents, in `AGENTS.md` and `CLAUDE.md`, as a part of the prompt.
//!
//! Needs `session`. Listens to `agent/request`. Raises `cordis/notice` and `cordis/warning`. The parts in its folder:
//! `source` finds and reads the files, `budget` says which of them there is room for.
//! Full-size counterpart: the instruction files of the agent bundle, which also looks deeper when a tool goes there.
//! Watch for: they are read when a session begins and not again while it lasts, whatever other sessions do. A prompt that
//! changes under a conversation makes the model service read all of it anew. So each session has a text of its own, which is
//! added to its requests; a section of the prompt would be one for all.

mod budget;
mod source;

use std::{
    cell::RefCell,
    collections::HashMap,
    path::{Path, PathBuf},
    rc::Rc,
};

use schemars::JsonSchema;
use serde::Deserialize;

use self::{
    budget::{Kept, fit},
    source::{Found, find},
};
use crate::{
    cordis::{BoxError, Context, Notice, Svc, Warning},
    harness::{
        agent_loop::{AgentRequest, RequestConfig},
        session::Sessions,
    },
};

/// Config of `instructions`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// Names of the files, in each folder from that of the project (the nearest with a `.git`) down to this one.
    #[serde(default = "default_files")]
    files: Vec<FileName>,
    /// So many bytes of them are taken at most; files of folders further up are left out first.
    #[serde(default = "default_max_bytes")]
    #[schemars(range(min = 1, max = 1_048_576))]
    max_bytes: usize,
    /// The folder to begin with; without it the one that the program runs in.
    folder: Option<PathBuf>,
}

/// A name without a folder.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
struct FileName(String);

impl TryFrom<String> for FileName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        match name.as_str() {
            "" | "." | ".." => Err(format!("`{name}` is not the name of a file")),
            it if it.contains('/') => {
                Err(format!("`{name}` is a path; here only names are looked for"))
            }
            _ => Ok(Self(name)),
        }
    }
}

fn default_files() -> Vec<FileName> {
    ["AGENTS.md", "CLAUDE.md"].map(|it| FileName(it.into())).into()
}

fn default_max_bytes() -> usize {
    32 << 10
}

const HEADING: &str = "# Instructions of this project\n\nFrom files that its people wrote for agents. Where two of them \
                       disagree, the later one holds.";

/// The plugin. What it finds now is for the session that begins now; a later one finds what is there then.
pub async fn apply(ctx: Context, config: Config, _sessions: Svc<Sessions>) -> Result<(), BoxError> {
    let (next, texts) = (RefCell::default(), RefCell::default());
    let instructions = Instructions { config, next, texts, told: RefCell::default() };
    let first = instructions.read(&ctx)?;
    instructions.next.replace(Some(first));
    ctx.intercept::<AgentRequest>(async move |ctx, draft, next| {
        let text = instructions.of(&ctx, draft.session.id())?;
        let config = next.run().await?;
        let parts = [config.system.as_str(), &text].into_iter().filter(|it| !it.is_empty());
        let system = parts.collect::<Vec<_>>().join("\n\n");
        Ok(RequestConfig { system, ..config })
    })?;
    Ok(())
}

struct Instructions {
    config: Config,
    /// What was read at the start, until a session has it.
    next: RefCell<Option<Rc<str>>>,
    /// What each session began with.
    texts: RefCell<HashMap<String, Rc<str>>>,
    /// What was told last.
    told: RefCell<Rc<str>>,
}

impl Instructions {
    fn of(&self, ctx: &Context, session: &str) -> Result<Rc<str>, BoxError> {
        if let Some(text) = self.texts.borrow().get(session) {
            return Ok(text.clone());
        }
        let text = self.next.take().map_or_else(|| self.read(ctx), Ok)?;
        self.texts.borrow_mut().insert(session.to_owned(), text.clone());
        Ok(text)
    }

    /// Reads what is there, and tells what is new.
    fn read(&self, ctx: &Context) -> Result<Rc<str>, BoxError> {
        let folder = self.config.folder.clone().map_or_else(std::env::current_dir, Ok)?;
        let Found { files, problems } = find(&folder, &self.config.files, self.config.max_bytes);
        for problem in problems {
            ctx.emit(&Warning(format!("instructions: {problem}")));
        }
        let kept = fit(files, self.config.max_bytes);
        let text: Rc<str> = kept.text(HEADING).into();
        let last = self.told.replace(text.clone());
        if last == text {
            // Sessions that begin with the same share it.
            return Ok(last);
        }
        self.tell(ctx, &kept);
        Ok(text)
    }

    fn tell(&self, ctx: &Context, kept: &Kept) {
        let summary = kept.summary().unwrap_or_else(|| "none any more".into());
        ctx.emit(&Notice(format!("instructions: {summary}")));
        for left_out in kept.left_out(self.config.max_bytes) {
            ctx.emit(&Warning(format!("instructions: {left_out}")));
        }
    }
}

/// A file as seen from a folder.
fn shown(path: &Path, base: &Path) -> String {
    path.strip_prefix(base).unwrap_or(path).display().to_string()
}
