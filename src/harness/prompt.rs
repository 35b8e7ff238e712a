//! Prompt: the system prompt, put together from named sections.
//!
//! Provides `prompt`. Each section belongs to the plugin that adds it and goes with it.
//! Full-size counterpart: the core system-prompt package.
//! Watch for: the text must not vary from one request to the next, or the model's prefix cache is of no use. What
//! changes (the time, the folder) belongs into a message.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use schemars::JsonSchema;
use serde::Deserialize;
use thiserror::Error;

use crate::cordis::{BoxError, Context, Error as KernelError, Service, Svc, Undo};

/// What the entry `prompt` may say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// Who the model is and how it is to behave; the first section of the system prompt.
    #[serde(default = "default_persona")]
    persona: String,
}

fn default_persona() -> String {
    "You are a helpful agent in the user's terminal. Use your tools to find out and to act, rather than to guess. \
     Say in few words what you did and what came of it; if something failed, say so."
        .into()
}

/// The plugin `prompt`.
pub async fn apply(ctx: Context, config: Config) -> Result<(), BoxError> {
    let prompt = Rc::new(Prompt::default());
    prompt.add(&ctx, "persona", 0, config.persona)?;
    ctx.provide(prompt)?;
    Ok(())
}

/// The service `prompt`.
#[derive(Default)]
pub struct Prompt {
    sections: RefCell<BTreeMap<String, Section>>,
}

impl Service for Prompt {
    const NAME: &'static str = "prompt";
}

struct Section {
    order: i32,
    text: String,
}

impl Svc<Prompt> {
    /// Adds a section. Sections come in ascending order; the persona has 0, advice about tools 100 to 199.
    pub fn section(
        &self,
        name: &str,
        order: i32,
        text: impl Into<String>,
    ) -> Result<Undo, PromptError> {
        self.shared().add(self.ctx(), name, order, text.into())
    }
}

impl Prompt {
    /// The whole system prompt; empty if nobody has anything to say.
    // Omitted: the full-size prompt fills in `{{variables}}`, and a section may claim to be the whole prompt.
    pub fn render(&self) -> String {
        let sections = self.sections.borrow();
        let mut sections: Vec<_> = sections.values().collect();
        // Equal orders stay sorted by name.
        sections.sort_by_key(|it| it.order);
        let texts = sections.iter().map(|it| it.text.trim()).filter(|it| !it.is_empty());
        texts.collect::<Vec<_>>().join("\n\n")
    }

    fn add(
        self: &Rc<Self>,
        owner: &Context,
        name: &str,
        order: i32,
        text: String,
    ) -> Result<Undo, PromptError> {
        if self.sections.borrow().contains_key(name) {
            return Err(PromptError::Duplicate { name: name.into() });
        }
        let (prompt, gone) = (Rc::clone(self), name.to_string());
        let undo =
            owner.effect(move || move || drop(prompt.sections.borrow_mut().remove(&gone)))?;
        self.sections.borrow_mut().insert(name.into(), Section { order, text });
        Ok(undo)
    }
}

/// Why a section was refused.
#[derive(Debug, Error)]
pub enum PromptError {
    /// A second section of one name.
    #[error("the prompt has a section `{name}` already")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// The caller is not running.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}
