//! The key taken out of what others say, also where it comes in pieces.
//!
//! Watch for: text is shown before its end is there. What may be the beginning of the key waits until more has come.

use std::{borrow::Cow, ops::Range};

use serde_json::{Map, Value};

/// What is shorter is no secret but the made-up key of a local server, and may be a word.
const SHORTEST_SECRET: usize = 8;
const SHOWN: &str = "***";

/// The forms in which a key occurs; none where there is no key.
#[derive(Debug, Clone, Default)]
pub(super) struct Mask(Vec<String>);

impl Mask {
    /// Hides this key, which is plain ASCII.
    pub(super) fn new(key: &str) -> Self {
        if key.len() < SHORTEST_SECRET {
            return Self::default();
        }
        // JSON may have it with its slashes escaped.
        let escaped = Some(key.replace('/', "\\/")).filter(|it| it != key);
        Self([key.to_owned()].into_iter().chain(escaped).collect())
    }

    /// What nobody must see.
    pub(super) fn forms(&self) -> &[String] {
        &self.0
    }

    /// The text without the key.
    pub(super) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut keys = self.keys(text).peekable();
        if keys.peek().is_none() {
            return Cow::Borrowed(text);
        }
        let (mut masked, mut from) = (String::with_capacity(text.len()), 0);
        for key in keys {
            masked.push_str(&text[from..key.start]);
            masked.push_str(SHOWN);
            from = key.end;
        }
        Cow::Owned(masked + &text[from..])
    }

    /// The same for every text in a value: JSON can write one key in many ways, which are one when it is read.
    pub(super) fn value(&self, value: &mut Value) {
        if self.0.is_empty() {
            return;
        }
        match value {
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

    /// Where the key stands, from left to right.
    fn keys(&self, text: &str) -> impl Iterator<Item = Range<usize>> {
        let next = |form: &String, from: usize| Some(from + text[from..].find(form.as_str())?);
        let mut places: Vec<_> = self.0.iter().map(|form| (next(form, 0), form)).collect();
        std::iter::from_fn(move || {
            let found =
                places.iter().filter_map(|(place, form)| Some((*place)?..(*place)? + form.len()));
            let key = found.min_by_key(|it| it.start)?;
            for (place, form) in
                places.iter_mut().filter(|(it, _)| it.is_some_and(|it| it < key.end))
            {
                *place = next(form, key.end);
            }
            Some(key)
        })
    }

    /// Up to where this text has no part in a key that is still to come.
    fn settled(&self, text: &str) -> usize {
        let rest = &text[self.keys(text).last().map_or(0, |it| it.end)..];
        let beginning = |form: &String| {
            let most = (form.len() - 1).min(rest.len());
            (1..=most).rev().find(|it| rest.ends_with(&form[..*it])).unwrap_or(0)
        };
        text.len() - self.0.iter().map(beginning).max().unwrap_or(0)
    }
}

/// How far a growing text has been shown.
#[derive(Debug, Default)]
pub(super) struct Veil(usize);

impl Veil {
    /// What can be shown now and was not before, masked. `whole` is all that has come so far.
    pub(super) fn lift(&mut self, whole: &str, mask: &Mask) -> Option<String> {
        let fresh = whole.get(self.0..)?;
        self.show(&fresh[..mask.settled(fresh)], mask)
    }

    /// What is left to show when nothing more comes.
    pub(super) fn end(&mut self, whole: &str, mask: &Mask) -> Option<String> {
        self.show(whole.get(self.0..)?, mask)
    }

    fn show(&mut self, fresh: &str, mask: &Mask) -> Option<String> {
        self.0 += fresh.len();
        Some(mask.text(fresh).into_owned()).filter(|it| !it.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn h_102_every_text_of_a_value_is_masked_names_too() {
        let mut value = json!({"a sk-12345": [{"b": "x sk-12345 y"}, 1, null]});

        Mask::new("sk-12345").value(&mut value);

        assert_eq!(value, json!({"a ***": [{"b": "x *** y"}, 1, null]}));
    }

    #[test]
    fn h_102_what_may_become_the_key_is_not_shown_before_it_is_clear() {
        let (mask, mut veil) = (Mask::new("sk-12345"), Veil::default());

        let shown = ["it is s", "it is sk-123", "it is sk-12345", "it is sk-12345, s"]
            .map(|whole| veil.lift(whole, &mask).unwrap_or_default());

        assert_eq!(shown, ["it is ", "", "***", ", "]);
        assert_eq!(veil.end("it is sk-12345, s", &mask).as_deref(), Some("s"));
    }

    proptest! {
        #[test]
        fn h_102_text_in_pieces_is_masked_as_the_whole(pieces in prop::collection::vec("[ab/\\\\é]{0,3}|ab/ab/ab|ab\\\\/ab", 0..12)) {
            let (mask, mut veil) = (Mask::new("ab/ab/ab"), Veil::default());
            let (mut whole, mut shown) = (String::new(), String::new());
            for piece in pieces {
                whole.push_str(&piece);
                shown.extend(veil.lift(&whole, &mask));
                prop_assert!(!shown.contains("ab/ab/ab"));
            }
            shown.extend(veil.end(&whole, &mask));

            prop_assert_eq!(shown, mask.text(&whole));
        }
    }
}
