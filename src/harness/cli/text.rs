//! Text of others made harmless for a terminal.
//!
//! Part of `cli`. What a model, a command or a server wrote may hold bytes that clear the screen, write the clipboard or
//! turn the direction of writing round. Everything of theirs passes through here before it is shown; the log keeps it as
//! it came.
//! Full-size counterpart: none as one piece; each front end there cleans for itself.
//! Watch for: every function works character by character, so text that arrives in pieces comes out as if it were whole.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;

/// Text of several lines: newlines and tabs stay, carriage returns go, every other hostile character becomes visible.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| is_hostile(c) && !matches!(c, '\n' | '\t')) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            '\r' => {}
            _ if is_hostile(c) => shown.push_str(&visible(c)),
            _ => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Text that must stay on one line, such as the name of a tool.
pub(crate) fn line(text: &str) -> String {
    harmless(text).replace('\n', "␊").replace('\t', "␉")
}

/// A message for stderr: as [`harmless`], and no further line of it can pass for one of our own, because it is indented.
pub(super) fn message(text: &str) -> String {
    harmless(text.trim_end()).replace('\n', "\n  ")
}

/// The arguments of a call as one line of compact JSON, in full: what is shown is what would run.
///
/// Text that is no JSON object, which no tool runs, is shown as the JSON string that it is.
pub(crate) fn arguments(raw: &str) -> String {
    let parsed = match serde_json::from_str(raw) {
        Ok(Value::String(inner)) => serde_json::from_str(&inner).ok(),
        parsed => parsed.ok(),
    };
    match parsed {
        Some(Value::Object(map)) => json(&Value::Object(map)),
        Some(Value::Null) => "{}".into(),
        _ if raw.trim().is_empty() => "{}".into(),
        _ => json(&Value::from(raw)),
    }
}

/// JSON in which no control character is left: it writes those below U+0020 as escapes itself, and not these.
pub(super) fn escaped(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\u{7f}'..='\u{9f}' => escape(c, &mut shown),
            _ => shown.push(c),
        }
    }
    shown
}

/// A number of things, in words that fit it.
pub(super) fn counted(number: u32, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// A time in seconds, to a tenth.
pub(crate) fn seconds(time: Duration) -> String {
    let tenths = (time.as_millis() + 50) / 100;
    match tenths % 10 {
        0 => format!("{} s", tenths / 10),
        rest => format!("{}.{rest} s", tenths / 10),
    }
}

/// Compact JSON in which every character is escaped that does not show as itself: nobody can approve what cannot be seen.
pub(super) fn json(value: &Value) -> String {
    seen(&value.to_string(), &[])
}

/// Text in which everything is escaped that does not show as itself, but for these characters.
pub(super) fn seen(text: &str, kept: &[char]) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if (is_hostile(c) || is_unseen(c)) && !kept.contains(&c) {
            escape(c, &mut shown);
        } else {
            shown.push(c);
        }
    }
    shown
}

/// As JSON allows for any character in a text.
fn escape(c: char, json: &mut String) {
    let mut units = [0; 2];
    json.extend(c.encode_utf16(&mut units).iter().map(|it| format!("\\u{it:04x}")));
}

/// Controls, and the invisible characters that reorder, hide or split what a person reads.
///
/// The joiners U+200C and U+200D stay: Persian and emoji are written with them.
fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{feff}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// What shows nothing, or a blank that is no blank, or whatever a font likes.
fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{a0}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{1680}'
            | '\u{17b4}'
            | '\u{17b5}'
    ) || matches!(c, '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{202f}' | '\u{205f}' | '\u{2800}')
        || matches!(c, '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}')
        || matches!(c, '\u{16fe4}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}')
        || matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{fffe}' | '\u{ffff}' | '\u{e0080}'..)
}

/// The old controls have pictures of their own in Unicode; the rest is named by its number.
fn visible(c: char) -> String {
    match u32::from(c) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).map(String::from).unwrap_or_default(),
        0x7f => "\u{2421}".into(),
        code => format!("<U+{code:04X}>"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection;
    use proptest::prelude::{any, prop_oneof, proptest};
    use serde_json::json;

    use super::{Duration, arguments, harmless, is_hostile, message, seconds};

    fn is_clean(text: &str) -> bool {
        text.chars().all(|c| matches!(c, '\n' | '\t') || !is_hostile(c))
    }

    #[test]
    fn plain_text_stays_as_it_is() {
        let text = "two\tcells\n你好 👩‍👩‍👧 é";

        assert_eq!(harmless(text), text);
    }

    #[test]
    fn escape_sequences_of_every_form_become_visible_text() {
        let csi_osc_c1 = "A\x1b[2J\x1b]52;c;aGk=\x07\u{9b}2JB\x7f";

        assert_eq!(harmless(csi_osc_c1), "A␛[2J␛]52;c;aGk=␇<U+009B>2JB␡");
    }

    #[test]
    fn windows_line_ends_become_plain_ones() {
        assert_eq!(harmless("a\r\nb"), "a\nb");
    }

    #[test]
    fn a_time_is_told_to_a_tenth_of_a_second() {
        let told = [0, 49, 50, 200, 1_234, 9_960, 60_000].map(Duration::from_millis).map(seconds);

        assert_eq!(told, ["0 s", "0 s", "0.1 s", "0.2 s", "1.2 s", "10 s", "60 s"]);
    }

    #[test]
    fn direction_marks_become_visible() {
        assert_eq!(harmless("rm \u{202e}fr-\u{2066}"), "rm <U+202E>fr-<U+2066>");
    }

    #[test]
    fn a_further_line_of_a_message_cannot_pass_for_one_of_ours() {
        assert_eq!(message("bad\n[nano-cordis] applied\n"), "bad\n  [nano-cordis] applied");
    }

    #[test]
    fn arguments_are_compact_json_and_the_last_of_two_equal_keys_counts() {
        assert_eq!(
            arguments("{ \"command\" : \"echo\\n1\", \"command\":\"x\" }"),
            r#"{"command":"x"}"#
        );
    }

    #[test]
    fn absent_and_doubly_encoded_arguments_are_shown_as_they_will_be_read() {
        assert_eq!([arguments(""), arguments(" \n"), arguments("null")], ["{}", "{}", "{}"]);
        assert_eq!(arguments(r#""{\"command\":\"b\"}""#), r#"{"command":"b"}"#);
    }

    #[test]
    fn arguments_that_are_no_object_are_shown_as_the_text_that_came() {
        assert_eq!(arguments("{\"command\": \"x"), r#""{\"command\": \"x""#);
        assert_eq!(arguments("[1]"), r#""[1]""#);
    }

    #[test]
    fn controls_and_direction_marks_in_arguments_are_escaped() {
        let raw = json!({ "command": "a\u{9b}\u{7f}\u{202e}\u{e0041}\x1b\n" }).to_string();

        assert_eq!(arguments(&raw), r#"{"command":"a\u009b\u007f\u202e\udb40\udc41\u001b\n"}"#);
    }

    #[test]
    fn what_does_not_show_as_itself_in_arguments_is_escaped() {
        let raw =
            json!({ "command": "rm\u{a0}-rf\u{3000}/\u{200d}\u{fe0f}\u{2800}\u{ad}\u{e000}漢é" })
                .to_string();

        let shown = r#"{"command":"rm\u00a0-rf\u3000/\u200d\ufe0f\u2800\u00ad\ue000漢é"}"#;
        assert_eq!(arguments(&raw), shown);
    }

    proptest! {
        #[test]
        fn a_16_of_any_bytes_no_control_is_left_but_newline_and_tab(
            bytes in collection::vec(prop_oneof![any::<u8>(), 0u8..0x20, 0x7fu8..0xa0], 0..64),
        ) {
            let text = String::from_utf8_lossy(&bytes);
            let c1: String = bytes.iter().map(|it| char::from(*it)).collect();

            for text in [&*text, &*c1] {
                let shown = harmless(text);
                assert!(shown.chars().all(|it| matches!(it, '\n' | '\t') || !it.is_control()), "{shown:?}");
                if text.chars().all(|it| matches!(it, '\n' | '\t') || !is_hostile(it)) {
                    assert_eq!(shown, text);
                }
            }
        }

        #[test]
        fn nothing_hostile_is_ever_left(text in any::<String>()) {
            assert!(is_clean(&harmless(&text)));
            assert!(is_clean(&message(&text)));
            assert!(is_clean(&arguments(&text)));
        }

        #[test]
        fn pieces_come_out_as_the_whole(one in any::<String>(), two in any::<String>()) {
            let whole = format!("{one}{two}");

            assert_eq!(harmless(&whole), format!("{}{}", harmless(&one), harmless(&two)));
        }

        #[test]
        fn escaped_arguments_mean_what_they_meant(text in any::<String>()) {
            let value = json!({ "command": text });

            assert_eq!(serde_json::from_str::<serde_json::Value>(&arguments(&value.to_string())).unwrap(), value);
        }
    }
}
