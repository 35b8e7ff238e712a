//! Reads a log, one pass and one line in memory, and judges it.
//!
//! Watch for: a line that has its end was written whole, so if it is no event the file is damaged and is refused.
//! Only what follows the last line end can be a write that was cut short.

use std::{
    io::{self, BufRead},
    ops::Range,
    str,
};

use serde_json::Value;

use crate::harness::session::{
    event::{Event, EventBody},
    trace::Trace,
};

/// A log that can be gone on with, or whose only fault is that it stops too early.
#[derive(Debug, Default)]
pub struct Log {
    /// Its events.
    pub events: Vec<Event>,
    /// Where it stands after the last one.
    pub trace: Trace,
    /// The line of the last event, from 1.
    pub line: usize,
    /// How many bytes belong to whole lines and events.
    pub whole: u64,
    /// What is behind them.
    pub tail: Tail,
    /// The line before the first event, if the log begins with one that tells of itself.
    pub header: Option<Value>,
    /// How many bytes are before the first event.
    head: u64,
    /// Where the last turn begins.
    turn: Mark,
}

/// A place in a log: so many events, which end at this byte.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Events before it.
    pub events: usize,
    /// Bytes before it.
    pub bytes: u64,
}

/// How a log ends.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// With a line end, as it should.
    #[default]
    Clean,
    /// With an event that lacks nothing but its line end.
    NoLineEnd,
    /// With a write that was cut short.
    Torn,
}

/// Why a log was refused.
#[derive(Debug)]
pub enum Fault {
    /// This line is no event, or not the next one.
    Line(usize, String),
    /// It cannot be read.
    Io(io::Error),
}

/// What some editors put before a text.
const MARK: &str = "\u{feff}";

/// Reads all of `from`.
pub fn read(mut from: impl BufRead) -> Result<Log, Fault> {
    let mut log = Log::default();
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        let length = from.read_until(b'\n', &mut bytes).map_err(Fault::Io)?;
        let is_whole = bytes.ends_with(b"\n");
        if line == 1 && bytes.starts_with(MARK.as_bytes()) {
            log.head = MARK.len() as u64;
        }
        match log.next(&bytes, line) {
            _ if length == 0 => break,
            Err(Problem::NoEvent(_)) if !is_whole => {
                log.tail = Tail::Torn;
                break;
            }
            Err(problem) => return Err(Fault::Line(line, problem.into_text())),
            Ok(Line::Nothing) => {}
            Ok(Line::Header(header)) => log.header = Some(header),
            Ok(Line::Event(event)) => log.push(event, line),
        }
        log.whole += length as u64;
        log.tail = if is_whole { Tail::Clean } else { Tail::NoLineEnd };
    }
    Ok(log)
}

enum Problem {
    NoEvent(String),
    /// A whole event, so not a write that was cut short; but of another version, or in a place where no log has it.
    Foreign(String),
}

impl Problem {
    fn into_text(self) -> String {
        let (Self::NoEvent(text) | Self::Foreign(text)) = self;
        text
    }
}

/// What a line is.
enum Line {
    Nothing,
    /// Some writers, and a fork, begin with a line about the whole.
    Header(Value),
    Event(Event),
}

impl Log {
    /// The bytes of the events that belong to whole turns, and how many events these are.
    pub fn whole_turns(&self) -> (Range<u64>, usize) {
        let end = Mark { events: self.events.len(), bytes: self.whole };
        let end = if self.trace.open_turn().is_some() { self.turn } else { end };
        (self.head.min(end.bytes)..end.bytes, end.events)
    }

    fn push(&mut self, event: Event, line: usize) {
        let before = Mark { events: self.events.len(), bytes: self.whole };
        if self.events.is_empty() {
            self.head = self.head.max(before.bytes);
        }
        if let EventBody::TurnStart { .. } = event.body {
            self.turn = before;
        }
        self.trace.follow(&event.body);
        self.events.push(event);
        self.line = line;
    }

    fn next(&self, bytes: &[u8], line: usize) -> Result<Line, Problem> {
        let text =
            str::from_utf8(bytes).map_err(|err| Problem::NoEvent(format!("not UTF-8: {err}")))?;
        let text = text.strip_prefix(MARK).filter(|_| line == 1).unwrap_or(text).trim();
        if text.is_empty() {
            return Ok(Line::Nothing);
        }
        let event = match Event::parse(text) {
            Ok(event) => event,
            Err(err) => match header(text).filter(|_| line == 1) {
                Some(header) => return Ok(Line::Header(header)),
                None if err.is_of_another_version() => {
                    return Err(Problem::Foreign(err.to_string()));
                }
                None => return Err(Problem::NoEvent(err.to_string())),
            },
        };
        match self.events.last().map_or(event.seq.min(1), |it| it.seq + 1) {
            next if next == event.seq => {}
            next => {
                let problem = format!("seq is {} where {next} is next", event.seq);
                return Err(Problem::NoEvent(problem));
            }
        }
        let kind = event.body.kind();
        let placed = self.trace.check_read(&event.body);
        placed.map_err(|problem| Problem::Foreign(format!("`{kind}`: {problem}")))?;
        Ok(Line::Event(event))
    }
}

/// The line that tells of a whole log, if this is one.
pub(super) fn header(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(|it: &Value| it["type"] == "session")
}
