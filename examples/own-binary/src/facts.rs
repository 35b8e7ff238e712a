//! Facts: what other plugins know and the model should, one line each, in the system prompt.
//!
//! Needs `prompt`. Provides `facts`.
//! Watch for: the service is a type of this crate, and `Svc` is not, so its registering method stands on a trait. It
//! registers through `self.ctx()`: a fact belongs to the plugin that stated it, and goes when that one goes.

use std::rc::Rc;

use nano_cordis::cordis::{BoxError, Context, NoConfig, Service, Svc, Undo};
use nano_cordis::harness::prompt::Prompt;

/// Starts the service.
pub async fn apply(ctx: Context, _: NoConfig, _prompt: Svc<Prompt>) -> Result<(), BoxError> {
    ctx.provide(Rc::new(Facts))?;
    Ok(())
}

/// The service `facts`.
pub struct Facts;

impl Service for Facts {
    const NAME: &'static str = "facts";
}

/// What a plugin can do with the service.
pub trait StateFacts {
    /// Puts a fact into the system prompt, for as long as the caller runs.
    fn state(&self, name: &str, fact: &str) -> Result<Undo, BoxError>;
}

impl StateFacts for Svc<Facts> {
    fn state(&self, name: &str, fact: &str) -> Result<Undo, BoxError> {
        // `prompt` is read as the service declares it; the section belongs to the caller.
        let prompt = self.ctx().service::<Prompt>()?;
        Ok(prompt.section(&format!("fact/{name}"), 200, format!("Fact: {fact}"))?)
    }
}
