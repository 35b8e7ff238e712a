//! JSON of strangers, taken apart as text: only what is asked for is read, and nothing else of it becomes a value.
//!
//! Watch for: a value takes up to forty times the room of its text, and the longest line is long.

use std::fmt;

use serde::{
    Deserializer,
    de::{DeserializeOwned, DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// The longest text that becomes a value of a small type, such as a number or a name.
const SMALL: usize = 1_000;

/// These members of an object, as they are written; `None` if this is no object. Of a repeated name the last one counts.
pub(super) fn members<'a, const N: usize>(
    text: &'a str,
    names: [&str; N],
) -> Option<[Option<&'a str>; N]> {
    let mut json = serde_json::Deserializer::from_str(text);
    let found = json.deserialize_map(Members(&names)).ok()?;
    json.end().ok()?;
    Some(found)
}

/// Hands on each element of a list as it is written; false if this is none.
pub(super) fn each<'a>(text: &'a str, on: impl FnMut(&'a str)) -> bool {
    let mut json = serde_json::Deserializer::from_str(text);
    json.deserialize_seq(Elements(on)).is_ok() && json.end().is_ok()
}

/// A text. One that no UTF-8 can hold, with half of a character in it, is given as it is written.
pub(super) fn text(raw: &str) -> Option<String> {
    let read = || serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned());
    raw.starts_with('"').then(read)
}

/// Something small of another type.
pub(super) fn small<T: DeserializeOwned>(raw: &str) -> Option<T> {
    (raw.len() <= SMALL).then(|| serde_json::from_str(raw).ok()).flatten()
}

struct Members<'n, const N: usize>(&'n [&'n str; N]);

impl<'de, const N: usize> Visitor<'de> for Members<'_, N> {
    type Value = [Option<&'de str>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        while let Some(name) = map.next_key_seed(Name(self.0))? {
            match name {
                Some(at) => found[at] = Some(map.next_value::<&RawValue>()?.get()),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

/// Which of these names a name is.
struct Name<'n>(&'n [&'n str]);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|it| *it == name))
    }
}

struct Elements<F>(F);

impl<'de, F: FnMut(&'de str)> Visitor<'de> for Elements<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(element) = list.next_element::<&RawValue>()? {
            (self.0)(element.get());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{each, members, small, text};

    #[test]
    fn members_are_found_as_they_are_written_and_the_last_of_a_name_counts() {
        let object = r#" {"a": [1 ,{"b":2}], "b" :null,"c":"x","\u0062" : 3 , "a":{"a":4}} "#;

        assert_eq!(members(object, ["a", "b", "d"]), Some([Some(r#"{"a":4}"#), Some("3"), None]));
    }

    #[test]
    fn what_is_no_object_has_no_members_and_what_is_no_list_no_elements() {
        for text in ["", "1", "[]", r#""{}""#, "{", r#"{"a":1"#, r#"{"a":1} 2"#, r#"{"a":}"#] {
            assert_eq!(members(text, ["a"]), None, "{text}");
        }
        for text in ["", "1", "{}", "[1", "[1] 2"] {
            assert!(!each(text, |_| {}), "{text}");
        }
    }

    #[test]
    fn elements_come_one_by_one_however_deep_they_are() {
        let (deep, mut found) = ("[".repeat(100_000) + &"]".repeat(100_000), Vec::new());
        let list = format!(r#"[1, {{"a":2}} ,"x", {deep}]"#);

        assert!(each(&list, |it| found.push(it)));

        assert_eq!(found, ["1", r#"{"a":2}"#, r#""x""#, &deep]);
    }

    #[test]
    fn texts_are_read_and_those_that_cannot_be_are_shown_as_they_are_written() {
        assert_eq!(text(r#""a\n\u00e9""#).as_deref(), Some("a\né"));
        assert_eq!(text(r#""a\ud800b""#).as_deref(), Some(r#""a\ud800b""#));
        assert_eq!([text("1"), text("null"), text("{}")], [None, None, None]);
    }

    #[test]
    fn a_small_thing_is_not_looked_for_in_a_long_text() {
        assert_eq!((small("7"), small::<i32>("x"), small::<i32>("null")), (Some(7), None, None));
        assert_eq!(small::<Vec<u8>>(&format!("[{}0]", "0,".repeat(1_000))), None);
    }
}
