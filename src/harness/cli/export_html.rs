//! Part of `cli`, for `export`: a page for a browser, which needs nothing else and runs nothing.
//!
//! Watch for: every text is escaped, and the page forbids whatever a browser might still find to run or to load.

use super::export::{Block, Look};

pub(super) struct Html;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem;color:#222;\
background:#fff}pre{font:14px/1.45 ui-monospace,monospace;background:#f5f5f5;padding:.75rem;overflow-x:auto;white-space:pre-wrap;\
overflow-wrap:anywhere}.said{white-space:pre-wrap;overflow-wrap:anywhere;border-left:3px solid #bbb;padding-left:.75rem}\
.user{border-color:#36c}h2{margin-top:2rem;font-size:1.1rem;border-top:1px solid #ddd;padding-top:1rem}\
td{padding-right:1rem;vertical-align:top}.remark{color:#777;font-size:.9rem}@media(prefers-color-scheme:dark)\
{body{color:#ddd;background:#1b1b1b}pre{background:#262626}h2{border-color:#444}}";

impl Look for Html {
    fn begin(&self, title: &str) -> String {
        format!(
            "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
            escaped(title)
        )
    }

    fn block(&self, block: &Block) -> String {
        match block {
            Block::Title(text) => format!("<h1>{}</h1>\n", escaped(text)),
            Block::Facts(facts) => {
                let row = |it: &(&str, String)| {
                    format!("<tr><td>{}</td><td>{}</td></tr>\n", it.0, escaped(&it.1))
                };
                format!("<table>\n{}</table>\n", facts.iter().map(row).collect::<Vec<_>>().concat())
            }
            Block::Turn(text) => format!("<h2>{}</h2>\n", escaped(text)),
            Block::Said(who, text) => {
                let class = if *who == "User" { "said user" } else { "said" };
                let text = escaped(text.trim_end());
                format!("<p><b>{who}</b></p>\n<div class=\"{class}\">{text}</div>\n")
            }
            Block::Verbatim(what, text) => {
                let text = escaped(text.trim_end_matches('\n'));
                format!("<p><b>{}</b></p>\n<pre>{text}</pre>\n", escaped(what))
            }
            Block::Remark(text) => format!("<p class=\"remark\">{}</p>\n", escaped(text)),
        }
    }

    fn end(&self) -> String {
        "</body>\n</html>\n".into()
    }
}

fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            '\'' => shown.push_str("&#39;"),
            _ => shown.push(c),
        }
    }
    shown
}
