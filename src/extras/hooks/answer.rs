//! Part of `hooks`: what it means how a hook ended and what it printed.
//!
//! Watch for: in doubt it is a no. A hook that was to guard something and broke must not be as good as none, and words
//! that are not understood may have been meant to block.

use serde_json::Value;

use super::hook::{Event, first_line};
use crate::harness::{
    env::mask::Mask,
    shell::{Output, ShellError, ShellResult},
};

/// What a hook had to say.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    /// A person is to be asked: why.
    Ask(String),
    /// Not like this: why.
    Block(String),
    /// It ended with an error of its own, which is shown and blocks nothing.
    Failed(String),
    /// It could not do its work. Before a tool that blocks (D-65).
    Broken(String),
}

impl Said {
    /// The texts without secrets: JSON can write one in ways that were not seen while it was read.
    pub(super) fn masked(self, mask: &Mask) -> Self {
        let masked = |it: String| mask.text(&it).into_owned();
        match self {
            Said::Nothing => Said::Nothing,
            Said::Ask(why) => Said::Ask(masked(why)),
            Said::Block(reason) => Said::Block(masked(reason)),
            Said::Failed(why) => Said::Failed(masked(why)),
            Said::Broken(why) => Said::Broken(masked(why)),
        }
    }

    // A shell tells with a code of its own that it did not find or start a program, or that a signal ended one.
    pub(super) fn of(event: Event, result: Result<ShellResult, ShellError>) -> Self {
        let result = match result {
            Ok(result) => result,
            Err(err) => return Said::Broken(format!("could not be started: {err}")),
        };
        let complaint = last_line(&result.stderr);
        match (result.exit_code, &result.signal) {
            _ if result.timed_out => {
                Said::Broken(format!("did not end within {} ms", result.timeout_ms))
            }
            (_, Some(signal)) => Said::Broken(format!("was killed by {signal}")),
            (Some(0), _) => decision(event, &result.stdout),
            (Some(2), _) => Said::Block(reason(&result.stderr.text)),
            (Some(code @ (126 | 127)), _) => {
                Said::Broken(format!("could not be started (exit code {code}){complaint}"))
            }
            (Some(code @ 129..=192), _) => {
                Said::Broken(format!("was killed by signal {}{complaint}", code - 128))
            }
            (Some(code), _) => Said::Failed(format!("failed with exit code {code}{complaint}")),
            (None, _) => Said::Broken("did not end".into()),
        }
    }
}

/// A hook that ended well may have printed a decision. Text that does not begin like one is nothing but text.
fn decision(event: Event, stdout: &Output) -> Said {
    let text = stdout.text.trim_start_matches('\u{feff}').trim();
    if !text.starts_with('{') {
        return Said::Nothing;
    }
    if stdout.left_out > 0 {
        return Said::Broken("gave an answer that is too long".into());
    }
    match serde_json::from_str(text) {
        Ok(answer) => read(event, &answer),
        Err(err) => Said::Broken(format!("gave an answer that is no JSON: {err}")),
    }
}

/// The strictest of what the answer says.
fn read(event: Event, answer: &Value) -> Said {
    let specific = &answer["hookSpecificOutput"];
    let (stops, changes) = (answer["continue"] == false, !specific["updatedInput"].is_null());
    match event {
        Event::Stop if stops => return Said::Nothing,
        _ if stops => return Said::Block(reason_in(&answer["stopReason"])),
        // What was logged is what runs. To run it as it was would be what the hook was there to prevent.
        Event::PreToolUse if changes => {
            return Said::Broken("wants to change the call, which is not possible".into());
        }
        _ => {}
    }
    let said = [
        word(&answer["decision"], &answer["reason"]),
        word(&specific["permissionDecision"], &specific["permissionDecisionReason"]),
    ];
    said.into_iter().max_by_key(strictness).unwrap_or(Said::Nothing)
}

// An `allow` says only that this hook has nothing against it: nobody allows what others have not seen (D-31).
fn word(decision: &Value, why: &Value) -> Said {
    match decision.as_str() {
        Some("block" | "deny") => Said::Block(reason_in(why)),
        Some("ask") => Said::Ask(reason_in(why)),
        Some("allow" | "approve") => Said::Nothing,
        None if decision.is_null() => Said::Nothing,
        _ => Said::Broken(format!("gave a decision that is not known: {decision}")),
    }
}

fn strictness(said: &Said) -> u8 {
    match said {
        Said::Nothing => 0,
        Said::Ask(_) => 1,
        Said::Failed(_) | Said::Broken(_) => 2,
        Said::Block(_) => 3,
    }
}

fn reason_in(value: &Value) -> String {
    reason(value.as_str().unwrap_or_default())
}

fn reason(text: &str) -> String {
    match text.trim() {
        "" => "no reason was given".into(),
        text => text.to_owned(),
    }
}

/// The end of what it complained about, as the end of a message.
fn last_line(stderr: &Output) -> String {
    let last = stderr.text.lines().rev().map(str::trim).find(|it| !it.is_empty());
    last.map_or_else(String::new, |it| format!(": {}", first_line(it)))
}
