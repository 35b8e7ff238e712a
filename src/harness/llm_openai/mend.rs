//! JSON that servers send and a strict parser refuses: half of a surrogate pair, numbers without end (D-39).

use serde_json::Value;

/// Parses; where that fails, once more with the refused pieces replaced.
pub(super) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|err| serde_json::from_str(&mend(text)).map_err(|_| err))
}

/// Unpaired surrogate escapes become U+FFFD, numbers beyond a double become null. All else stays, valid or not.
fn mend(text: &str) -> String {
    let mut mended = String::with_capacity(text.len());
    let (mut rest, mut in_string) = (text, false);
    while let Some(at) = rest.find(|it: char| {
        matches!((it, in_string), ('"', _) | ('\\', true) | ('-' | '0'..='9', false))
    }) {
        let (before, piece) = rest.split_at(at);
        mended.push_str(before);
        let taken = match piece.as_bytes()[0] {
            b'"' => {
                in_string = !in_string;
                mended.push('"');
                1
            }
            b'\\' => escape(piece, &mut mended),
            _ => number(piece, &mut mended),
        };
        rest = &piece[taken..];
    }
    mended + rest
}

/// Copies the escape at the beginning of this text; returns its length.
fn escape(piece: &str, mended: &mut String) -> usize {
    let taken = match unit(piece) {
        Some(0xD800..0xDC00) if matches!(piece.get(6..).and_then(unit), Some(0xDC00..0xE000)) => 12,
        Some(0xD800..0xE000) => {
            mended.push_str("\\ufffd");
            return 6;
        }
        _ => 1 + piece[1..].chars().next().map_or(0, char::len_utf8),
    };
    mended.push_str(&piece[..taken]);
    taken
}

/// The code unit of an escape like `\u12ab` at the beginning of this text.
fn unit(text: &str) -> Option<u16> {
    text.strip_prefix("\\u")
        .and_then(|it| it.get(..4))
        .and_then(|it| u16::from_str_radix(it, 16).ok())
}

/// Copies the number at the beginning of this text; returns its length.
fn number(piece: &str, mended: &mut String) -> usize {
    let taken = piece
        .find(|it: char| !matches!(it, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'))
        .unwrap_or(piece.len());
    let is_endless = piece[..taken].parse::<f64>().is_ok_and(f64::is_infinite);
    mended.push_str(if is_endless { "null" } else { &piece[..taken] });
    taken
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn half_a_surrogate_pair_becomes_the_replacement_character() {
        let odd =
            r#"{"a":"x\ud83dy","b":"\udc00","c":"\ud83d\ud83d\ude00","d":"\\ud83d","e":"\ud83d"}"#;

        let value = parse(odd).unwrap();

        assert_eq!(
            value,
            json!({"a": "x\u{fffd}y", "b": "\u{fffd}", "c": "\u{fffd}😀", "d": "\\ud83d", "e": "\u{fffd}"})
        );
    }

    #[test]
    fn a_number_beyond_a_double_becomes_null() {
        assert_eq!(
            parse(r#"{"a":1e999,"b":[-1e999,2],"c":"1e999"}"#).unwrap(),
            json!({"a": null, "b": [null, 2], "c": "1e999"})
        );
    }

    proptest! {
        #[test]
        fn what_was_valid_stays_as_it_was(text in r#"("[a-z\\\\"ué€ -]{0,9}"|-?[0-9]{1,5}|[\[\],:{} ]){0,9}"#) {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                prop_assert_eq!(serde_json::from_str::<Value>(&mend(&text)).unwrap(), value);
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in r#"(\\u?[dD89cC0-9a-f]{0,4}|["\\{}:,€-]|1e9{3}|.){0,30}"#) {
            drop(mend(&text));
        }
    }
}
