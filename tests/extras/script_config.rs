//! The config of a script is checked as that of every plugin: the same faults have the same words.

use std::fs;

use nano_cordis::{
    cordis::{BoxError, Builtins, Context, ModuleSource, PluginDef, Secret, plugin},
    extras::script::Scripts,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Loads a script with this source. The folder goes when it is loaded: an engine reads no file.
pub(crate) fn load(source: &str) -> Result<PluginDef, String> {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("probe.ts"), source).unwrap();
    let scripts = Scripts::new(Builtins::new());
    let key = scripts.resolve("./probe.ts", folder.path()).unwrap();
    scripts.load(&key).map_err(|err| err.to_string())
}

/// A script whose `Config` is this expression.
fn with_config(expression: &str) -> Result<PluginDef, String> {
    load(&format!(
        "import Schema from 'schemastery'
         export const Config = {expression}
         export function apply() {{}}"
    ))
}

/// What a config comes to, in words.
fn checked(def: &PluginDef, config: &Value) -> String {
    match def.check(config) {
        Ok(it) => {
            let unknown = it.unknown.iter().map(|it| format!(" {}~{:?}", it.path, it.near));
            format!("{}{}", it.config, unknown.collect::<String>())
        }
        Err(err) => err.to_string(),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is of interest")]
struct Config {
    /// Text with a default.
    #[serde(default = "greeting")]
    greeting: String,
    port: u16,
    #[serde(default = "half")]
    ratio: f64,
    note: Option<String>,
    #[serde(default)]
    loud: bool,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    limits: std::collections::BTreeMap<String, f64>,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    inner: Inner,
    key: Option<Secret>,
}

#[derive(Deserialize, JsonSchema, Default, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    /// Both.
    #[default]
    Quick,
    /// Have words.
    Slow,
}

#[derive(Deserialize, JsonSchema, serde::Serialize)]
struct Inner {
    #[serde(default = "greeting")]
    deep: String,
}

impl Default for Inner {
    fn default() -> Self {
        Self { deep: greeting() }
    }
}

fn greeting() -> String {
    "hello".into()
}

fn half() -> f64 {
    0.5
}

const BUILT: &str = "Schema.object({
    greeting: Schema.string().default('hello').description('Text with a default.'),
    port: Schema.natural().max(65535).required(),
    ratio: Schema.number().default(0.5),
    note: Schema.string(),
    loud: Schema.boolean().default(false),
    tools: Schema.array(Schema.string()),
    limits: Schema.dict(Number),
    mode: Schema.union([Schema.const('quick').description('Both.'), 'slow']).default('quick'),
    inner: Schema.object({ deep: Schema.string().default('hello') }),
    key: Schema.string().role('secret'),
})";

async fn apply(_: Context, _: Config) -> Result<(), BoxError> {
    Ok(())
}

#[test]
fn a_script_says_of_each_config_what_a_compiled_plugin_says() {
    let compiled = plugin(apply).named("probe");
    let script = with_config(BUILT).unwrap();

    for config in [
        json!(null),
        json!({}),
        json!([]),
        json!("text"),
        json!({ "port": 80 }),
        json!({ "port": 80, "greeting": 5, "ratio": "x", "note": [], "loud": "yes" }),
        json!({ "port": -1 }),
        json!({ "port": 1.5 }),
        json!({ "port": 70000 }),
        json!({ "port": null }),
        json!({ "port": 80, "tools": "bash" }),
        json!({ "port": 80, "tools": ["bash", 1, null] }),
        json!({ "port": 80, "limits": { "a": 1, "b.c": "x" } }),
        json!({ "port": 80, "limits": [] }),
        json!({ "port": 80, "mode": "slwo" }),
        json!({ "port": 80, "mode": 1 }),
        json!({ "port": 80, "mode": "slow", "inner": { "deep": 1 } }),
        json!({ "port": 80, "inner": "x" }),
        json!({ "port": 80, "inner": { "dep": "x", "deep": null }, "gretting": "x" }),
        json!({ "port": 80, "key": 12345 }),
        json!({ "port": 80, "key": ["hidden"] }),
    ] {
        assert_eq!(checked(&script, &config), checked(&compiled, &config), "{config}");
    }
}

#[test]
fn no_message_shows_the_value_of_a_secret() {
    let script = with_config(
        "Schema.object({
            key: Schema.string().min(20).role('secret'),
            inner: Schema.array(Schema.dict(Schema.string().max(3).role('secret'))),
         })",
    );

    let config = json!({ "key": "hidden", "inner": [{ "a": "hidden" }, "hidden"] });
    let said = checked(&script.unwrap(), &config);

    assert!(said.contains("at least 20 characters") && !said.contains("hidden"), "{said}");
}

#[test]
fn what_is_left_out_of_a_config_is_filled_in_at_every_depth() {
    let script = with_config(
        "Schema.object({
            a: Schema.object({ b: Schema.object({ c: Schema.number().default(1), d: Schema.string() }) }),
            list: Schema.array(Schema.object({ x: Schema.number().default(2) })),
            map: Schema.dict(Schema.object({ y: Schema.number().default(3) })),
            partly: Schema.object({ one: Schema.number().default(4), two: Schema.number().default(5) }).default({ one: 6 }),
         })",
    );

    let config = json!({ "list": [{}, { "x": 9 }], "map": { "k": {} } });

    assert_eq!(
        script.unwrap().check(&config).unwrap().config,
        json!({
            "list": [{ "x": 2 }, { "x": 9 }],
            "map": { "k": { "y": 3 } },
            "a": { "b": { "c": 1 } },
            "partly": { "one": 6, "two": 5 },
        })
    );
}

const SHAPES: &str = "Schema.intersect([
    Schema.object({ kind: Schema.union(['file', 'server']).default('file'), name: Schema.string() }),
    Schema.union([
        Schema.object({ kind: Schema.const('file'), path: Schema.string().default('log') }),
        Schema.object({ kind: Schema.const('server').required(), port: Schema.natural().required() }),
    ]),
])";

#[test]
fn of_several_shapes_the_one_that_is_meant_gives_defaults_and_known_keys() {
    let script = with_config(SHAPES).unwrap();

    for (config, said) in [
        (json!(null), r#"{"kind":"file","path":"log"}"#),
        (json!({ "kind": "server", "port": 1 }), r#"{"kind":"server","port":1}"#),
        (json!({ "pth": "x" }), r#"{"pth":"x","kind":"file","path":"log"} pth~Some("path")"#),
        (json!({ "kind": "server" }), "config of `probe`: port: is required"),
        (
            json!({ "kind": "files" }),
            "config of `probe`: kind: must be one of `file`, `server`, not \"files\"",
        ),
    ] {
        assert!(checked(&script, &config).starts_with(said), "{}", checked(&script, &config));
    }
}

#[test]
fn the_first_word_of_a_shape_says_which_one_is_meant_in_a_compiled_plugin_too() {
    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "lowercase")]
    #[expect(dead_code, reason = "only its schema is of interest")]
    enum Tagged {
        File {
            #[serde(default = "greeting")]
            path: String,
        },
        Server {
            port: u16,
        },
    }
    let compiled = plugin(async |_: Context, _: Tagged| Ok::<(), BoxError>(())).named("probe");

    for (config, said) in [
        (json!({ "kind": "file" }), r#"{"kind":"file","path":"hello"}"#),
        (json!({ "kind": "server" }), "config of `probe`: port: is required"),
        (
            json!({ "kind": "files" }),
            "config of `probe`: kind: must be one of `file`, `server`, not \"files\"",
        ),
    ] {
        assert_eq!(checked(&compiled, &config), said);
    }
}

#[test]
fn a_config_may_be_a_json_schema() {
    let script = with_config(
        "{ type: 'object', properties: { port: { type: 'integer', minimum: 1, default: 80 } }, required: ['port'] }",
    );
    let script = script.unwrap();

    assert_eq!(checked(&script, &json!(null)), r#"{"port":80}"#);
    assert_eq!(
        checked(&script, &json!({ "port": 0 })),
        "config of `probe`: port: must be at least 1, not 0"
    );
}

#[test]
fn a_schema_that_needs_itself_for_ever_ends_nothing() {
    let script = with_config("{ type: 'object', properties: { a: { $ref: '#', default: {} } } }");

    assert!(checked(&script.unwrap(), &json!({})).starts_with(r#"{"a":{"a":{"#));
}

#[test]
fn a_schema_of_somebody_else_counts_if_it_can_show_itself_as_json_schema() {
    let script = with_config(
        "{ '~standard': { version: 1, vendor: 'them', jsonSchema: { input: () => ({ type: 'object', properties: { a: { type: 'string', default: 'x' } } }) } } }",
    );

    assert_eq!(checked(&script.unwrap(), &json!({})), r#"{"a":"x"}"#);
}

#[test]
fn a_config_that_is_no_schema_is_an_error_that_names_file_and_fault() {
    for (config, fault) in [
        ("5", "the number `5`"),
        ("'text'", "the string `text`"),
        ("[]", "a list"),
        ("class Foo {}", "the function `Foo`"),
        ("{ a: Schema.string() }", "write `Schema.object({ … })` around them"),
        ("{ a: { type: 'string' } }", "`a` is none of its words"),
        ("{ type: 'strnig' }", "strnig"),
        ("{ '~standard': { version: 1, vendor: 'zod' } }", "`zod`"),
        ("Schema.object(5)", "`Schema.object` takes a map of schemas"),
        ("Schema.object({ a: Date })", "the function `Date` is no schema"),
        ("Schema.union('a')", "`Schema.union` takes a list of schemas"),
        ("Schema.string().default(() => 1)", "a default cannot be a function"),
        ("Schema.boolean().min(1)", "`min` is for numbers"),
    ] {
        let said = with_config(config).err().unwrap();

        assert!(said.contains("probe.ts") && said.contains(fault), "{config}: {said}");
        assert!(!said.contains('\n'), "{config}: {said}");
    }
}

#[test]
fn the_builder_has_the_same_name_wherever_it_is_imported_from() {
    for import in [
        "import Schema from 'schemastery'",
        "import { Schema } from 'schemastery'",
        "import { Schema } from 'cordis'",
        "import { z as Schema } from 'nano-cordis'",
        "import { Schema } from '../src/cordis/index.ts'",
    ] {
        let source = format!(
            "{import}
             export const Config: Schema<{{ a: string }}> = Schema.object({{ a: Schema.string().default('x') }})
             export function apply() {{}}"
        );

        assert_eq!(checked(&load(&source).unwrap(), &json!({})), r#"{"a":"x"}"#, "{import}");
    }
}

#[test]
fn each_method_gives_a_new_schema_and_leaves_the_old_one() {
    let script = with_config(
        "(() => {
            const port = Schema.natural()
            port.default(80).min(1).max(9).required()
            return Schema.object({ port, other: port.default(81) })
        })()",
    );

    assert_eq!(checked(&script.unwrap(), &json!({ "port": 0 })), r#"{"port":0,"other":81}"#);
}
