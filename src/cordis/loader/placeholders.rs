//! `${NAME}` in a config, and `--set`: what is not written in the file comes in here.
//!
//! Full-size counterpart: the `!!js` expressions of plugin-loader, which can run any code. Here a name stands for a
//! variable of the environment, in scalars of `config` only, and what was put in is not read again.
//! Watch for: messages show the text of the file, never the value that took its place.

use serde_json::{Map, Value};

use super::{entries::value, schema::Field, tree::join};

/// Looks up one variable of the environment.
pub(super) type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A config on its way from the file to the plugin.
pub(super) struct Filling<'a> {
    pub(super) config: Value,
    /// Dotted path and text of each value that is not what the file says.
    replaced: Vec<(String, String)>,
    /// Dotted path of each value that the command line gave.
    set: Vec<String>,
    /// Dotted path and problem.
    pub(super) faults: Vec<(String, String)>,
    schema: &'a Value,
    env: Env<'a>,
}

impl<'a> Filling<'a> {
    /// Replaces every placeholder of a config.
    pub(super) fn new(config: &Value, schema: Option<&'a Value>, env: Env<'a>) -> Self {
        let schema = schema.unwrap_or(&Value::Null);
        let mut filling = Self {
            config: Value::Null,
            replaced: Vec::new(),
            set: Vec::new(),
            faults: Vec::new(),
            schema,
            env,
        };
        filling.config = filling.fill("", config, Some(Field::top(schema)));
        filling
    }

    /// Puts the value of one `--set` in its place: text where the schema wants text, else YAML.
    pub(super) fn set(&mut self, key: &str, text: &str) {
        if let Err(problem) = self.overlay(key, text) {
            self.faults.push((key.to_owned(), problem));
        }
        self.replaced.retain(|(at, _)| !covers(key, at));
        self.set.push(key.to_owned());
    }

    /// The key of the `--set` that a field has its value from.
    pub(super) fn set_from(&self, path: &str) -> Option<&str> {
        self.set.iter().map(String::as_str).find(|it| covers(it, path))
    }

    /// A message about a field, without the value that took the place of a placeholder.
    pub(super) fn hide(&self, path: &str, problem: String) -> String {
        let Some((_, text)) =
            self.replaced.iter().find(|(at, _)| covers(at, path) || covers(path, at))
        else {
            return problem;
        };
        match problem.split_once(", not ") {
            Some((wanted, _)) if wanted.starts_with("must be ") => {
                format!("{wanted}, and `{text}` stands for something else")
            }
            _ => format!("what `{text}` stands for does not fit"),
        }
    }

    fn overlay(&mut self, key: &str, text: &str) -> Result<(), String> {
        let mut field = Some(Field::top(self.schema));
        let mut place = &mut self.config;
        for step in key.split('.') {
            field = field.and_then(|it| it.child(step));
            if place.is_null() {
                *place = Value::Object(Map::new());
            }
            let Value::Object(map) = place else {
                return Err(format!("`{step}` is looked for in what is no mapping"));
            };
            place = map.entry(step).or_insert(Value::Null);
        }
        let is_text = field.is_some_and(|it| it.takes("string"));
        *place = if is_text { text.into() } else { value(text)? };
        Ok(())
    }

    fn fill(&mut self, at: &str, value: &Value, field: Option<Field<'_>>) -> Value {
        let mut inner =
            |key: &str, value| self.fill(&join(at, key), value, field.and_then(|it| it.child(key)));
        match value {
            Value::Object(map) => {
                map.iter().map(|(key, value)| (key.clone(), inner(key, value))).collect()
            }
            Value::Array(list) => {
                list.iter().enumerate().map(|(index, it)| inner(&index.to_string(), it)).collect()
            }
            Value::String(text) if text.contains("${") => {
                self.replaced.push((at.to_owned(), text.clone()));
                self.text(text, field).unwrap_or_else(|problem| {
                    self.faults.push((at.to_owned(), problem));
                    value.clone()
                })
            }
            other => other.clone(),
        }
    }

    fn text(&self, text: &str, field: Option<Field<'_>>) -> Result<Value, String> {
        let pieces = split(text)?;
        if let [Piece::Variable { name, default }] = pieces[..] {
            return typed(self.lookup(name, default, field)?, field, name);
        }
        let mut filled = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => filled += text,
                Piece::Variable { name, default } => {
                    filled += &self.lookup(name, default, field)?;
                }
            }
        }
        Ok(filled.into())
    }

    fn lookup(
        &self,
        name: &str,
        default: Option<&str>,
        field: Option<Field<'_>>,
    ) -> Result<String, String> {
        if let (Some(part), false) = (secret_part(name), field.is_some_and(Field::is_secret)) {
            return Err(format!(
                "`{name}` may be a secret ({part}), and this field is not kept secret"
            ));
        }
        match ((self.env)(name), default) {
            (Some(value), None) => Ok(value),
            (Some(value), Some(_)) if !value.is_empty() => Ok(value),
            (_, Some(default)) => Ok(default.to_owned()),
            (None, None) => Err(format!("the environment variable `{name}` is not set")),
        }
    }
}

/// The part of a variable's name that says that its value is a secret, if one does.
pub(crate) fn secret_part(name: &str) -> Option<&'static str> {
    let name = name.to_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"]
        .into_iter()
        .find(|it| name.contains(it))
}

/// Whether anything in a config is not what it says.
pub(super) fn has_placeholder(config: &Value) -> bool {
    match config {
        Value::String(text) => text.contains("${"),
        Value::Array(list) => list.iter().any(has_placeholder),
        Value::Object(map) => map.values().any(has_placeholder),
        _ => false,
    }
}

/// The variables of the environment that a config reads.
pub(crate) fn variables(config: &Value) -> Vec<String> {
    let named = |piece| match piece {
        Piece::Variable { name, .. } => Some(name.to_owned()),
        Piece::Text(_) => None,
    };
    match config {
        Value::String(text) => {
            split(text).unwrap_or_default().into_iter().filter_map(named).collect()
        }
        Value::Array(list) => list.iter().flat_map(variables).collect(),
        Value::Object(map) => map.values().flat_map(variables).collect(),
        _ => Vec::new(),
    }
}

/// Whether a path is that of a field or of something in it. The empty path is that of the whole config.
fn covers(field: &str, path: &str) -> bool {
    field.is_empty()
        || path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// A scalar that is one placeholder is read as the type that the field wants, if that is not text.
fn typed(text: String, field: Option<Field<'_>>, name: &str) -> Result<Value, String> {
    let takes = |kind| field.is_some_and(|it| it.takes(kind));
    if takes("string") || field.is_none_or(Field::takes_anything) {
        return Ok(text.into());
    }
    let kinds =
        [("integer", "a whole number"), ("number", "a number"), ("boolean", "true or false")];
    let wanted: Vec<_> =
        kinds.iter().filter(|(kind, _)| takes(kind)).map(|(_, words)| *words).collect();
    if wanted.is_empty() {
        return Err("a variable can stand for text, a number or a boolean only".into());
    }
    let value = serde_json::from_str(&text).ok().filter(|it| match it {
        Value::Number(number) => takes("number") || (takes("integer") && !number.is_f64()),
        Value::Bool(_) => takes("boolean"),
        _ => false,
    });
    value.ok_or_else(|| format!("must be {}, and what `{name}` holds is not", wanted.join(" or ")))
}

#[derive(Clone, Copy)]
enum Piece<'a> {
    Text(&'a str),
    Variable { name: &'a str, default: Option<&'a str> },
}

/// Takes a text apart. `$${` is a literal `${`.
fn split(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            pieces.extend([Piece::Text(before), Piece::Text("${")]);
            rest = &from[2..];
            continue;
        }
        let Some(end) = from.find('}') else {
            return Err("`${` is not closed; a literal one is written `$${`".into());
        };
        pieces.extend([Piece::Text(before), variable(&from[2..end])?]);
        rest = &from[end + 1..];
    }
    pieces.push(Piece::Text(rest));
    pieces.retain(|it| !matches!(it, Piece::Text("")));
    Ok(pieces)
}

fn variable(inner: &str) -> Result<Piece<'_>, String> {
    let (name, default) =
        inner.split_once(":-").map_or((inner, None), |(name, default)| (name, Some(default)));
    let letters = |it: char| it.is_ascii_alphanumeric() || it == '_';
    if name.is_empty()
        || name.starts_with(|it: char| it.is_ascii_digit())
        || !name.chars().all(letters)
    {
        return Err(format!("`${{{inner}}}` names no variable; a literal `${{` is written `$${{`"));
    }
    if default.is_some_and(|it| it.contains("${")) {
        return Err(format!(
            "the default of `{name}` holds another placeholder, which is not read"
        ));
    }
    Ok(Piece::Variable { name, default })
}
