//! The config of a plugin: its schema, defaults, unknown keys, and errors that say where.
//!
//! The schema comes from the type (`schemars`), the check of it is JSON Schema (`jsonschema`), and the value that the
//! body gets is read by `serde`. All faults of a config are found in one pass. Null counts as absent.

use std::cell::OnceCell;

use jsonschema::error::{TypeKind, ValidationError, ValidationErrorKind};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Declared;
use crate::cordis::error::{ConfigError, Fault};

/// A type that can be the config of a plugin: it derives `Deserialize` and `JsonSchema`. `serde_json::Value` takes
/// anything as it is.
pub trait ConfigType: Sized + 'static {
    /// Its JSON Schema.
    fn schema() -> Value;
    /// Reads a config that has been checked.
    ///
    /// # Errors
    /// What serde says.
    fn read(config: Value) -> Result<Self, serde_json::Error>;
}

impl<T: DeserializeOwned + JsonSchema + 'static> ConfigType for T {
    fn schema() -> Value {
        schemars::schema_for!(T).to_value()
    }

    fn read(config: Value) -> Result<Self, serde_json::Error> {
        serde_json::from_value(config)
    }
}

/// The config of a plugin that takes none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct NoConfig {}

/// A text that no message, log or schema shows.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(secret)")
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "writeOnly": true })
    }
}

/// A config that fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// With defaults, without nulls.
    pub config: Value,
    /// Keys that the plugin does not know.
    pub unknown: Vec<UnknownKey>,
}

/// A key that the plugin does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKey {
    /// Dotted path.
    pub path: String,
    /// The nearest known key.
    pub near: Option<String>,
}

/// How configs of one plugin are checked.
pub(super) struct ConfigSpec {
    /// Makes the schema; it is made when it is first needed, because most mounts of most plugins do not need it.
    make: Box<dyn Fn() -> Value>,
    /// Tries to read a config as its type.
    probe: Option<fn(Value) -> Result<(), serde_json::Error>>,
    made: OnceCell<Box<(Value, jsonschema::Validator)>>,
}

impl ConfigSpec {
    pub(super) fn of<C: ConfigType>() -> Self {
        Self {
            make: Box::new(C::schema),
            probe: Some(|config| C::read(config).map(drop)),
            made: OnceCell::new(),
        }
    }

    pub(super) fn dynamic(plugin: &str, schema: Option<Value>) -> Result<Self, ConfigError> {
        let Some(schema) = schema else { return Ok(Self::of::<Value>()) };
        jsonschema::validator_for(&schema).map_err(|err| {
            let problem = format!("the schema is no JSON Schema: {err}");
            ConfigError {
                plugin: plugin.into(),
                faults: vec![Fault { path: String::new(), problem }],
            }
        })?;
        Ok(Self { make: Box::new(move || schema.clone()), probe: None, made: OnceCell::new() })
    }

    pub(super) fn schema(&self) -> Option<&Value> {
        let (schema, _) = self.made();
        schema
            .as_object()
            .filter(|map| map.keys().any(|key| key != "$schema" && key != "title"))
            .map(|_| schema)
    }

    fn made(&self) -> &(Value, jsonschema::Validator) {
        self.made.get_or_init(|| {
            let schema = (self.make)();
            // Invariant: schemas of types are valid by construction, those of scripts were compiled once before.
            let validator = jsonschema::validator_for(&schema).expect("the schema compiles");
            Box::new((schema, validator))
        })
    }

    pub(super) fn check(
        &self,
        plugin: &str,
        config: &Value,
        strict: bool,
    ) -> Result<Checked, ConfigError> {
        if let (Value::Null, Some(probe)) = (config, self.probe) {
            for absent in [Value::Null, Value::Object(Map::new())] {
                if probe(absent.clone()).is_ok() {
                    return Ok(Checked { config: absent, unknown: Vec::new() });
                }
            }
        }
        self.check_all(config, strict)
            .map_err(|faults| ConfigError { plugin: plugin.into(), faults })
    }

    fn check_all(&self, config: &Value, strict: bool) -> Result<Checked, Vec<Fault>> {
        let (schema, validator) = self.made();
        let mut config = config.clone();
        let is_map = schema.get("properties").is_some()
            || schema.get("type").is_some_and(|it| it == "object");
        if config.is_null() && is_map {
            config = Value::Object(Map::new());
        }
        let mut tidy = Tidy { root: schema, unknown: Vec::new() };
        tidy.value(&mut config, schema, "");
        let mut faults: Vec<_> =
            validator.iter_errors(&config).map(|err| fault(&err, schema)).collect();
        if strict {
            faults.extend(tidy.unknown.drain(..).map(UnknownKey::into_fault));
        }
        if let (true, Some(Err(err))) =
            (faults.is_empty(), self.probe.map(|probe| probe(config.clone())))
        {
            faults.push(Fault { path: String::new(), problem: err.to_string() });
        }
        if faults.is_empty() { Ok(Checked { config, unknown: tidy.unknown }) } else { Err(faults) }
    }
}

impl UnknownKey {
    fn into_fault(self) -> Fault {
        let hint = self.near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Fault { path: self.path, problem: format!("unknown key{hint}") }
    }
}

/// Walks a config along its schema: drops nulls, fills in defaults, notes unknown keys. Where the schema allows
/// anything, the value stays as it is.
struct Tidy<'a> {
    root: &'a Value,
    unknown: Vec<UnknownKey>,
}

impl Tidy<'_> {
    fn value(&mut self, value: &mut Value, schema: &Value, path: &str) {
        let Some(schema) = resolve(schema, self.root) else { return };
        match value {
            Value::Object(map) => self.map(map, schema, path),
            Value::Array(items) => {
                let Some(schema) = schema.get("items") else { return };
                for (at, item) in items.iter_mut().enumerate() {
                    self.value(item, schema, &join(path, &at.to_string()));
                }
            }
            _ => {}
        }
    }

    fn map(&mut self, map: &mut Map<String, Value>, schema: &Value, path: &str) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties").filter(|it| it.is_object());
        if properties.is_none() && others.is_none() {
            return;
        }
        map.retain(|_, value| !value.is_null());
        for (key, schema) in properties.into_iter().flatten() {
            if let (false, Some(default)) = (map.contains_key(key), default(schema)) {
                map.insert(key.clone(), default);
            }
        }
        for (key, value) in map.iter_mut() {
            let known = properties.and_then(|properties| properties.get(key)).or(others);
            match known {
                Some(schema) => self.value(value, schema, &join(path, key)),
                None if schema.get("additionalProperties") == Some(&Value::Bool(true)) => {}
                None => {
                    let known = properties.into_iter().flatten().map(|(key, _)| key.as_str());
                    self.unknown
                        .push(UnknownKey { path: join(path, key), near: nearest(key, known) });
                }
            }
        }
    }
}

/// The default of a property. A default of null is an absent value.
fn default(schema: &Value) -> Option<Value> {
    schema.get("default").filter(|default| !default.is_null()).cloned()
}

/// Follows `$ref`, and looks through the `null` that stands beside the type of an optional field. None if a value of
/// this schema is free in form.
fn resolve<'a>(schema: &'a Value, root: &'a Value) -> Option<&'a Value> {
    let mut schema = schema;
    // A schema that refers to itself and nothing else would go round for ever.
    for _ in 0..8 {
        let map = schema.as_object()?;
        schema = match (
            map.get("$ref").and_then(Value::as_str),
            map.get("anyOf").and_then(Value::as_array),
        ) {
            (Some(place), _) => root.pointer(place.strip_prefix('#')?)?,
            (None, Some(any)) => {
                any.iter().find(|it| it.get("type").is_none_or(|it| it != "null"))?
            }
            (None, None) => return Some(schema),
        };
    }
    None
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Says in the user's words what is wrong: wanted type, found value. The value of a secret is not shown.
fn fault(err: &ValidationError<'_>, root: &Value) -> Fault {
    let path = err
        .instance_path()
        .as_str()
        .trim_start_matches('/')
        .replace('/', ".")
        .replace("~1", "/")
        .replace("~0", "~");
    let secret = is_secret(err, root);
    let found =
        || if secret { "a value that is not shown".to_owned() } else { clip(err.instance()) };
    match err.kind() {
        ValidationErrorKind::Required { property } => Fault {
            path: join(&path, property.as_str().unwrap_or_default()),
            problem: "is required".into(),
        },
        ValidationErrorKind::Type { kind } => {
            Fault { path, problem: format!("must be {}, not {}", wanted(kind), found()) }
        }
        _ if secret => Fault { path, problem: "is not allowed (the value is not shown)".into() },
        _ => Fault { path, problem: err.to_string() },
    }
}

/// A secret may hide anywhere under the place of the fault.
fn is_secret(err: &ValidationError<'_>, root: &Value) -> bool {
    let mut schema = Some(root);
    for part in err.instance_path().as_str().split('/').filter(|part| !part.is_empty()) {
        schema = schema.and_then(|schema| resolve(schema, root)).and_then(|schema| {
            let property = schema.get("properties").and_then(|properties| properties.get(part));
            property.or_else(|| schema.get("items")).or_else(|| schema.get("additionalProperties"))
        });
    }
    schema.is_some_and(|schema| holds_secret(schema, root, 0))
}

fn holds_secret(schema: &Value, root: &Value, depth: usize) -> bool {
    let Some(schema) = resolve(schema, root) else { return false };
    let inside = |schema: &Value| depth < 8 && holds_secret(schema, root, depth + 1);
    let parts = schema.get("properties").and_then(Value::as_object);
    schema.get("writeOnly") == Some(&Value::Bool(true))
        || parts.into_iter().flatten().any(|(_, schema)| inside(schema))
        || schema.get("items").is_some_and(inside)
        || schema.get("additionalProperties").is_some_and(inside)
}

fn wanted(kind: &TypeKind) -> String {
    let name = |kind: &dyn std::fmt::Display| match kind.to_string().as_str() {
        "array" => "a list".to_owned(),
        "boolean" => "true or false".to_owned(),
        "integer" => "a whole number".to_owned(),
        "null" => "nothing".to_owned(),
        "number" => "a number".to_owned(),
        "object" => "a map".to_owned(),
        _ => "a text".to_owned(),
    };
    match kind {
        TypeKind::Single(kind) => name(kind),
        TypeKind::Multiple(kinds) => {
            let names: Vec<_> =
                kinds.iter().map(|kind| name(&kind)).filter(|name| name != "nothing").collect();
            names.join(" or ")
        }
    }
}

fn clip(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// The known word that looks most like the given one, if any does.
#[expect(
    single_use_lifetimes,
    reason = "an anonymous lifetime is not allowed in an associated type"
)]
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let limit = ((word.chars().count() + 1) / 3).max(1);
    let scored = known.map(|other| (distance(&word.to_lowercase(), &other.to_lowercase()), other));
    scored.filter(|(score, _)| *score <= limit).min().map(|(_, other)| other.to_owned())
}

/// Number of letters to change, add or drop.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// Reads `inject`: a list of names, or a map whose keys are the names.
pub(super) fn declared(plugin: &str, inject: &Value) -> Result<Vec<Declared>, ConfigError> {
    // Differs: the values of the map, a config for each service in Cordis, are not used.
    let names: Option<Vec<&str>> = match inject {
        Value::Null => Some(Vec::new()),
        Value::Array(names) => names.iter().map(Value::as_str).collect(),
        Value::Object(map) => Some(map.keys().map(String::as_str).collect()),
        _ => None,
    };
    let names = names.ok_or_else(|| {
        let problem = "must be a list of names or a map whose keys are names".to_owned();
        ConfigError {
            plugin: plugin.into(),
            faults: vec![Fault { path: "inject".into(), problem }],
        }
    })?;
    Ok(names
        .into_iter()
        .map(|name| Declared { name: name.to_owned().into(), required: true })
        .collect())
}
