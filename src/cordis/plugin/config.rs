//! The config of a plugin: its schema, defaults, unknown keys, and errors that say where.
//!
//! The schema comes from the type (`schemars`), the check of it is JSON Schema (`jsonschema`), and the value that the
//! body gets is read by `serde`. All faults of a config are found in one pass. Null counts as absent.

use std::cell::OnceCell;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::effort::is_checkable;
use super::fault::faults;
use super::tidy::tidy;
use super::typed;
use crate::cordis::error::{ConfigError, Fault};

/// A type that can be the config of a plugin: it derives `Deserialize` and `JsonSchema`. `serde_json::Value` takes
/// anything as it is.
pub trait ConfigType: Sized + 'static {
    /// Its JSON Schema.
    fn schema() -> Value;
    /// Reads a config that has been checked. The error is what serde says, and where.
    fn read(config: Value) -> Result<Self, Unreadable>;
}

impl<T: DeserializeOwned + JsonSchema + 'static> ConfigType for T {
    fn schema() -> Value {
        schemars::schema_for!(T).to_value()
    }

    fn read(config: Value) -> Result<Self, Unreadable> {
        serde_path_to_error::deserialize(config).map_err(|err| {
            let path = Some(err.path().to_string()).filter(|it| it != ".").unwrap_or_default();
            let path = path.replace('[', ".").replace(']', "");
            Unreadable { path, problem: err.into_inner().to_string() }
        })
    }
}

/// A value that does not become the type of its config.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct Unreadable {
    /// Dotted path; empty for the config as a whole.
    pub path: String,
    /// In the words of serde.
    pub problem: String,
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
    probe: Option<fn(Value) -> Result<(), Unreadable>>,
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
        jsonschema::validator_for(&schema)
            .map_err(|err| refused(plugin, "", &format!("the schema is no JSON Schema: {err}")))?;
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
        let mut unknown = tidy(&mut config, schema);
        if !is_checkable(schema, &config) {
            let problem = "cannot be checked: its schema refers to itself too often".to_owned();
            return Err(vec![Fault { path: String::new(), problem }]);
        }
        let mut faults: Vec<_> =
            validator.iter_errors(&config).flat_map(|err| faults(&err, schema)).collect();
        unknown.retain(|it| !faults.iter().any(|fault| fault.path == it.path));
        if strict {
            faults.extend(unknown.drain(..).map(UnknownKey::into_fault));
        }
        if let (true, Some(Err(err))) =
            (faults.is_empty(), self.probe.map(|probe| probe(config.clone())))
        {
            faults.push(typed::fault(&err, &config, schema));
        }
        if faults.is_empty() { Ok(Checked { config, unknown }) } else { Err(faults) }
    }
}

/// A config with one fault.
pub(super) fn refused(plugin: &str, path: &str, problem: &str) -> ConfigError {
    let fault = Fault { path: path.into(), problem: problem.into() };
    ConfigError { plugin: plugin.into(), faults: vec![fault] }
}

impl UnknownKey {
    pub(super) fn into_fault(self) -> Fault {
        let hint = self.near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Fault { path: self.path, problem: format!("unknown key{hint}") }
    }
}
