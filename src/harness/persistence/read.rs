//! Reads a log, one pass and one line in memory, and judges it.
//!
//! Watch for: a line that has its end was written whole, so if it is no event the file is damaged and is refused.
//! Only what follows the last line end can be a write that was cut short.

use std::{
    io::{self, BufRead},
    str,
};

use crate::harness::session::{event::Event, trace::Trace};

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

/// Reads all of `from`.
pub fn read(mut from: impl BufRead) -> Result<Log, Fault> {
    let mut log = Log::default();
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        let length = from.read_until(b'\n', &mut bytes).map_err(Fault::Io)?;
        let is_whole = bytes.ends_with(b"\n");
        match log.next(&bytes, line) {
            _ if length == 0 => break,
            Err(Problem::NoEvent(_)) if !is_whole => {
                log.tail = Tail::Torn;
                break;
            }
            Err(problem) => return Err(Fault::Line(line, problem.into_text())),
            Ok(None) => {}
            Ok(Some(event)) => log.push(event, line),
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

impl Log {
    fn push(&mut self, event: Event, line: usize) {
        self.trace.follow(&event.body);
        self.events.push(event);
        self.line = line;
    }

    /// The event of a line; none if the line is blank, or the header that other writers begin with.
    fn next(&self, bytes: &[u8], line: usize) -> Result<Option<Event>, Problem> {
        let text =
            str::from_utf8(bytes).map_err(|err| Problem::NoEvent(format!("not UTF-8: {err}")))?;
        let text = text.strip_prefix('\u{feff}').filter(|_| line == 1).unwrap_or(text).trim();
        if text.is_empty() {
            return Ok(None);
        }
        let event = match Event::parse(text) {
            Ok(event) => event,
            Err(_) if line == 1 && is_header(text) => return Ok(None),
            Err(err) if err.is_of_another_version() => {
                return Err(Problem::Foreign(err.to_string()));
            }
            Err(err) => return Err(Problem::NoEvent(err.to_string())),
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
        Ok(Some(event))
    }
}

fn is_header(text: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(text).is_ok_and(|it| it["type"] == "session")
}
