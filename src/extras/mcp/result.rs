//! The text of a result: what the model reads of the parts that a server sent.
//!
//! Watch for: a part that is no text is told in one line and not shown. What is too long is kept at both ends, as the output
//! of a command is.

use std::path::Path;

use serde_json::Value;

use super::server::short;
use crate::harness::{env::mask::Mask, shell_local::capture::bounded, tools::ToolResult};

/// How much of a name or an address of theirs a line holds, in characters.
const SHORT: usize = 200;

/// A result as the server wrote it. The middle of a long one goes to a file in this folder.
pub(super) fn read(result: &Value, dir: Option<&Path>, mask: &Mask) -> ToolResult {
    if result["resultType"] == "input_required" {
        return ToolResult::error(
            "the server asks for more input during the call, which nobody gives here",
        );
    }
    let text = bounded(&text(result), dir, mask).text;
    if result["isError"] == true { ToolResult::error(text) } else { ToolResult::text(text) }
}

/// An answer that is no result.
pub(super) fn refused(message: &str, code: i32, dir: Option<&Path>, mask: &Mask) -> ToolResult {
    let message = bounded(message, dir, mask).text;
    ToolResult::error(format!("the MCP server refused the call: {message} (code {code})"))
}

// Differs: the full version shows pictures to models that can see. The log of this one holds text.
fn text(result: &Value) -> String {
    let parts = result["content"].as_array().map_or(&[][..], Vec::as_slice);
    let mut lines: Vec<String> = parts.iter().map(part).collect();
    let has_text = parts.iter().any(|it| it["type"] == "text");
    let structured = &result["structuredContent"];
    if !has_text && !structured.is_null() {
        lines.push(structured.to_string());
    }
    let text = lines.join("\n");
    if text.is_empty() { "(no output)".into() } else { text }
}

fn part(part: &Value) -> String {
    let word = |value: &Value| short(value.as_str().unwrap_or("?"), SHORT);
    match part["type"].as_str() {
        Some("text") => part["text"].as_str().unwrap_or_default().to_owned(),
        Some(kind @ ("image" | "audio")) => {
            format!(
                "[{kind}, {}, {} bytes, not shown]",
                word(&part["mimeType"]),
                bytes(&part["data"])
            )
        }
        Some("resource") => {
            let resource = &part["resource"];
            let (uri, kind) = (word(&resource["uri"]), word(&resource["mimeType"]));
            match resource["text"].as_str() {
                Some(text) => format!("[resource, {uri}, {kind}]\n{text}"),
                None => {
                    format!(
                        "[resource, {uri}, {kind}, {} bytes, not shown]",
                        bytes(&resource["blob"])
                    )
                }
            }
        }
        Some("resource_link") => {
            format!("[link to a resource, {}, {}]", word(&part["name"]), word(&part["uri"]))
        }
        _ => format!("[{}, not shown]", word(&part["type"])),
    }
}

/// How many bytes a text in base64 stands for.
fn bytes(data: &Value) -> usize {
    data.as_str().unwrap_or_default().trim_end_matches('=').len() * 3 / 4
}
