//! Lines in a YAML text. serde gives places to errors only, so that a place is found by failing there.

use std::{cell::Cell, fmt, rc::Rc};

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_yaml::Deserializer as Yaml;

/// Each look-up reads the text once more; nobody reads the lines of more faults than these.
const LOOKUPS: usize = 30;

/// Looks up lines in one text.
pub(super) struct Places {
    text: Rc<str>,
    left: Cell<usize>,
}

impl Places {
    pub(super) fn new(text: Rc<str>) -> Self {
        Self { text, left: Cell::new(LOOKUPS) }
    }

    /// The line of what is at a dotted path, or of the nearest thing around it.
    pub(super) fn line(&self, at: &str) -> Option<usize> {
        let around = at.rsplit_once('.').map(|(around, _)| around);
        self.nth(at, 0).or_else(|| self.line(around?))
    }

    /// The line of one occurrence of what is at a dotted path.
    pub(super) fn nth(&self, at: &str, occurrence: usize) -> Option<usize> {
        self.left.set(self.left.get().checked_sub(1)?);
        let steps: Vec<&str> = at.split('.').collect();
        let seek = Seek { steps: &steps, occurrence };
        seek.deserialize(Yaml::from_str(&self.text)).err()?.location().map(|it| it.line())
    }
}

/// Follows a path and fails where it ends: only errors know their place. What it does not find it passes over.
#[derive(Clone, Copy)]
struct Seek<'a> {
    steps: &'a [&'a str],
    occurrence: usize,
}

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seek<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what is looked for")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Some((step, rest)) = self.steps.split_first() else {
            return Err(A::Error::custom("here"));
        };
        let index = step.parse().unwrap_or(usize::MAX);
        let mut passed = 0;
        loop {
            let found = if passed == index {
                list.next_element_seed(Seek { steps: rest, ..self })?.is_some()
            } else {
                list.next_element::<IgnoredAny>()?.is_some()
            };
            if !found {
                return Ok(());
            }
            passed += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some((step, rest)) = self.steps.split_first() else {
            return Err(A::Error::custom("here"));
        };
        let mut passed = 0;
        loop {
            let fail_at = (rest.is_empty() && passed == self.occurrence).then_some(*step);
            match map.next_key_seed(Key { fail_at })? {
                None => return Ok(()),
                Some(key) if key == *step && !rest.is_empty() => {
                    map.next_value_seed(Seek { steps: rest, ..self })?;
                }
                Some(key) => {
                    passed += usize::from(key == *step);
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
    }
}

/// Reads a key, or fails at the one that is looked for.
struct Key<'a> {
    fail_at: Option<&'a str>,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<String, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<String, E> {
        if self.fail_at == Some(key) { Err(E::custom("here")) } else { Ok(key.to_owned()) }
    }
}
