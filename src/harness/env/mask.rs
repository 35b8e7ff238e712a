//! Part of `env`: secrets taken out of what others say, also where they come in pieces.
//!
//! Watch for: text is shown before its end is there. What may be the beginning of a secret waits until more has come.

use std::{borrow::Cow, cmp::Reverse, ops::Range, rc::Rc};

use serde_json::{Map, Value};

const SHOWN: &str = "***";
/// What has fewer bytes is no secret but the made-up key of a local server, and may be a word.
const SHORTEST: usize = 8;

/// Whether a text can be told from whatever else is said.
pub(crate) fn can_be_secret(text: &str) -> bool {
    text.len() >= SHORTEST
}

/// The texts that nobody must see; none where nothing is secret.
#[derive(Clone, Default)]
pub(crate) struct Mask(Vec<Rc<str>>);

impl Mask {
    /// Longer secrets first: one may begin with another.
    pub(crate) fn new(secrets: impl IntoIterator<Item = Rc<str>>) -> Self {
        let mut secrets: Vec<_> = secrets.into_iter().filter(|it| !it.is_empty()).collect();
        secrets.sort_by_key(|it| Reverse(it.len()));
        Self(secrets)
    }

    /// The text without secrets.
    pub(crate) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.next(text.as_bytes(), 0).is_none() {
            return Cow::Borrowed(text);
        }
        let mut masked = Vec::with_capacity(text.len());
        let settled = self.pass(text.as_bytes(), |it| masked.extend_from_slice(it));
        masked.extend_from_slice(&text.as_bytes()[settled..]);
        Cow::Owned(text_of(masked))
    }

    /// The same for every text in a value: JSON can write one secret in many ways, which are one when it is read.
    pub(crate) fn value(&self, value: &mut Value) {
        match value {
            _ if self.0.is_empty() => {}
            Value::String(text) => {
                if let Cow::Owned(masked) = self.text(text) {
                    *text = masked;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|it| self.value(it)),
            Value::Object(fields) => self.fields(fields),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn fields(&self, fields: &mut Map<String, Value>) {
        fields.values_mut().for_each(|it| self.value(it));
        if fields.keys().any(|it| matches!(self.text(it), Cow::Owned(_))) {
            let named = std::mem::take(fields).into_iter();
            *fields = named.map(|(name, it)| (self.text(&name).into_owned(), it)).collect();
        }
    }

    /// Hands on what has no part in a secret that is still to come; says how many of these bytes that were.
    fn pass(&self, bytes: &[u8], mut on: impl FnMut(&[u8])) -> usize {
        let mut from = 0;
        while let Some(secret) = self.next(bytes, from) {
            on(&bytes[from..secret.start]);
            on(SHOWN.as_bytes());
            from = secret.end;
        }
        let settled = bytes.len() - self.begun(&bytes[from..]);
        on(&bytes[from..settled]);
        settled
    }

    fn next(&self, bytes: &[u8], from: usize) -> Option<Range<usize>> {
        let at = |at: usize| self.0.iter().find(|it| bytes[at..].starts_with(it.as_bytes()));
        (from..bytes.len()).find_map(|start| at(start).map(|it| start..start + it.len()))
    }

    /// How many bytes at the end may be the beginning of a secret.
    fn begun(&self, bytes: &[u8]) -> usize {
        let longest = self.0.first().map_or(0, |it| it.len() - 1).min(bytes.len());
        let begins = |length: &usize| {
            let end = &bytes[bytes.len() - length..];
            self.0.iter().any(|it| it.len() > *length && it.as_bytes().starts_with(end))
        };
        (1..=longest).rev().find(begins).unwrap_or(0)
    }
}

/// A stream of bytes on its way.
#[derive(Default)]
pub(crate) struct Sieve {
    mask: Mask,
    held: Vec<u8>,
}

impl Sieve {
    pub(crate) fn new(mask: Mask) -> Self {
        Self { mask, held: Vec::new() }
    }

    /// Hands on what can be shown of the stream so far.
    pub(crate) fn pass(&mut self, bytes: &[u8], mut on: impl FnMut(&[u8])) {
        if self.mask.0.is_empty() {
            return on(bytes);
        }
        self.held.extend_from_slice(bytes);
        let settled = self.mask.pass(&self.held, on);
        self.held.drain(..settled);
    }

    /// What was held back, when nothing more comes.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

/// How far a growing text has been shown.
#[derive(Debug, Default)]
pub(crate) struct Veil(usize);

impl Veil {
    /// What can be shown now and was not before, masked. `whole` is all that has come so far.
    pub(crate) fn lift(&mut self, whole: &str, mask: &Mask) -> Option<String> {
        let mut shown = Vec::new();
        let fresh = whole.as_bytes().get(self.0..)?;
        self.0 += mask.pass(fresh, |it| shown.extend_from_slice(it));
        Some(text_of(shown)).filter(|it| !it.is_empty())
    }

    /// What is left to show when nothing more comes.
    pub(crate) fn end(&mut self, whole: &str, mask: &Mask) -> Option<String> {
        let fresh = whole.get(self.0..)?;
        self.0 = whole.len();
        Some(mask.text(fresh).into_owned()).filter(|it| !it.is_empty())
    }
}

fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("a text was cut where a secret, which is text, begins or ends")
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::Index};
    use serde_json::json;

    use super::*;

    fn mask(secrets: &[&str]) -> Mask {
        Mask::new(secrets.iter().map(|it| (*it).into()))
    }

    /// What comes through, piece by piece.
    fn sieved(secrets: &[&str], pieces: &[&[u8]]) -> String {
        let (mut sieve, mut shown) = (Sieve::new(mask(secrets)), Vec::new());
        for piece in pieces {
            sieve.pass(piece, |it| shown.extend_from_slice(it));
        }
        shown.extend(sieve.rest());
        String::from_utf8(shown).unwrap()
    }

    #[test]
    fn h_102_every_text_of_a_value_is_masked_names_too() {
        let mut value = json!({"a sk-12345": [{"b": "x sk-12345 y"}, 1, null]});

        mask(&["sk-12345"]).value(&mut value);

        assert_eq!(value, json!({"a ***": [{"b": "x *** y"}, 1, null]}));
    }

    #[test]
    fn h_102_what_may_become_the_key_is_not_shown_before_it_is_clear() {
        let (mask, mut veil) = (mask(&["sk-12345"]), Veil::default());

        let shown = ["it is s", "it is sk-123", "it is sk-12345", "it is sk-12345, s"]
            .map(|whole| veil.lift(whole, &mask).unwrap_or_default());

        assert_eq!(shown, ["it is ", "", "***", ", "]);
        assert_eq!(veil.end("it is sk-12345, s", &mask).as_deref(), Some("s"));
    }

    #[test]
    fn a_secret_is_masked_wherever_it_is_cut() {
        let text = b"a key-12345 b key-1234 c key-key-12345key-12345";
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let pieces = [&text[..first], &text[first..second], &text[second..]];

                let shown = sieved(&["key-12345"], &pieces);

                assert_eq!(shown, "a *** b key-1234 c key-******", "{pieces:?}");
            }
        }
    }

    #[test]
    fn of_two_secrets_that_begin_alike_the_longer_one_counts() {
        assert_eq!(sieved(&["key", "key-2"], &[b"key-2 ", b"key-", b"3"]), "*** ***-3");
    }

    #[test]
    fn without_secrets_nothing_is_held_back() {
        assert_eq!(sieved(&[], &[b"ab", b"c"]), "abc");
        assert_eq!(sieved(&[""], &[b"ab", b"c"]), "abc");
    }

    proptest! {
        #[test]
        fn h_102_text_in_pieces_is_masked_as_the_whole(
            pieces in prop::collection::vec("[ab/\\\\é]{0,3}|ab/ab/ab|ab\\\\/ab|é€", 0..12),
            cut in any::<Index>(),
        ) {
            let secrets = ["ab/ab/ab", "ab\\/ab\\/ab", "é€a"];
            let (mask, mut veil) = (mask(&secrets), Veil::default());
            let (mut whole, mut shown) = (String::new(), String::new());
            for piece in pieces {
                whole.push_str(&piece);
                shown.extend(veil.lift(&whole, &mask));
                prop_assert!(secrets.iter().all(|it| !shown.contains(it)));
            }
            shown.extend(veil.end(&whole, &mask));
            let (left, right) = whole.as_bytes().split_at(cut.index(whole.len() + 1));

            prop_assert_eq!(&shown, &mask.text(&whole));
            prop_assert_eq!(&shown, &sieved(&secrets, &[left, right]));
        }
    }
}
