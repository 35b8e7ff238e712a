//! The text of a result: what was printed, an empty line if the output ended its last one, and how it ended.

use crate::harness::shell::ShellResult;

// Differs: the full version names the exit code only when it is not 0, and keeps the tail of long output only. Here the
// model reads the same last line every time, and sees the beginning of a long output too.
/// The text of a result: what was printed, an empty line if the output ended its last one, and how it ended.
pub(super) fn describe(result: &ShellResult) -> String {
    let mut text = last_states(&result.stdout.text);
    if !result.stderr.text.is_empty() {
        begin_line(&mut text);
        text += "[stderr]\n";
        text += &last_states(&result.stderr.text);
    }
    if text.is_empty() {
        text += "(no output)";
    }
    for mark in marks(result) {
        text += "\n";
        text += &mark;
    }
    text
}

fn begin_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// Lines that a program draws over and over, as a progress bar does, as they look in the end.
fn last_states(text: &str) -> String {
    let last = |line: &str| -> String {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |it| (it, "\n"));
        let shown = line.rsplit('\r').find(|it| !it.is_empty()).unwrap_or_default();
        format!("{shown}{end}")
    };
    text.split_inclusive('\n').map(last).collect()
}

fn marks(result: &ShellResult) -> Vec<String> {
    let mut marks = Vec::new();
    if result.stdout.replaced || result.stderr.replaced {
        marks.push("[bytes that are not UTF-8 were replaced]".into());
    }
    if result.left_children {
        marks.push("[the command left processes running]".into());
    }
    if result.timed_out {
        marks.push(format!("[timed out after {}ms]", result.timeout_ms));
    }
    if result.cancelled {
        marks.push("[cancelled]".into());
    }
    marks.extend(ending(result));
    marks
}

fn ending(result: &ShellResult) -> Option<String> {
    let code = result.exit_code?;
    Some(match &result.signal {
        Some(signal) => format!("[killed by signal: {signal}, exit code: {code}]"),
        None => format!("[exit code: {code}]"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::shell::Output;

    fn printed(stdout: &str, stderr: &str) -> ShellResult {
        let output = |text: &str| Output { text: text.into(), ..Output::default() };
        let (stdout, stderr) = (output(stdout), output(stderr));
        ShellResult {
            exit_code: Some(0),
            timeout_ms: 200,
            stdout,
            stderr,
            ..ShellResult::default()
        }
    }

    #[test]
    fn h_127_the_marker_follows_the_output_after_an_empty_line() {
        assert_eq!(
            describe(&printed("hello from nano\n", "")),
            "hello from nano\n\n[exit code: 0]"
        );
    }

    #[test]
    fn a_13_the_marker_has_a_line_of_its_own_without_a_last_newline() {
        assert_eq!(describe(&printed("x", "")), "x\n[exit code: 0]");
    }

    #[test]
    fn a_13_no_output_is_said_in_words() {
        assert_eq!(describe(&printed("", "")), "(no output)\n[exit code: 0]");
    }

    #[test]
    fn h_129_stderr_follows_under_its_own_line() {
        assert_eq!(describe(&printed("out", "err\n")), "out\n[stderr]\nerr\n\n[exit code: 0]");
        assert_eq!(describe(&printed("", "err")), "[stderr]\nerr\n[exit code: 0]");
    }

    #[test]
    fn h_130_a_signal_is_named_beside_the_code_that_a_shell_would_give() {
        let killed =
            ShellResult { exit_code: Some(137), signal: Some("SIGKILL".into()), ..printed("", "") };

        assert_eq!(describe(&killed), "(no output)\n[killed by signal: SIGKILL, exit code: 137]");
    }

    #[test]
    fn h_131_notes_come_before_the_timeout_and_the_marker_comes_last() {
        let late = ShellResult {
            timed_out: true,
            left_children: true,
            exit_code: Some(143),
            ..printed("early\n", "")
        };

        let text = describe(&late);

        assert_eq!(
            text,
            "early\n\n[the command left processes running]\n[timed out after 200ms]\n[exit code: 143]"
        );
    }

    #[test]
    fn a_11_replaced_bytes_are_told() {
        let mut result = printed("a\u{FFFD}\n", "");
        result.stdout.replaced = true;

        assert_eq!(
            describe(&result),
            "a\u{FFFD}\n\n[bytes that are not UTF-8 were replaced]\n[exit code: 0]"
        );
    }

    #[test]
    fn a_16_a_redrawn_line_is_given_as_it_looks_in_the_end() {
        let text = describe(&printed("0%\r50%\r100%\r\nnext\r\n\n9%\r10%\r", ""));

        assert_eq!(text, "100%\nnext\n\n10%\n[exit code: 0]");
    }
}
