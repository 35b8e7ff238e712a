//! Part of `tool-files`: searches one file, a piece at a time and line by line.
//!
//! Watch for: the search goes over a whole piece at once, which is fast where nothing is found; only where something is does
//! it look for the line around it.

use std::io::{self, Read};

use memchr::{memchr, memchr_iter, memrchr};
use regex::bytes::Regex;

/// What is read at once, if no line is longer.
const PIECE: usize = 64 << 10;
/// A file with longer lines was not written by anybody.
const LONGEST: usize = 16 << 20;
/// Bytes of a line that are shown.
const SHOWN: usize = 2000;
/// Of a longer line, so many of them stand before the match.
const BEFORE: usize = 500;

/// Searches file after file, with one buffer.
pub(super) struct Scanner {
    regex: Regex,
    buffer: Vec<u8>,
}

/// A line with a match.
#[derive(Debug, PartialEq)]
pub(super) struct Hit {
    pub(super) line: usize,
    pub(super) text: String,
}

/// What a file holds.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    pub(super) hits: Vec<Hit>,
    pub(super) is_binary: bool,
}

impl Scanner {
    pub(super) fn new(regex: Regex) -> Self {
        Self { regex, buffer: vec![0; PIECE] }
    }

    /// The first lines with a match, so many at most. A file with a zero byte counts as binary, and nothing is found in it.
    pub(super) fn scan(
        &mut self,
        mut file: impl Read,
        limit: usize,
        is_over: &dyn Fn() -> bool,
    ) -> io::Result<Scanned> {
        let (mut found, mut filled, mut line) = (Scanned::default(), 0, 1);
        while found.hits.len() < limit && !is_over() {
            let more = file.read(&mut self.buffer[filled..])?;
            if memchr(0, &self.buffer[filled..filled + more]).is_some() {
                return Ok(Scanned { is_binary: true, ..Scanned::default() });
            }
            filled += more;
            let last = memrchr(b'\n', &self.buffer[filled - more..filled]);
            let whole = match last {
                _ if more == 0 => filled,
                Some(at) => filled - more + at + 1,
                None if filled < self.buffer.len() => continue,
                None if filled < LONGEST => {
                    self.buffer.resize(filled * 2, 0);
                    continue;
                }
                None => return Ok(Scanned { is_binary: true, ..Scanned::default() }),
            };
            line =
                search(&self.regex, &self.buffer[..whole], line, limit, &mut found.hits, is_over);
            if more == 0 {
                break;
            }
            self.buffer.copy_within(whole..filled, 0);
            filled -= whole;
        }
        Ok(found)
    }
}

/// Searches whole lines, of which the first has this number; gives the number of the line after them.
fn search(
    regex: &Regex,
    piece: &[u8],
    mut line: usize,
    limit: usize,
    hits: &mut Vec<Hit>,
    is_over: &dyn Fn() -> bool,
) -> usize {
    let (mut at, mut counted) = (0, 0);
    while at < piece.len() && hits.len() < limit {
        let Some(found) = regex.find_at(piece, at) else { break };
        if found.start() == piece.len() && piece.ends_with(b"\n") {
            break;
        }
        let start = memrchr(b'\n', &piece[at..found.start()]).map_or(at, |it| at + it + 1);
        let end =
            memchr(b'\n', &piece[found.start()..]).map_or(piece.len(), |it| found.start() + it);
        let text = &piece[start..end];
        // What goes on in the next line is no match in this one; there may be another.
        let inside = if found.end() <= end {
            Some(found.start() - start)
        } else {
            regex.find(text).map(|it| it.start())
        };
        if let Some(column) = inside {
            line += memchr_iter(b'\n', &piece[counted..start]).count();
            counted = start;
            hits.push(Hit { line, text: shown(text, column) });
        } else if is_over() {
            break;
        }
        at = end + 1;
    }
    line + memchr_iter(b'\n', &piece[counted..]).count()
}

/// A line, or the part of a long one around its match.
fn shown(text: &[u8], column: usize) -> String {
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    if text.len() <= SHOWN {
        return String::from_utf8_lossy(text).into_owned();
    }
    let from = if column < SHOWN - BEFORE { 0 } else { column - BEFORE };
    let from = character(text, from);
    let to = character(text, (from + SHOWN).min(text.len()));
    let (before, after) = (if from > 0 { "…" } else { "" }, if to < text.len() { "…" } else { "" });
    format!("{before}{}{after} [of {} bytes]", String::from_utf8_lossy(&text[from..to]), text.len())
}

/// The beginning of the character that this byte is of.
fn character(text: &[u8], at: usize) -> usize {
    let is_inside = |at: &usize| text.get(*at).is_some_and(|it| (0x80..0xc0).contains(it));
    (at.saturating_sub(3)..=at).rev().find(|it| !is_inside(it)).unwrap_or(at)
}
