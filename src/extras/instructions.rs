//! Instructions: what the people of a project wrote for agents, in `AGENTS.md` and `CLAUDE.md`, as a part of the prompt.
//!
//! Needs `prompt`. Listens to `session/event`. Raises `cordis/notice` and `cordis/warning`. The parts in its folder:
//! `source` finds and reads the files, `budget` says which of them there is room for.
//! Full-size counterpart: the instruction files of the agent bundle, which also looks deeper when a tool goes there.
//! Watch for: they are read when a session begins and not again while it lasts. A prompt that changes under a
//! conversation makes the model service read all of it anew.

mod budget;
mod source;

use std::{
    cell::RefCell,
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
    cordis::{BoxError, Context, Notice, Svc, Undo, Warning},
    harness::{
        prompt::Prompt,
        session::{SessionEvent, event::EventBody},
    },
};

/// Config of `instructions`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
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

/// Where the section stands in the prompt: after who the model is, before advice about tools.
const ORDER: i32 = 50;
const HEADING: &str = "# Instructions of this project\n\nFrom files that its people wrote for agents. Where two of them \
                       disagree, the later one holds.";

/// The plugin. What it finds now is for the session that begins now; a later one finds what is there then.
pub async fn apply(ctx: Context, config: Config, prompt: Svc<Prompt>) -> Result<(), BoxError> {
    let shown = RefCell::new(None);
    let instructions = Rc::new(Instructions { config, prompt, shown, session: RefCell::default() });
    instructions.load(&ctx)?;
    ctx.on(move |ctx, it: &SessionEvent| match it.event.body {
        EventBody::TurnStart { .. } => instructions.begin(ctx, it.session.id()),
        _ => Ok(()),
    })?;
    Ok(())
}

struct Instructions {
    config: Config,
    prompt: Svc<Prompt>,
    /// The section, and its text.
    shown: RefCell<Option<(Undo, String)>>,
    /// The session that it is for; none before the first turn.
    session: RefCell<Option<String>>,
}

impl Instructions {
    /// A turn begins. The first session has what was read at the start.
    fn begin(&self, ctx: &Context, session: &str) -> Result<(), BoxError> {
        let last = self.session.replace(Some(session.to_owned()));
        match last {
            Some(last) if last != session => self.load(ctx),
            Some(_) | None => Ok(()),
        }
    }

    fn load(&self, ctx: &Context) -> Result<(), BoxError> {
        let here = || std::env::current_dir();
        let folder = self.config.folder.clone().map_or_else(here, Ok)?;
        let Found { files, problems } = find(&folder, &self.config.files, self.config.max_bytes);
        for problem in problems {
            ctx.emit(&Warning(format!("instructions: {problem}")));
        }
        let kept = fit(files, self.config.max_bytes);
        let text = kept.text(HEADING);
        if self.shown.borrow().as_ref().is_some_and(|it| it.1 == text) {
            return Ok(());
        }
        self.tell(ctx, &kept);
        self.show(text)
    }

    fn tell(&self, ctx: &Context, kept: &Kept) {
        let had_some = self.shown.borrow().is_some();
        match kept.summary() {
            Some(summary) => ctx.emit(&Notice(format!("instructions: {summary}"))),
            None if had_some => ctx.emit(&Notice("instructions: none any more".into())),
            None => {}
        }
        for left_out in kept.left_out(self.config.max_bytes) {
            ctx.emit(&Warning(format!("instructions: {left_out}")));
        }
    }

    fn show(&self, text: String) -> Result<(), BoxError> {
        if let Some((undo, _)) = self.shown.take() {
            // Nothing of it waits: when this returns the name is free.
            drop(undo.call());
        }
        if !text.is_empty() {
            let undo = self.prompt.section("instructions", ORDER, text.clone())?;
            self.shown.replace(Some((undo, text)));
        }
        Ok(())
    }
}

/// A file as seen from a folder.
fn shown(path: &Path, base: &Path) -> String {
    path.strip_prefix(base).unwrap_or(path).display().to_string()
}
