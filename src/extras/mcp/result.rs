//! The text of a result: what the model reads of the parts that a server sent.
//!
//! Watch for: a part that is no text is told in one line and not shown. What is too long is kept at both ends, as the output
//! of a command is.

use std::path::Path;

use super::{
    raw::{each, members, text},
    server::short,
};
use crate::harness::{env::mask::Mask, shell_local::capture::bounded, tools::ToolResult};

/// How much of a name or an address of theirs a line holds, in characters.
const SHORT: usize = 200;
/// So many parts of a result are looked at: a part may be as short as two bytes, and what is said of it is not.
const MOST_PARTS: usize = 10_000;

/// A result as the server wrote it. The middle of a long one goes to a file in this folder.
pub(super) fn read(result: &str, dir: Option<&Path>, mask: &Mask) -> ToolResult {
    let parts = members(result, ["resultType", "isError", "content", "structuredContent"]);
    let [kind, failed, content, structured] = parts.unwrap_or_default();
    if kind.and_then(text).is_some_and(|it| it == "input_required") {
        return ToolResult::error(
            "the server asks for more input during the call, which nobody gives here",
        );
    }
    let text = bounded(&shown(content, structured), dir, mask).text;
    if failed == Some("true") { ToolResult::error(text) } else { ToolResult::text(text) }
}

/// An answer that is no result.
pub(super) fn refused(message: &str, code: i32, dir: Option<&Path>, mask: &Mask) -> ToolResult {
    let message = bounded(message, dir, mask).text;
    ToolResult::error(format!("the MCP server refused the call: {message} (code {code})"))
}

// Differs: the full version shows pictures to models that can see. The log of this one holds text.
fn shown(content: Option<&str>, structured: Option<&str>) -> String {
    let (mut lines, mut has_text, mut seen) = (Vec::new(), false, 0);
    each(content.unwrap_or_default(), |it| {
        seen += 1;
        if seen <= MOST_PARTS {
            let (line, is_text) = part(it);
            has_text |= is_text;
            lines.push(line);
        }
    });
    if seen > MOST_PARTS {
        lines.push(format!("[{} more parts, not shown]", seen - MOST_PARTS));
    }
    if let Some(structured) = structured.filter(|it| !has_text && *it != "null") {
        lines.push(structured.to_owned());
    }
    let text = lines.join("\n");
    if text.is_empty() { "(no output)".into() } else { text }
}

/// What is shown of a part, and whether that is its text.
fn part(part: &str) -> (String, bool) {
    let names = ["type", "text", "mimeType", "data", "resource", "name", "uri"];
    let [kind, words, mime, data, its, name, uri] = members(part, names).unwrap_or_default();
    let line = match kind.and_then(text).as_deref() {
        Some("text") => return (words.and_then(text).unwrap_or_default(), true),
        Some(kind @ ("image" | "audio")) => {
            format!("[{kind}, {}, {} bytes, not shown]", word(mime), bytes(data))
        }
        Some("resource") => resource(its.unwrap_or_default()),
        Some("resource_link") => format!("[link to a resource, {}, {}]", word(name), word(uri)),
        _ => format!("[{}, not shown]", word(kind)),
    };
    (line, false)
}

fn resource(resource: &str) -> String {
    let parts = members(resource, ["uri", "mimeType", "text", "blob"]);
    let [uri, mime, words, blob] = parts.unwrap_or_default();
    let (uri, mime) = (word(uri), word(mime));
    match words.and_then(text) {
        Some(words) => format!("[resource, {uri}, {mime}]\n{words}"),
        None => format!("[resource, {uri}, {mime}, {} bytes, not shown]", bytes(blob)),
    }
}

/// A name or an address of theirs.
fn word(raw: Option<&str>) -> String {
    short(raw.and_then(text).as_deref().unwrap_or("?"), SHORT)
}

/// How many bytes a text in base64 stands for.
fn bytes(data: Option<&str>) -> usize {
    data.and_then(text).unwrap_or_default().trim_end_matches('=').len() * 3 / 4
}
