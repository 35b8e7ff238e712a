//! Part of `compaction`: which part of a conversation is summarised, and how long it is.
//!
//! Watch for: a span ends at the end of a step, so that no call loses its result. What the user said first stays word by
//! word, and so does what the user said in the turn that is going on.

use std::rc::Rc;

use crate::harness::{
    cli::usage::Usage,
    session::{
        Session,
        event::{Event, EventBody},
        message::Message,
    },
};

/// So many bytes are about one token: four letters of English, somewhat more than one sign of Chinese.
const BYTES: usize = 4;

/// A part of a log.
pub(super) struct Span {
    /// Its first event.
    pub(super) from: u64,
    /// Its last event.
    pub(super) to: u64,
    /// Events of it that stay.
    pub(super) keep: Vec<u64>,
    /// What the model is shown up to its end.
    pub(super) shown: Vec<Message>,
    /// How many messages are replaced,
    pub(super) messages: usize,
    /// and about how many tokens.
    pub(super) tokens: u64,
    /// Whether the user speaks next after it.
    pub(super) user_follows: bool,
}

impl Span {
    /// The one behind which at most `kept` tokens follow, if that can be; nothing if all of it is summarised already.
    pub(super) fn of(session: &Session, kept: u64) -> Option<Self> {
        let (events, shown) = (session.events(), session.shown());
        let keep = kept_words(&events);
        let to = border(&events, &shown, kept)?;
        let (before, after): (Vec<_>, Vec<_>) = shown.into_iter().partition(|(seq, _)| *seq <= to);
        let replaced: Vec<_> = before.iter().filter(|(seq, _)| !keep.contains(seq)).collect();
        let has_news = replaced.iter().any(|(seq, _)| Some(*seq) > summarised(&events));
        let user_follows = match after.first() {
            Some((_, message)) => matches!(message, Message::User { .. }),
            None => !session.is_mid_turn(),
        };
        has_news.then(|| Self {
            from: events.first().map_or(0, |it| it.seq),
            to,
            keep: keep.into_iter().filter(|it| *it <= to).collect(),
            messages: replaced.len(),
            tokens: replaced.iter().map(|(_, it)| size(it)).sum(),
            shown: before.iter().map(|(_, it)| it.clone()).collect(),
            user_follows,
        })
    }
}

/// The last event for which the newest summary stands.
fn summarised(events: &[Rc<Event>]) -> Option<u64> {
    events.iter().rev().find_map(|it| match it.body {
        EventBody::CompactionSummary { to, .. } => Some(to),
        _ => None,
    })
}

/// What the user said first, and in the turn that is open.
fn kept_words(events: &[Rc<Event>]) -> Vec<u64> {
    let is_end = |it: &&Rc<Event>| matches!(it.body, EventBody::TurnEnd { .. });
    let last_end = events.iter().rev().find(is_end).map(|it| it.seq);
    let said = events.iter().filter(|it| matches!(it.body, EventBody::UserMessage { .. }));
    let kept = said.enumerate().filter(|(n, it)| *n == 0 || Some(it.seq) > last_end);
    kept.map(|(_, it)| it.seq).collect()
}

/// The first end of a step or turn behind which at most so many tokens follow; if even the last one leaves more, that.
fn border(events: &[Rc<Event>], shown: &[(u64, Message)], kept: u64) -> Option<u64> {
    let (mut found, mut behind, mut messages) = (None, 0, shown.iter().rev().peekable());
    for event in events.iter().rev() {
        while let Some((_, message)) = messages.next_if(|(seq, _)| *seq > event.seq) {
            behind += size(message);
        }
        match event.body {
            EventBody::StepEnd { .. } | EventBody::TurnEnd { .. }
                if found.is_none() || behind <= kept =>
            {
                found = Some(event.seq);
            }
            _ if found.is_some() && behind > kept => break,
            _ => {}
        }
    }
    found
}

/// About how many tokens the next request of a session takes: what the service counted last, and what came since.
pub(super) fn used(session: &Session) -> u64 {
    let (events, shown) = (session.events(), session.shown());
    for event in events.iter().rev() {
        match &event.body {
            EventBody::CompactionSummary { .. } => break,
            EventBody::AssistantMessage { usage, .. } => {
                let usage = Usage::of(usage.as_ref());
                let Some(input) = usage.input else { continue };
                let since = shown.iter().filter(|(seq, _)| *seq > event.seq);
                let since: u64 = since.map(|(_, it)| size(it)).sum();
                return input + usage.output.unwrap_or_default() + since;
            }
            _ => {}
        }
    }
    let header = session.header().and_then(|it| serde_json::to_string(&it).ok());
    tokens(header.map_or(0, |it| it.len())) + shown.iter().map(|(_, it)| size(it)).sum::<u64>()
}

/// About how many tokens a message is.
fn size(message: &Message) -> u64 {
    let bytes = match message {
        Message::Assistant(it) => {
            let calls = it.tool_calls.iter().map(|it| &it.function);
            let calls: usize = calls.map(|it| it.name.len() + it.arguments.len()).sum();
            let thought = it.reasoning_content.as_deref().unwrap_or_default();
            message.text().len() + thought.len() + calls
        }
        other => other.text().len(),
    };
    // Role and borders.
    tokens(bytes) + 4
}

/// About how many tokens so many bytes are.
pub(super) fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(BYTES) as u64
}
