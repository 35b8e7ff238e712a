//! What a list of sessions shows of each, from the first and the last bytes of its log.
//!
//! Watch for: a log may be hundreds of megabytes long, and a list must not depend on that. So damage in the middle is
//! not seen here; `load` sees it.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
    time::SystemTime,
};

use super::read::header;
use crate::harness::session::event::{Event, EventBody};

const LOOK: u64 = 1 << 16;

/// One saved session.
#[derive(Debug, Clone)]
pub struct Saved {
    /// Its id.
    pub id: String,
    /// When its last event was written.
    pub changed: SystemTime,
    /// How many turns it has.
    pub turns: u32,
    /// Whether it can be resumed.
    pub state: SavedState,
    /// What the user said first, on one line.
    pub words: String,
    /// The session whose turns it began with.
    pub forked_from: Option<String>,
}

/// Whether a saved session can be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SavedState {
    /// The last turn is over.
    Closed,
    /// The log stops within a turn.
    Open,
    /// The last whole line is no event, or the file cannot be read.
    Damaged,
}

pub(super) fn look(path: &Path, id: String, changed: SystemTime) -> Saved {
    let Ok(Ends { head, tail, otherwise }) = ends(path) else {
        let (turns, state) = (0, SavedState::Damaged);
        return Saved { id, changed, turns, state, words: String::new(), forked_from: None };
    };
    let (turns, state) = last_turn(&tail).unwrap_or((0, otherwise));
    let header = head.lines().next().and_then(header);
    let forked_from = header.and_then(|it| Some(it["forkedFrom"]["session"].as_str()?.to_owned()));
    Saved { id, changed, turns, state, words: first_words(&head), forked_from }
}

/// The first and the last lines of a log.
struct Ends {
    head: String,
    tail: String,
    /// How it stands if no turn is in its last lines.
    otherwise: SavedState,
}

fn ends(path: &Path) -> io::Result<Ends> {
    if !path.symlink_metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut file = File::open(path)?;
    let (mut head, mut tail) = (Vec::new(), Vec::new());
    (&file).take(LOOK).read_to_end(&mut head)?;
    let from = file.metadata()?.len().saturating_sub(LOOK);
    file.seek(SeekFrom::Start(from))?;
    file.take(LOOK).read_to_end(&mut tail)?;
    if from > 0 {
        // The line that begins before what was read is not looked at.
        let begun = tail.iter().position(|&byte| byte == b'\n').map_or(tail.len(), |at| at + 1);
        tail.drain(..begun);
    }
    // If these are all, no turn was begun. If not, some event is longer than the end of a turn ever is.
    let otherwise = if from == 0 { SavedState::Closed } else { SavedState::Open };
    Ok(Ends { head: lossy(&head), tail: lossy(&tail), otherwise })
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn first_words(head: &str) -> String {
    let said =
        head.lines().filter_map(|line| Event::parse(line).ok()).find_map(|event| {
            match event.body {
                EventBody::UserMessage { message, .. } => Some(message),
                _ => None,
            }
        });
    let words = said.as_ref().map_or("", |it| it.text()).split_whitespace();
    words.collect::<Vec<_>>().join(" ").chars().take(80).collect()
}

/// A line of the end is enough: every event names its turn, and only one kind closes it.
fn last_turn(tail: &str) -> Option<(u32, SavedState)> {
    let torn = !tail.ends_with('\n');
    let lines = tail.lines().rev().filter(|it| !it.trim().is_empty());
    for (n, line) in lines.enumerate() {
        match Event::parse(line) {
            Ok(Event {
                body: EventBody::Ignorable { .. } | EventBody::CompactionSummary { .. },
                ..
            }) => {}
            Ok(Event { body: EventBody::TurnEnd { turn, .. }, .. }) => {
                return Some((turn, SavedState::Closed));
            }
            Ok(event) => return Some((event.body.place().0, SavedState::Open)),
            Err(_) if torn && n == 0 => {}
            Err(_) => return Some((0, SavedState::Damaged)),
        }
    }
    None
}
