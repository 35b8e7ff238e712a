//! Part of `hooks`: one command, when it runs, and how.

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{answer::Said, input::Input};
use crate::{
    cordis::{Context, Notice},
    harness::{
        approval::pattern::fits,
        env::{Env, mask::Mask},
        shell::{Shell, ShellRequest},
        shell_local::LocalShell,
    },
};

/// How much of a command a message repeats, in characters,
const SHOWN: usize = 60;
/// and how much of a reason.
const TOLD: usize = 300;

/// When a hook runs. The names are those that people know from other agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    PreToolUse,
    PostToolUse,
    Stop,
}

impl Event {
    pub(super) fn name(self) -> &'static str {
        match self {
            Event::PreToolUse => "PreToolUse",
            Event::PostToolUse => "PostToolUse",
            Event::Stop => "Stop",
        }
    }
}

/// A command that runs at an event.
pub(super) struct Hook {
    event: Event,
    /// None means all tools.
    matchers: Vec<String>,
    command: String,
    timeout_ms: u64,
}

impl Hook {
    /// Nothing between two bars is nothing: a matcher of nothing else is about all tools, as if it were not there.
    pub(super) fn new(event: Event, matcher: &str, command: String, timeout_ms: u64) -> Self {
        let matchers = matcher.split('|').map(str::trim).filter(|it| !it.is_empty());
        Self { event, matchers: matchers.map(str::to_owned).collect(), command, timeout_ms }
    }

    pub(super) fn is_about(&self, event: Event, tool: Option<&str>) -> bool {
        let fits_any = |tool| self.matchers.iter().any(|it| fits(it, tool));
        event == self.event && (self.matchers.is_empty() || tool.is_some_and(fits_any))
    }

    pub(super) fn event(&self) -> Event {
        self.event
    }

    /// Names and patterns of tools.
    pub(super) fn matchers(&self) -> &[String] {
        &self.matchers
    }

    /// Runs it to its end, or to its deadline, and reads what it has to say.
    pub(super) async fn run(
        &self,
        shell: &LocalShell,
        env: &Env,
        input: &Input<'_>,
        cancel: &CancellationToken,
    ) -> Said {
        let request = ShellRequest {
            command: self.command.clone(),
            timeout_ms: Some(self.timeout_ms),
            ..ShellRequest::default()
        };
        let result = match shell.resolve(&request) {
            Ok(mut spec) => {
                // Nobody reads the middle of a long complaint.
                spec.spill_dir = None;
                let input = input.json(&spec.cwd);
                shell.run_with(spec, Some(input), cancel.clone()).await
            }
            Err(err) => Err(err),
        };
        Said::of(self.event, result).masked(&Mask::new(env.secrets()))
    }

    /// Shows the user what is wrong with it.
    pub(super) fn tell(&self, ctx: &Context, why: &str) {
        let shown: String = first_line(&self.command).chars().take(SHOWN).collect();
        let event = self.event.name();
        ctx.emit(&Notice(format!("the {event} hook {} {why}", Value::from(shown))));
    }
}

/// What a message repeats of a text.
pub(super) fn first_line(text: &str) -> String {
    text.lines()
        .map(str::trim)
        .find(|it| !it.is_empty())
        .unwrap_or_default()
        .chars()
        .take(TOLD)
        .collect()
}
