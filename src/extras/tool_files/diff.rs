//! Part of `tool-files`: what a change changes, line by line.

use std::{borrow::Cow, time::Duration};

use similar::TextDiff;

use super::replace::has_crlf;

/// After so long a diff need not be the shortest any more.
const PATIENCE: Duration = Duration::from_millis(200);
/// Lines of a diff in a result,
const LINES: usize = 100;
/// and characters of each.
const CHARACTERS: usize = 500;

/// The unified diff. Of a file that was not there, all of it is new.
pub(super) fn unified(name: &str, before: Option<&[u8]>, after: &[u8]) -> String {
    let windows = before.is_none_or(has_crlf) && has_crlf(after);
    let text = |bytes| match String::from_utf8_lossy(bytes) {
        text if windows => Cow::Owned(text.replace("\r\n", "\n")),
        text => text,
    };
    let (old, new) = (text(before.unwrap_or_default()), text(after));
    let from = if before.is_some() { name } else { "/dev/null" };
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(&*old, &*new);
    diff.unified_diff().context_radius(3).header(from, name).to_string()
}

/// As much of it as a result holds.
pub(super) fn bounded(diff: &str) -> String {
    let lines: Vec<_> = diff.lines().collect();
    let (shown, more) = lines.split_at(lines.len().min(LINES));
    let mut shown: Vec<_> = shown.iter().map(|it| cut(it)).collect();
    if !more.is_empty() {
        shown.push(format!("[{} more lines of this diff]", more.len()).into());
    }
    shown.join("\n")
}

fn cut(line: &str) -> Cow<'_, str> {
    match line.char_indices().nth(CHARACTERS) {
        Some((at, _)) => format!("{}…", &line[..at]).into(),
        None => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{bounded, unified};

    #[test]
    fn a_diff_shows_what_changes_and_what_is_around_it() {
        let diff = unified("a", Some(b"1\r\n2\r\n3"), b"1\r\nx\r\n3");

        assert_eq!(
            diff,
            "--- a\n+++ a\n@@ -1,3 +1,3 @@\n 1\n-2\n+x\n 3\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn a_long_one_says_how_much_is_left_out() {
        let long = bounded(&unified("a", None, "x\n".repeat(200).as_bytes()));

        assert!(long.ends_with("+x\n[103 more lines of this diff]"), "{long}");
    }
}
