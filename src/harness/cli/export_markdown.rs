//! Part of `cli`, for `export`: Markdown.
//!
//! Watch for: what was said stands in a quotation, each line of it, so that a fence, a heading or a comment that it begins
//! ends with it. What is shown as it is stands between fences that are longer than any in it.

use super::export::{Block, Look};

pub(super) struct Markdown;

impl Look for Markdown {
    fn begin(&self, _: &str) -> String {
        String::new()
    }

    fn block(&self, block: &Block) -> String {
        match block {
            Block::Title(text) => format!("# {}\n\n", plain(text)),
            Block::Facts(facts) => {
                let row = |it: &(&str, String)| format!("| {} | {} |\n", it.0, plain(&it.1));
                format!(
                    "| | |\n|---|---|\n{}\n",
                    facts.iter().map(row).collect::<Vec<_>>().concat()
                )
            }
            Block::Turn(text) => format!("## {text}\n\n"),
            Block::Said(who, text) => {
                let lines = text.trim_end().lines().map(|it| format!("> {it}\n"));
                format!("**{who}**\n\n{}\n", lines.collect::<Vec<_>>().concat())
            }
            Block::Verbatim(what, text) => {
                let (fence, text) = (fence(text), text.trim_end_matches('\n'));
                format!("**{}**\n\n{fence}\n{text}\n{fence}\n\n", plain(what))
            }
            Block::Remark(text) => format!("*{}*\n\n", plain(text)),
        }
    }

    fn end(&self) -> String {
        String::new()
    }
}

/// A text in which nothing is markup.
fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '&' | '~') {
            shown.push('\\');
        }
        shown.push(c);
    }
    shown
}

/// One longer than the longest in the text.
fn fence(text: &str) -> String {
    let longest = text.split(|it| it != '`').map(str::len).max().unwrap_or_default();
    "`".repeat((longest + 1).max(3))
}

#[cfg(test)]
mod tests {
    use super::{Block, Look, Markdown};

    #[test]
    fn nothing_that_is_quoted_gets_out_of_its_place() {
        let said = Markdown.block(&Block::Said("User", "a\n```\n<!-- b\n# c".into()));
        let shown = Markdown.block(&Block::Verbatim("Result".into(), "x\n````\ny\n".into()));
        let remark = Markdown.block(&Block::Remark("error: <b>*no*".into()));

        assert_eq!(said, "**User**\n\n> a\n> ```\n> <!-- b\n> # c\n\n");
        assert_eq!(shown, "**Result**\n\n`````\nx\n````\ny\n`````\n\n");
        assert_eq!(remark, "*error: \\<b\\>\\*no\\**\n\n");
    }
}
