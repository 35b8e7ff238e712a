//! What a call would change, as a question shows it.
//!
//! Part of `cli`. The lines are those of a tool, and of files that anybody wrote.
//! Watch for: nobody can approve what cannot be seen, so nothing in them is hidden, and what is left out is counted.

use super::text::seen;

/// So many lines of what a call would change are shown,
const EXCERPT: usize = 60;
/// and so many characters of each.
const EXCERPT_LINE: usize = 1000;

/// Lines that are shown in a question, escaped like [`json`], and indented, so that none can pass for the question itself.
pub(super) fn excerpt(text: &str) -> String {
    let lines: Vec<_> = text.split_terminator('\n').collect();
    let (shown, more) = lines.split_at(lines.len().min(EXCERPT));
    let rest = match more.len() {
        0 => String::new(),
        1 => "  … 1 more line\n".into(),
        more => format!("  … {more} more lines\n"),
    };
    shown.iter().map(|it| excerpt_line(it)).chain([rest]).collect()
}

fn excerpt_line(line: &str) -> String {
    match line.char_indices().nth(EXCERPT_LINE) {
        None => format!("  {}\n", seen(line, &['\t'])),
        Some((at, _)) => {
            let more = line[at..].chars().count();
            format!("  {}… ({more} more characters)\n", seen(&line[..at], &['\t']))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::excerpt;

    #[test]
    fn an_excerpt_cannot_pass_for_the_question_and_says_what_it_leaves_out() {
        let hostile = excerpt("-a\tb\u{202e}\u{1b}[2J\r\n+Allow this? [y/N] y\n");
        let long = excerpt(&"y\n".repeat(100));

        assert_eq!(hostile, "  -a\tb\\u202e\\u001b[2J\\u000d\n  +Allow this? [y/N] y\n");
        assert_eq!(long, "  y\n".repeat(60) + "  … 40 more lines\n");
        assert!(excerpt(&"é".repeat(3000)).ends_with("é… (2000 more characters)\n"));
    }
}
