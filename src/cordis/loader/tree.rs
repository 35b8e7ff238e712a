//! The tree of a YAML text, with a note of everything that JSON has no place for.
//!
//! Watch for: what serde would pass over in silence, or refuse without saying where, is noted with its path and read on.

use std::{cell::RefCell, fmt};

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IgnoredAny, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde_json::{Map, Number, Value};
use serde_yaml::Deserializer as Yaml;

/// Something in the tree that is not read as it stands.
pub(super) struct Note {
    /// Dotted path.
    pub(super) at: String,
    /// What it is.
    pub(super) odd: Odd,
}

/// What can be odd. The value is never repeated: it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Odd {
    #[error("this key is there twice")]
    Twice,
    #[error("merge keys are not read; write out what it stands for")]
    Merge,
    #[error("this number is too large to be read; put it in quotes if it is text")]
    TooLarge,
    #[error("this is no number that can be counted with; put it in quotes if it is text")]
    NoNumber,
    #[error("tags are not read, here `!{0}`; put it in quotes if it is text")]
    Tag(String),
}

/// The tree and the notes, or why the text is no YAML.
pub(super) fn read(text: &str) -> Result<(Value, Vec<Note>), serde_yaml::Error> {
    let notes = RefCell::new(Vec::new());
    let value = Node { at: "", notes: &notes }.deserialize(Yaml::from_str(text))?;
    Ok((value, notes.into_inner()))
}

/// Reads one value at a dotted path.
#[derive(Clone, Copy)]
struct Node<'a> {
    at: &'a str,
    notes: &'a RefCell<Vec<Note>>,
}

impl Node<'_> {
    fn note(self, at: &str, odd: Odd) -> Value {
        self.notes.borrow_mut().push(Note { at: at.to_owned(), odd });
        Value::Null
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a plain value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i128<E>(self, _: i128) -> Result<Value, E> {
        Ok(self.note(self.at, Odd::TooLarge))
    }

    fn visit_u128<E>(self, _: u128) -> Result<Value, E> {
        Ok(self.note(self.at, Odd::TooLarge))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).map(Value::Number);
        Ok(number.unwrap_or_else(|| self.note(self.at, Odd::NoNumber)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<Value, A::Error> {
        let (tag, value) = tagged.variant::<String>()?;
        value.newtype_variant::<IgnoredAny>()?;
        Ok(self.note(self.at, Odd::Tag(tag)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        loop {
            let at = join(self.at, &values.len().to_string());
            match list.next_element_seed(Node { at: &at, ..self })? {
                Some(value) => values.push(value),
                None => return Ok(Value::Array(values)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        while let Some(key) = map.next_key_seed(Key)? {
            let at = join(self.at, &key);
            let value = map.next_value_seed(Node { at: &at, ..self })?;
            let merge = key == "<<";
            let twice = values.insert(key, value).is_some();
            if merge || twice {
                self.note(&at, if merge { Odd::Merge } else { Odd::Twice });
            }
        }
        values.shift_remove("<<");
        Ok(Value::Object(values))
    }
}

/// Reads a key, which is text whatever it looks like.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<String, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key that is text")
    }

    fn visit_str<E>(self, key: &str) -> Result<String, E> {
        Ok(key.to_owned())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<String, A::Error> {
        Err(A::Error::custom("a key must be text, this is a list"))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<String, A::Error> {
        Err(A::Error::custom("a key must be text, this is a mapping"))
    }
}

/// A dotted path and one step more; either may be empty.
pub(super) fn join(at: &str, key: &str) -> String {
    match (at, key) {
        ("", only) | (only, "") => only.to_owned(),
        _ => format!("{at}.{key}"),
    }
}
