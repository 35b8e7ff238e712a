//! The little that the loader asks of a plugin's JSON Schema: what is below a field, what may stand in it.

use serde_json::Value;

/// Schemas may refer to themselves; this is deeper than any that people write.
const DEPTH: usize = 16;

/// A schema, or a part of one, with the whole that references are looked up in.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    root: &'a Value,
    at: &'a Value,
}

impl<'a> Field<'a> {
    pub(super) fn top(root: &'a Value) -> Self {
        Self { root, at: root }
    }

    /// The schema of a key of a mapping, or of an item of a list.
    pub(super) fn child(self, key: &str) -> Option<Self> {
        self.alternatives().into_iter().find_map(|it| {
            let named = it.at.get("properties").and_then(|all| all.get(key));
            let item = || it.at.get("items").filter(|_| key.parse::<usize>().is_ok());
            let free = || it.at.get("additionalProperties").filter(|found| found.is_object());
            named.or_else(item).or_else(free).map(|at| Self { at, ..it })
        })
    }

    /// Whether a value of this type (`string`, `integer`, `number`, `boolean`) may stand here.
    pub(super) fn takes(self, kind: &str) -> bool {
        self.alternatives().iter().any(|it| match it.at.get("type") {
            Some(Value::String(only)) => only == kind,
            Some(Value::Array(several)) => several.iter().any(|one| one == kind),
            _ => kind == "string" && it.at.get("enum").or(it.at.get("const")).is_some(),
        })
    }

    /// Whether nothing is said about the type.
    pub(super) fn takes_anything(self) -> bool {
        let says = ["type", "enum", "const"];
        !self.alternatives().iter().any(|it| says.iter().any(|key| it.at.get(key).is_some()))
    }

    /// Whether it was marked as holding a secret.
    pub(super) fn is_secret(self) -> bool {
        self.alternatives().iter().any(|it| it.at.get("writeOnly") == Some(&Value::Bool(true)))
    }

    /// This schema, what it refers to and what it is made of.
    fn alternatives(self) -> Vec<Self> {
        let mut all = vec![self];
        let mut from = 0;
        for _ in 0..DEPTH {
            let deeper: Vec<_> = all[from..].iter().flat_map(|it| it.parts()).collect();
            from = all.len();
            all.extend(deeper);
        }
        all
    }

    fn parts(self) -> Vec<Self> {
        let target = self.at.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|it| self.root.pointer(it.trim_start_matches('#')));
        let lists =
            ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| self.at.get(key)?.as_array());
        target.into_iter().chain(lists.flatten()).map(|at| Self { at, ..self }).collect()
    }
}
