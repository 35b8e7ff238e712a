//! Approval: asks the user before a guarded tool runs.
//!
//! Needs `tools`. Listens to `tools/pre-execute`, `tools/changed`, `loader/applied`. Raises `approval/request` and
//! `cordis/warning`.
//! Full-size counterpart: the user-approval package.
//! Watch for: silence, a failure and anything but a clear yes are a no. Nothing else in the agent knows this plugin:
//! without its entry no one asks.

mod coverage;
mod memory;
pub(crate) mod pattern;

use std::rc::Rc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

pub use self::memory::{Memory, Remember};
use self::pattern::fits;
use crate::{
    cordis::{BoxError, Context, Next, Serial, Svc},
    harness::tools::{Call, Order, PreExecute, Tools, Verdict},
};

/// Config of `approval`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// Tools to ask about: names, or patterns in which `*` stands for any text (`mcp__*`).
    /// An empty list asks about nothing; leaving it out is an error, because a typo must not open the door.
    tools: Vec<String>,
}

/// The plugin. It asks after all policies that can decide alone.
pub async fn apply(ctx: Context, config: Config, tools: Svc<Tools>) -> Result<(), BoxError> {
    let guarded = Rc::new(Guarded(config.tools));
    coverage::watch(&ctx, &guarded, tools)?;
    ctx.intercept_at::<PreExecute>(Order::ASKING, async move |ctx, call, next| {
        ask_first(&ctx, &guarded, call, next).await
    })?;
    Ok(())
}

// Omitted: the full-size project logs each question and its answer and can be told to refuse without asking.
// Here the log shows a refusal as the result of the call, and nobody answering refuses as well.
async fn ask_first(
    ctx: &Context,
    guarded: &Guarded,
    call: Rc<Call>,
    next: Next<PreExecute>,
) -> Result<Verdict, BoxError> {
    // A call with a problem never runs, so there is nothing to ask.
    if call.problem.is_some() || !guarded.covers(&call.name) {
        return next.run().await;
    }
    let answer = tokio::select! {
        // First: a yes that comes when this plugin has been told to stop is too late.
        biased;
        () = ctx.stopping() => Ok(Some(Answer::Nobody("approval was unloaded meanwhile".into()))),
        answer = ctx.serial::<ApprovalRequest>(call) => answer,
    };
    let why = match answer {
        Ok(Some(Answer::Yes)) => return next.run().await,
        Ok(Some(Answer::No)) => "the user refused this call".to_owned(),
        Ok(Some(Answer::Nobody(why))) => format!("{why}, so this call was refused"),
        Ok(None) => "nobody was there to approve this call, so it was refused".to_owned(),
        Err(err) => format!("asking the user failed ({err}), so this call was refused"),
    };
    Ok(Verdict::Deny(format!(
        "{why}; do not try the same command again, ask the user how to go on"
    )))
}

/// `approval/request`: may this call run? The first answer counts.
pub struct ApprovalRequest;

impl Serial for ApprovalRequest {
    const NAME: &'static str = "approval/request";
    type Input = Call;
    type Answer = Option<Answer>;
}

/// An answer; never a bare `bool`, whose `false` would count as no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Let it run.
    Yes,
    /// Refuse: the user said so.
    No,
    /// Refuse, because nobody said anything: why.
    Nobody(String),
}

impl Answer {
    /// What an answerer outside of Rust said: only a literal `true` lets a call through, and nothing is no answer.
    pub fn from_json(said: &Value) -> Option<Answer> {
        match said {
            Value::Null => None,
            Value::Bool(true) => Some(Answer::Yes),
            _ => Some(Answer::No),
        }
    }
}

/// The names and patterns of the config.
struct Guarded(Vec<String>);

impl Guarded {
    fn covers(&self, tool: &str) -> bool {
        self.0.iter().any(|pattern| fits(pattern, tool))
    }
}
