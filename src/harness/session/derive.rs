//! What the model is shown of a log: every message in it, but for those that a summary stands for.
//!
//! Full-size counterpart: the derived messages of the core session package, with the spans that a compaction shadows.
//! Watch for: the log keeps everything. Of several summaries the newest counts, which was made of what was shown before it.

use std::{borrow::Borrow, rc::Rc};

use super::{
    Session,
    event::{Event, EventBody},
    message::Message,
};

impl Session {
    /// The messages so far, each with the number of its event; a summary has that of the last event that it stands for.
    pub fn shown(&self) -> Vec<(u64, Message)> {
        shown(&self.events.borrow())
    }
}

pub(super) fn shown(events: &[Rc<Event>]) -> Vec<(u64, Message)> {
    let newest = events.iter().rev().find_map(|event| match &event.body {
        EventBody::CompactionSummary { from, to, keep, message, .. } => {
            Some((*from, *to, keep, message))
        }
        _ => None,
    });
    let Some((from, to, keep, message)) = newest else {
        return events.iter().filter_map(|event| numbered(event)).collect();
    };
    let said = |is_shown: &dyn Fn(u64) -> bool| {
        let events = events.iter().filter(|event| is_shown(event.seq));
        events.filter_map(|event| numbered(event)).collect::<Vec<_>>()
    };
    let mut shown = said(&|seq| seq < from || (seq <= to && keep.contains(&seq)));
    shown.push((to, message.clone()));
    shown.extend(said(&|seq| seq > to));
    shown
}

fn numbered(event: &Event) -> Option<(u64, Message)> {
    Some((event.seq, event.body.message()?))
}

/// What is wrong with a summary after these events. One that ends between a call and its result would leave the model
/// with half of it.
pub(super) fn check(events: &[impl Borrow<Event>], body: &EventBody) -> Result<(), String> {
    let EventBody::CompactionSummary { from, to, .. } = body else { return Ok(()) };
    let is_border =
        |it: &&Event| matches!(it.body, EventBody::StepEnd { .. } | EventBody::TurnEnd { .. });
    if from > to {
        return Err(format!("it stands for events {from} to {to}, which are none"));
    }
    match events.iter().map(Borrow::borrow).find(|it| it.seq == *to).filter(is_border) {
        Some(_) => Ok(()),
        None => Err(format!(
            "event {to}, the last that it stands for, is not the end of a step or turn"
        )),
    }
}
