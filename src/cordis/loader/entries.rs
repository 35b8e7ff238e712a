//! Reading the list: from the text of the file to entries, with every fault at once.
//!
//! Full-size counterpart: the file reader of plugin-include. Watch for: serde reports no places, so a fault knows the
//! path of what is wrong, and its line is looked up by a second reading that happens only when there is a fault.

use std::{collections::HashMap, rc::Rc};

use serde_json::{Map, Value};

use super::{
    Cause, Fault,
    places::Places,
    tree::{self, Note, Odd},
};
use crate::cordis::{module::did_you_mean, nearest};

const KEYS: [&str; 5] = ["id", "name", "config", "disabled", "optional"];

/// One entry as the file has it: nothing filled in, nothing replaced.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What the entry is known by over all saves.
    pub id: String,
    /// The plugin: a built-in name or a path.
    pub name: String,
    /// With the placeholders as they are written; null if there is none.
    pub config: Value,
    /// Not mounted, not even loaded.
    pub disabled: bool,
    /// The program may run without it.
    pub optional: bool,
}

/// The entries of a file, or everything that is wrong with the list.
pub(crate) fn read(text: &Rc<str>) -> Result<Vec<Entry>, Cause> {
    let (value, notes) = tree::read(text).map_err(|err| syntax(text, &err))?;
    let values = match &value {
        Value::Null => return Err(Cause::Empty),
        Value::Array(values) => values,
        other => return Err(Cause::NoList(kind(other))),
    };
    let mut list = List { places: Places::new(text.clone()), values, faults: Vec::new() };
    list.take(notes);
    let entries: Vec<_> = (0..values.len()).map(|place| list.entry(place)).collect();
    list.refuse_repeated_ids(&entries);
    if list.faults.is_empty() {
        Ok(entries.into_iter().flatten().collect())
    } else {
        Err(Cause::Faults(list.faults))
    }
}

/// One value that stands alone, as in `--set`.
pub(super) fn value(text: &str) -> Result<Value, String> {
    let (value, notes) = tree::read(text).map_err(|err| err.to_string())?;
    match notes.into_iter().next() {
        Some(Note { odd, .. }) => Err(odd.to_string()),
        None => Ok(value),
    }
}

/// What kind of value this is, with its article.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

/// A list that is being checked.
struct List<'a> {
    places: Places,
    values: &'a [Value],
    faults: Vec<Fault>,
}

impl List<'_> {
    fn fault(&mut self, place: usize, field: &str, problem: impl Into<String>) {
        let entry = label(place, &self.values[place]);
        self.faults.push(Fault::at(&self.places, place, entry, field, problem.into()));
    }

    /// What the reading of the tree has noted, said of the entry it is in.
    fn take(&mut self, notes: Vec<Note>) {
        for Note { at, odd } in notes {
            let (place, field) = at.split_once('.').unwrap_or((&at, ""));
            let lines =
                if odd == Odd::Twice { both_lines(&self.places, &at) } else { String::new() };
            let place = place.parse().unwrap_or_default();
            if self.values.get(place).is_some() {
                self.fault(place, field, format!("{odd}{lines}"));
            }
        }
    }

    fn entry(&mut self, place: usize) -> Option<Entry> {
        let value = &self.values[place];
        let Value::Object(map) = value else {
            self.fault(
                place,
                "",
                format!("an entry is a mapping with `id` and `name`, this is {}", kind(value)),
            );
            return None;
        };
        for key in map.keys().filter(|it| !KEYS.contains(&it.as_str()) && !it.starts_with("x-")) {
            let near = did_you_mean(nearest(key, KEYS.into_iter()).as_deref());
            self.fault(place, key, format!("no such key{near}; an entry has {}", KEYS.join(", ")));
        }
        Some(Entry {
            id: self.name(place, map, "id"),
            name: self.name(place, map, "name"),
            config: map.get("config").cloned().unwrap_or_default(),
            disabled: self.flag(place, map, "disabled"),
            optional: self.flag(place, map, "optional"),
        })
    }

    fn name(&mut self, place: usize, map: &Map<String, Value>, key: &str) -> String {
        match map.get(key) {
            Some(Value::String(text)) if !text.trim().is_empty() => return text.clone(),
            None | Some(Value::Null | Value::String(_)) => {
                self.fault(place, "", format!("it has no `{key}`"));
            }
            Some(other) => self.fault(
                place,
                key,
                format!("must be text, this is {}; put it in quotes", kind(other)),
            ),
        }
        String::new()
    }

    fn flag(&mut self, place: usize, map: &Map<String, Value>, key: &str) -> bool {
        match map.get(key) {
            None | Some(Value::Null) => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                self.fault(
                    place,
                    key,
                    format!("must be true or false, this is {} ({other})", kind(other)),
                );
                false
            }
        }
    }

    fn refuse_repeated_ids(&mut self, entries: &[Option<Entry>]) {
        let mut first = HashMap::new();
        for (place, entry) in entries.iter().enumerate() {
            let Some(id) = entry.as_ref().map(|it| &it.id).filter(|it| !it.is_empty()) else {
                continue;
            };
            let before = *first.entry(id).or_insert(place);
            if before != place {
                let line = self.places.line(&format!("{before}.id"));
                let line = line.map(|it| format!(" (line {it})")).unwrap_or_default();
                self.fault(place, "id", format!("entry {} has this id already{line}", before + 1));
            }
        }
    }
}

/// How messages call an entry: by its id, or else by its place and name.
fn label(place: usize, value: &Value) -> String {
    match (value["id"].as_str(), value["name"].as_str()) {
        (Some(id), _) if !id.trim().is_empty() => format!("entry `{id}`"),
        (_, Some(name)) => format!("entry {} (`{name}`)", place + 1),
        _ => format!("entry {}", place + 1),
    }
}

/// An error of the YAML reader, in one line, with a word about what people do not see.
fn syntax(text: &str, err: &serde_yaml::Error) -> Cause {
    let place = err.location();
    let line = place.as_ref().and_then(|it| text.lines().nth(it.line() - 1)).unwrap_or_default();
    let hint = match line.trim_start_matches(' ') {
        tab if tab.starts_with('\t') => " (a tab: YAML is indented with blanks)",
        it if it.contains("${") => " (inside `{ }` and `[ ]` a placeholder needs quotes)",
        _ => "",
    };
    let mut problem = format!("{err}{hint}").replace('\n', " ");
    let mut at = String::new();
    if let Some(place) = place {
        at = format!(" at line {}", place.line());
        problem = problem.replacen(&format!("{at} column {}", place.column()), "", 1);
    }
    Cause::Syntax(format!("it is not valid YAML{at}: {problem}"))
}

fn both_lines(places: &Places, at: &str) -> String {
    match (places.nth(at, 0), places.nth(at, 1)) {
        (Some(first), Some(second)) => format!(" (lines {first} and {second})"),
        _ => String::new(),
    }
}
