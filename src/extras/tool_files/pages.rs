//! Part of `tool-files`: `read`, a page of a text file with its lines numbered.
//!
//! Watch for: a file may be far larger than memory, and one line of it too. So only what is shown is kept.

use std::{
    fmt::Write,
    io::{self, BufRead, BufReader},
    num::NonZeroU64,
    rc::Rc,
};

use memchr::memchr;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::{
    change::{Desk, parsed},
    error::FileError,
    job::on_thread,
    open::{LARGEST, open, read_whole},
    place::Place,
    seen::Version,
};
use crate::{
    cordis::BoxError,
    harness::tools::{Call, Tool},
};

/// Lines of a page,
const LINES: u64 = 2000;
/// characters of a line,
const CHARACTERS: usize = 2000;
/// and bytes of a page.
const BYTES: usize = 51_200;
/// What is read at once of a file that is not read whole.
const CHUNK: usize = 64 << 10;

const DESCRIPTION: &str = "Read a text file. Lines come with their numbers, which are no part of the text; at most 2000 \
                           lines, 2000 characters of each and 51200 bytes at once. The last line says how to go on. A \
                           file must have been read before it can be changed.";

/// What the model fills in.
#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Path of the file.
    file_path: String,
    /// Number of the first line, from 1.
    offset: Option<NonZeroU64>,
    /// Number of lines.
    limit: Option<NonZeroU64>,
}

pub(super) fn tool(desk: &Rc<Desk>) -> Tool {
    let (asked, desk) = (desk.clone(), desk.clone());
    let run = async move |arguments: Arguments, call: Rc<Call>| {
        let place = desk.root.find(&arguments.file_path)?;
        let known = place.clone();
        let page = on_thread(&call.cancel, move |stop| page(&place, &arguments, stop)).await??;
        if let Some(version) = page.version {
            desk.seen.note(call.session.as_deref(), &known.path, version);
        }
        Ok::<_, BoxError>(page.text)
    };
    Tool::typed("read", DESCRIPTION, run).checked(move |arguments| {
        let arguments: Arguments = parsed(arguments)?;
        let place = asked.root.find(&arguments.file_path).map_err(|it| it.to_string())?;
        open(&place).map(drop).map_err(|it| it.to_string())
    })
}

struct Page {
    text: String,
    /// Of a file that can be changed.
    version: Option<Version>,
}

fn page(place: &Place, asked: &Arguments, stop: &CancellationToken) -> Result<Page, FileError> {
    let (file, found) = open(place)?;
    if found.len() > LARGEST {
        let text = shown(&mut BufReader::with_capacity(CHUNK, file), place, asked, stop)?;
        return Ok(Page { text, version: None });
    }
    let (bytes, _) = read_whole(place)?;
    let text = shown(&mut bytes.as_slice(), place, asked, stop)?;
    Ok(Page { text, version: Some(Version::of(&bytes)) })
}

fn shown(
    from: &mut impl BufRead,
    place: &Place,
    asked: &Arguments,
    stop: &CancellationToken,
) -> Result<String, FileError> {
    let read = |source| FileError::Read { name: place.name.clone(), source };
    let first = asked.offset.map_or(1, NonZeroU64::get);
    let last = first.saturating_add(asked.limit.map_or(LINES, |it| it.get().min(LINES)) - 1);
    let (mut text, mut number, mut odd) = (String::new(), 0, 0);
    while !from.fill_buf().map_err(read)?.is_empty() {
        if number == last {
            break;
        }
        if stop.is_cancelled() {
            return Err(FileError::Broken);
        }
        let kept = if number + 1 < first { 0 } else { CHARACTERS * 4 };
        let line = next_line(from, kept, stop).map_err(read)?;
        if line.is_binary {
            return Err(FileError::Binary { name: place.name.clone() });
        }
        number += 1;
        if number < first {
            continue;
        }
        let row = format!("{number:>6}\t{}\n", line.shown(number == 1));
        if text.len() + row.len() > BYTES {
            return Ok(ended(text, odd, Some((first, number - 1))));
        }
        text.push_str(&row);
        odd += u64::from(line.is_odd());
    }
    let has_more = !from.fill_buf().map_err(read)?.is_empty();
    match number {
        0 if first == 1 => Ok("(the file is empty)".into()),
        lines if lines < first => {
            Err(FileError::Beyond { name: place.name.clone(), lines, offset: first })
        }
        _ => Ok(ended(text, odd, has_more.then_some((first, number)))),
    }
}

fn ended(mut text: String, odd: u64, more: Option<(u64, u64)>) -> String {
    let mut note = |line: String| text.push_str(&line);
    if odd > 0 {
        let lines = if odd == 1 { "1 line holds".to_owned() } else { format!("{odd} lines hold") };
        note(format!("\n[{lines} bytes that are no UTF-8, shown as \u{fffd}]\n"));
    }
    if let Some((first, last)) = more {
        note(format!("\n[lines {first} to {last}; go on with offset {}]\n", last + 1));
    }
    text.pop();
    text
}

/// A line, as much of it as can be shown.
#[derive(Default)]
struct Line {
    kept: Vec<u8>,
    /// All of its bytes, without its end.
    size: usize,
    is_binary: bool,
}

impl Line {
    /// A byte order mark is no part of the text.
    fn shown(&self, is_first: bool) -> String {
        let kept = self.kept.as_slice();
        let kept = if is_first { kept.strip_prefix(b"\xef\xbb\xbf").unwrap_or(kept) } else { kept };
        let text = String::from_utf8_lossy(kept);
        let is_cut = self.kept.len() < self.size;
        match text.char_indices().nth(CHARACTERS) {
            None if !is_cut => text.into_owned(),
            at => {
                let mut shown = text[..at.map_or(text.len(), |it| it.0)].to_owned();
                write!(shown, "… [cut: this line has {} bytes]", self.size).ok();
                shown
            }
        }
    }

    /// Whether it is not what it is shown as. What was cut may end within a character.
    fn is_odd(&self) -> bool {
        let is_cut = self.kept.len() < self.size;
        std::str::from_utf8(&self.kept).is_err_and(|it| !is_cut || it.error_len().is_some())
    }
}

/// The next line, of which so many bytes are kept.
fn next_line(from: &mut impl BufRead, most: usize, stop: &CancellationToken) -> io::Result<Line> {
    let mut line = Line::default();
    loop {
        let chunk = from.fill_buf()?;
        if chunk.is_empty() || stop.is_cancelled() {
            break;
        }
        let end = memchr(b'\n', chunk);
        let part = &chunk[..end.unwrap_or(chunk.len())];
        line.is_binary |= memchr(0, part).is_some();
        line.size += part.len();
        let room = most - line.kept.len();
        line.kept.extend_from_slice(&part[..part.len().min(room)]);
        let taken = part.len() + usize::from(end.is_some());
        from.consume(taken);
        if end.is_some() || line.is_binary {
            break;
        }
    }
    if line.kept.len() == line.size && line.kept.last() == Some(&b'\r') {
        line.kept.pop();
        line.size -= 1;
    }
    Ok(line)
}
