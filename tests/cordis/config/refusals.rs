//! A config that is refused: no start, one report, and an error that says where.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use nano_cordis::cordis::{
    BoxError, ConfigError, ConfigType, Context, Error, Mount, PluginDef, Secret, State, What,
    plugin,
};

use super::Config;
use crate::support::{Ping, Test, define, give, hear, kernel, rest};

/// A plugin that must not start, under the config type that refuses.
fn unstartable<C: ConfigType>() -> PluginDef {
    let body = |_: Context, _: C| async { Err::<(), BoxError>("the body ran".into()) };
    plugin(body).named("strict")
}

/// Mounts a config that is refused, and returns the error after everything that always holds was checked.
async fn refuse<C: ConfigType>(test: &Test, config: Value) -> ConfigError {
    let mount = test.root.plugin(&unstartable::<C>(), config).unwrap();
    assert_eq!(mount.state(), State::Pending);
    refused(test, &mount).await
}

async fn refused(test: &Test, mount: &Mount) -> ConfigError {
    let error = mount.ready().await.expect_err("the config is refused");
    assert_eq!(mount.state(), State::Failed);
    let report = test.reports.take_one();
    assert!(matches!(report.what, What::ConfigRefused), "{report}");
    assert!(!report.to_string().contains("31337999"), "{report}");
    let Error::Config(error) = error else { unreachable!("{error} does not come of a config") };
    error
}

fn paths(error: &ConfigError) -> Vec<&str> {
    error.faults.iter().map(|it| it.path.as_str()).collect()
}

#[test]
fn k_145_the_error_names_the_path_of_a_wrong_type() {
    kernel(async |test| {
        let error = refuse::<Config>(&test, json!({ "inner": { "deep": "x" } })).await;

        assert_eq!(paths(&error), ["inner.deep"]);
        assert!(error.to_string().contains("inner.deep"), "{error}");
        assert_eq!(error.plugin, "strict");
    });
}

#[test]
fn k_145_all_faults_come_at_once() {
    kernel(async |test| {
        let config = json!({ "maxSteps": "many", "tools": [1], "inner": { "deep": true } });

        let error = refuse::<Config>(&test, config).await;

        let mut paths = paths(&error);
        paths.sort_unstable();
        assert_eq!(paths, ["inner.deep", "maxSteps", "tools.0"]);
    });
}

#[test]
fn k_146_the_error_names_list_and_index() {
    kernel(async |test| {
        let error = refuse::<Config>(&test, json!({ "tools": ["a", "b", 3] })).await;

        assert_eq!(paths(&error), ["tools.2"]);
        assert!(error.to_string().contains("tools.2"), "{error}");
    });
}

#[test]
fn k_146_null_stays_null_in_a_list_and_is_refused_there() {
    kernel(async |test| {
        let error = refuse::<Config>(&test, json!({ "tools": ["a", null] })).await;

        assert_eq!(paths(&error), ["tools.1"]);
    });
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema matters")]
struct Required {
    model: String,
    key: Secret,
}

#[test]
fn k_147_the_error_names_a_missing_field() {
    for config in [json!({ "key": "k" }), json!({ "key": "k", "model": null })] {
        kernel(async |test| {
            let error = refuse::<Required>(&test, config).await;

            assert_eq!(error.faults.len(), 1);
            assert!(error.to_string().contains("model"), "{error}");
        });
    }
}

#[test]
fn k_147_without_config_every_required_field_is_missing() {
    kernel(async |test| {
        let error = refuse::<Required>(&test, Value::Null).await;

        assert_eq!(error.faults.len(), 2);
        assert!(
            error.to_string().contains("model") && error.to_string().contains("key"),
            "{error}"
        );
    });
}

#[test]
fn k_151_a_number_is_no_text_and_text_is_no_number() {
    for (config, path, wanted) in [
        (json!({ "greeting": 5 }), "greeting", "text"),
        (json!({ "maxSteps": "5" }), "maxSteps", "whole number"),
        (json!({ "maxSteps": 1.5 }), "maxSteps", "whole number"),
        (json!([]), "", "map"),
    ] {
        kernel(async |test| {
            let error = refuse::<Config>(&test, config).await;

            assert_eq!(paths(&error), [path]);
            assert!(error.to_string().contains(wanted), "{error}");
        });
    }
}

#[test]
fn k_153_a_refused_config_leaves_nothing_behind() {
    kernel(async |test| {
        let journal = test.journal.clone();
        let body = move |ctx: Context, _: Config| {
            let journal = journal.clone();
            async move {
                hear(&ctx, &journal, "heard")?;
                give(&ctx, "label", "refused")?;
                Ok::<(), BoxError>(())
            }
        };
        let def = plugin(body).named("strict");

        let mount = test.root.plugin(&def, json!({ "greeting": 5 })).unwrap();
        refused(&test, &mount).await;
        test.root.emit(&Ping);

        assert_eq!(test.journal.lines(), Vec::<String>::new());
        assert_eq!(mount.effect_count(), 0);
        assert_eq!(test.root.listener_count("test/ping"), 0);
        assert_eq!(test.root.service_names(), Vec::<String>::new());
    });
}

#[test]
fn k_154_a_refused_config_does_not_wait_for_services() {
    kernel(async |test| {
        let schema = json!({ "type": "object", "properties": { "port": { "type": "integer" } } });
        let def = PluginDef::dynamic("strict", &json!(["nobody"]), Some(schema), |_, _| {
            Box::pin(async { Ok(None) })
        })
        .unwrap();

        let mount = test.root.plugin(&def, json!({ "port": "http" })).unwrap();
        let calling = mount.state();
        let error = refused(&test, &mount).await;

        assert_eq!(calling, State::Pending);
        assert_eq!(paths(&error), ["port"]);
    });
}

#[test]
fn k_154_the_same_plugin_with_good_config_waits() {
    kernel(async |test| {
        let def = define("patient", ["nobody"], async |_| Ok(()));

        let mount = test.mount(&def);
        rest().await;

        assert_eq!(mount.state(), State::Pending);
    });
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "it is never read")]
struct Explosive {
    #[serde(deserialize_with = "explode")]
    fuse: u32,
}

#[expect(clippy::panic, reason = "the panic is what is tested")]
fn explode<'de, D: Deserializer<'de>>(_: D) -> Result<u32, D::Error> {
    panic!("the validator blew up")
}

#[test]
fn k_155_a_validator_that_panics_fails_the_mount() {
    kernel(async |test| {
        let mount = test.root.plugin(&unstartable::<Explosive>(), json!({ "fuse": 1 })).unwrap();

        let error = mount.ready().await.expect_err("the validator panics");

        assert!(error.to_string().contains("strict"), "{error}");
        assert_eq!(mount.state(), State::Failed);
        let report = test.reports.take_one();
        assert!(report.to_string().contains("the validator blew up"), "{report}");
    });
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema matters")]
struct Secrets {
    #[serde(default)]
    key: Option<Secret>,
    #[serde(default)]
    keys: Vec<Secret>,
    #[serde(default)]
    by_host: BTreeMap<String, Secret>,
}

/// Mounts a config and returns all that is said about its refusal.
async fn refusal<C: ConfigType>(test: &Test, config: Value) -> [String; 3] {
    let error = refuse::<C>(test, config).await;
    [error.to_string(), format!("{error:?}"), error.faults[0].to_string()]
}

#[test]
fn k_156_a_refused_secret_is_not_shown() {
    for key in [json!(31_337_999), json!(["sesame-31337999"]), json!({ "is": "sesame-31337999" })] {
        kernel(async |test| {
            let texts = refusal::<Required>(&test, json!({ "model": "m", "key": key })).await;

            for text in texts {
                assert!(text.contains("key") && text.contains("must be a text"), "{text}");
                assert!(!text.contains("31337999"), "{text}");
            }
        });
    }
}

#[test]
fn k_156_a_secret_is_not_shown_wherever_it_stands() {
    for (place, config) in [
        ("key", json!({ "key": 31_337_999 })),
        ("keys", json!({ "keys": "sesame-31337999" })),
        ("keys.1", json!({ "keys": ["fine", 31_337_999] })),
        ("by_host", json!({ "by_host": "sesame-31337999" })),
        ("by_host.here", json!({ "by_host": { "here": [31_337_999] } })),
        ("", json!("sesame-31337999")),
    ] {
        kernel(async |test| {
            let texts = refusal::<Secrets>(&test, config).await;

            assert!(texts.iter().all(|it| it.contains(place)), "{place}: {texts:?}");
            assert!(!texts.iter().any(|it| it.contains("31337999")), "{place}: {texts:?}");
        });
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema matters")]
struct Closed {
    api_key: Option<Secret>,
    #[serde(default)]
    servers: Vec<Server>,
    retries: Option<u8>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema matters")]
struct Server {
    name: String,
    token: Option<Secret>,
}

/// Tagged by nothing: serde tries one after the other.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema matters")]
enum Target {
    Port(u16),
    Pipe { pipe: String, mode: u8 },
    Locked { key: Secret, pin: Option<u8> },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema matters")]
struct Targets {
    targets: Vec<Target>,
}

fn told<C: ConfigType>(config: &Value) -> Vec<String> {
    let refused = unstartable::<C>().check(config).unwrap_err();
    refused.faults.iter().map(ToString::to_string).collect()
}

#[test]
fn where_no_other_keys_are_allowed_each_is_named_and_no_value_beside_a_secret_is_shown() {
    for (config, expected) in [
        (json!({ "apiKei": "31337999" }), &["apiKei: unknown key; did you mean `apiKey`?"][..]),
        (
            json!({ "servers": [{ "name": "a", "tokn": "31337999" }], "sevrers": true }),
            &[
                "sevrers: unknown key; did you mean `servers`?",
                "servers.0.tokn: unknown key; did you mean `token`?",
            ],
        ),
        (
            json!({ "servers": "31337999" }),
            &["servers: must be a list, not a value that is not shown"],
        ),
        (
            json!({ "apiKey": 31_337_999 }),
            &["apiKey: must be a text, not a value that is not shown"],
        ),
        (json!({ "retries": 300 }), &["retries: must be at most 255, not 300"]),
        (json!(["31337999"]), &["must be a map, not a value that is not shown"]),
    ] {
        let mut told = told::<Closed>(&config);
        told.sort_by_key(|it| !it.starts_with("sevrers"));

        assert_eq!(told, expected);
    }
}

#[test]
fn of_several_shapes_the_one_that_was_meant_is_explained() {
    for (target, expected) in [
        (json!({ "mode": 1 }), "targets.0.pipe: is required"),
        (json!({ "pipe": "a", "mode": "b" }), "targets.0.mode: must be a whole number, not \"b\""),
        (json!(-1), "targets.0: must be at least 0, not a value that is not shown"),
        (json!({ "key": "k", "pin": 300 }), "targets.0.pin: must be at most 255, not 300"),
        (json!("80"), "targets.0: must be a whole number or a map, not a value that is not shown"),
    ] {
        assert_eq!(told::<Targets>(&json!({ "targets": [target] })), [expected]);
    }
}

#[test]
fn what_only_a_schema_of_a_script_can_say_is_told_in_plain_words() {
    let schema = json!({ "type": "object", "properties": {
        "host": { "type": "string", "pattern": "^[a-z]+$", "maxLength": 8 },
        "share": { "type": "number", "exclusiveMinimum": 0, "maximum": 1 },
        "steps": { "type": "array", "uniqueItems": true, "maxItems": 2, "items": { "enum": ["a", "b", 3] } },
        "kind": { "const": "only" },
        "size": { "type": "integer", "multipleOf": 8 },
        "mode": { "oneOf": [{ "type": "string" }, { "const": "x" }] },
        "none": { "not": {} },
        "keys": { "type": "object", "propertyNames": { "maxLength": 2 } },
    } });
    let def =
        PluginDef::dynamic("script", &json!([]), Some(schema), |_, _| Box::pin(async { Ok(None) }))
            .unwrap();
    for (config, expected) in [
        (json!({ "host": "UP" }), "host: must have the form `^[a-z]+$`, not \"UP\""),
        (json!({ "host": "abcdefghi" }), "host: must have at most 8 characters, not \"abcdefghi\""),
        (json!({ "share": 0 }), "share: must be more than 0, not 0"),
        (json!({ "share": 2 }), "share: must be at most 1, not 2"),
        (json!({ "steps": ["a", "a"] }), "steps: must have each item once, not [\"a\",\"a\"]"),
        (
            json!({ "steps": ["a", "b", 3] }),
            "steps: must have at most 2 items, not [\"a\",\"b\",3]",
        ),
        (json!({ "steps": ["c"] }), "steps.0: must be one of `a`, `b`, `3`, not \"c\""),
        (json!({ "kind": 1 }), "kind: must be `only`, not 1"),
        (json!({ "size": 9 }), "size: must be a multiple of 8, not 9"),
        (json!({ "mode": "x" }), "mode: must be of one kind and not of several, not \"x\""),
        (json!({ "none": 1 }), "none: must be something else, not 1"),
        (
            json!({ "keys": { "abc": 1 } }),
            "keys: must have other keys: \"abc\" must have at most 2 characters, not {\"abc\":1}",
        ),
    ] {
        let refused = def.check(&config).unwrap_err();
        let told: Vec<_> = refused.faults.iter().map(ToString::to_string).collect();

        assert_eq!(told, [expected]);
    }
}
