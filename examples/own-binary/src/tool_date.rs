//! A tool that tells the date.
//!
//! Needs `tools` and `facts`. Registers the tool `date`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nano_cordis::cordis::{BoxError, Context, Svc};
use nano_cordis::harness::tools::{Tool, Tools};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::facts::{Facts, StateFacts};

/// The config of `tool-date`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// What the model is told about the tool.
    #[serde(default = "default_description")]
    description: String,
}

fn default_description() -> String {
    "Tells the current date and time in UTC.".into()
}

/// What the model may pass.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    /// Days from now; negative for the past.
    #[serde(default)]
    days: i64,
}

/// Registers the tool, and says in the prompt that it is there.
pub async fn apply(
    _ctx: Context,
    config: Config,
    tools: Svc<Tools>,
    facts: Svc<Facts>,
) -> Result<(), BoxError> {
    facts.state("date", "you do not know the date; the tool `date` does")?;
    tools.register(Tool::typed(
        "date",
        config.description,
        async |arguments: Arguments, _call| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
            let shift = Duration::from_secs(arguments.days.unsigned_abs().saturating_mul(86_400));
            let then =
                if arguments.days < 0 { now.checked_sub(shift) } else { now.checked_add(shift) };
            Ok(format!(
                "{} seconds after 1970-01-01T00:00:00Z",
                then.ok_or("out of range")?.as_secs()
            ))
        },
    ))?;
    Ok(())
}
