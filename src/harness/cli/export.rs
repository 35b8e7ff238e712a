//! `--export`: a saved session as one file that people read.
//!
//! Part of `cli`. This file says what is in it and in which order; `export_markdown` and `export_html` say how it looks.
//! Watch for: what a model, a user or a command wrote may hold anything. Nothing of it may end the place where it stands.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::export_html::Html;
use super::export_markdown::Markdown;
use super::listing::local;
use super::text::{arguments, counted, harmless, line, seconds};
use super::usage::{Usage, count};
use crate::harness::persistence::seen::Seen;
use crate::harness::session::event::{Event, EventBody, Reason};

/// What the file is written in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For whatever shows Markdown.
    #[default]
    Markdown,
    /// For a browser; it needs nothing else.
    Html,
}

/// A part of the file. Texts are harmless for a terminal by now, and nothing more.
pub(super) enum Block {
    Title(String),
    /// Names and values.
    Facts(Vec<(&'static str, String)>),
    Turn(String),
    /// Somebody speaks.
    Said(&'static str, String),
    /// Something as it is, with a word before it.
    Verbatim(String, String),
    /// Of the one who writes this.
    Remark(String),
}

/// How blocks look.
pub(super) trait Look {
    fn begin(&self, title: &str) -> String;
    fn block(&self, block: &Block) -> String;
    fn end(&self) -> String;
}

/// The whole file.
pub(super) fn document(seen: &Seen, format: Format) -> String {
    let look: &dyn Look = match format {
        Format::Markdown => &Markdown,
        Format::Html => &Html,
    };
    let title = title(seen);
    let mut text = look.begin(&title);
    for block in blocks(seen, title) {
        text.push_str(&look.block(&block));
    }
    text.push_str(&look.end());
    text
}

/// How many characters of what was said first are the title.
const TITLE: usize = 80;

fn title(seen: &Seen) -> String {
    let said = seen.events.iter().find_map(|it| match &it.body {
        EventBody::UserMessage { message, .. } => Some(message.text()),
        _ => None,
    });
    let words: Vec<_> = said.unwrap_or_default().split_whitespace().collect();
    let words: String = line(&words.join(" ")).chars().take(TITLE).collect();
    if words.is_empty() { format!("Session {}", seen.id) } else { words }
}

fn blocks(seen: &Seen, title: String) -> Vec<Block> {
    let mut blocks = vec![Block::Title(title), Block::Facts(facts(seen))];
    let mut turn = Turn::default();
    for event in &seen.events {
        turn.follow(event, &mut blocks);
    }
    blocks.extend(seen.notes.iter().map(|it| Block::Remark(harmless(it).into_owned())));
    blocks
}

fn facts(seen: &Seen) -> Vec<(&'static str, String)> {
    let (mut models, mut folders, mut turns) = (Vec::new(), Vec::new(), 0);
    for event in &seen.events {
        match &event.body {
            EventBody::RequestHeader { header, .. } => add(&mut models, &header.model),
            EventBody::TurnStart { cwd, .. } => {
                turns += 1;
                add(&mut folders, cwd);
            }
            _ => {}
        }
    }
    let began = seen.events.first().filter(|it| it.time > 0).map(|it| time(it.time));
    let all = [
        ("Session", Some(seen.id.clone())),
        ("Forked from", seen.forked_from.as_deref().map(line)),
        ("Began", began),
        ("Folder", Some(folders.join(", "))),
        ("Model", Some(models.join(", "))),
        ("Turns", Some(turns.to_string())),
    ];
    let known = all.into_iter().filter_map(|(name, value)| Some((name, value?)));
    known.filter(|(_, value)| !value.is_empty()).collect()
}

fn add(list: &mut Vec<String>, text: &str) {
    let text = line(text);
    if !text.is_empty() && !list.contains(&text) {
        list.push(text);
    }
}

fn time(millis: u64) -> String {
    local(SystemTime::UNIX_EPOCH + Duration::from_millis(millis))
}

/// The turn that is being written down.
#[derive(Default)]
struct Turn {
    began: u64,
    usage: Option<Usage>,
}

impl Turn {
    fn follow(&mut self, event: &Event, blocks: &mut Vec<Block>) {
        match &event.body {
            EventBody::TurnStart { turn, .. } => {
                *self = Self { began: event.time, usage: None };
                let at = (event.time > 0).then(|| format!(", {}", time(event.time)));
                blocks.push(Block::Turn(format!("Turn {turn}{}", at.unwrap_or_default())));
            }
            EventBody::UserMessage { message, .. } => blocks.push(said("User", message.text())),
            EventBody::AssistantMessage { message, usage, .. } => {
                let usage = Usage::of(usage.as_ref());
                self.usage = Some(self.usage.map_or(usage, |it| it.plus(usage)));
                if let Some(thought) =
                    message.reasoning_content.as_deref().filter(|it| !it.is_empty())
                {
                    blocks.push(said("Assistant, thinking", thought));
                }
                match message.content.as_deref().unwrap_or_default() {
                    text if text.trim().is_empty() => {}
                    text => blocks.push(said("Assistant", text)),
                }
            }
            EventBody::ToolCall { name, arguments: raw, .. } => {
                blocks.push(Block::Verbatim(format!("Call of {}", line(name)), pretty(raw)));
            }
            EventBody::ToolResult { message, is_error, .. } => {
                let what = if *is_error { "Result, an error" } else { "Result" };
                let text = harmless(message.text()).into_owned();
                blocks.push(Block::Verbatim(what.into(), text));
            }
            EventBody::TurnEnd { reason, error, .. } => {
                let why = error.as_ref().map(|it| it.message.as_str());
                blocks.push(Block::Remark(self.end(*reason, why, event.time)));
            }
            EventBody::CompactionSummary { from, to, message, .. } => {
                let what = format!("events {from} to {to} are shown to the model as a summary");
                blocks.push(Block::Remark(what));
                blocks.push(said("Summary", message.text()));
            }
            EventBody::StepStart { .. }
            | EventBody::RequestHeader { .. }
            | EventBody::StepEnd { .. }
            | EventBody::Ignorable { .. } => {}
        }
    }

    fn end(&self, reason: Reason, why: Option<&str>, now: u64) -> String {
        let reason = serde_json::to_value(reason).ok();
        let reason = reason.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        let why = why.map(|it| format!(": {}", line(it))).unwrap_or_default();
        let usage = self.usage.unwrap_or_default();
        let told = |it: Option<u64>| it.map_or_else(|| "?".to_owned(), count);
        let took = seconds(Duration::from_millis(now.saturating_sub(self.began)));
        format!("{reason}{why}; in {}, out {}, {took}", told(usage.input), told(usage.output))
    }
}

fn said(who: &'static str, text: &str) -> Block {
    Block::Said(who, harmless(text).into_owned())
}

/// Arguments over several lines, as JSON if they are that.
fn pretty(raw: &str) -> String {
    let value: Option<Value> = serde_json::from_str(&arguments(raw)).ok();
    match value.map(|it| serde_json::to_string_pretty(&it)) {
        Some(Ok(text)) => harmless(&text).into_owned(),
        _ => harmless(raw).into_owned(),
    }
}

/// What is told once the file is written.
pub(super) fn told(seen: &Seen, path: &std::path::Path) -> String {
    let turns = seen.events.iter().filter(|it| matches!(it.body, EventBody::TurnStart { .. }));
    let turns = counted(u32::try_from(turns.count()).unwrap_or(u32::MAX), "turn");
    format!("wrote {turns} of session {} to {}", seen.id, path.display())
}
