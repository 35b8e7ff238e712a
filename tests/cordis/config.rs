//! Schemas, defaults, and errors with paths.

mod refusals;

use std::cell::RefCell;
use std::rc::Rc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use nano_cordis::cordis::{
    BoxError, ConfigType, Context, Error, LocalBoxFuture, PluginDef, Report, Secret, State, What,
    plugin,
};

use crate::support::kernel;

/// Every kind of field that the rows speak of.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    /// Text with a default.
    #[serde(default = "greeting")]
    greeting: String,
    /// A number with a default.
    #[serde(default = "max_steps")]
    max_steps: u32,
    /// A list with a default.
    #[serde(default = "tools")]
    tools: Vec<String>,
    /// A field that may be absent.
    #[serde(default)]
    note: Option<String>,
    /// A map with a default of its own.
    #[serde(default)]
    inner: Inner,
}

#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
struct Inner {
    #[serde(default = "max_steps")]
    deep: u32,
}

impl Default for Inner {
    fn default() -> Inner {
        Inner { deep: max_steps() }
    }
}

fn greeting() -> String {
    "hello".to_owned()
}

fn max_steps() -> u32 {
    25
}

fn tools() -> Vec<String> {
    vec!["bash".to_owned()]
}

fn defaults() -> Config {
    Config {
        greeting: greeting(),
        max_steps: max_steps(),
        tools: tools(),
        note: None,
        inner: Inner::default(),
    }
}

type Received<C> = Rc<RefCell<Vec<C>>>;

/// A plugin that keeps the config of each of its starts.
fn keeper<C: ConfigType>(received: &Received<C>) -> PluginDef {
    let received = received.clone();
    let body = move |_: Context, config: C| {
        received.borrow_mut().push(config);
        async { Ok::<(), BoxError>(()) }
    };
    plugin(body).named("keeper")
}

#[test]
fn k_143_without_config_the_body_gets_every_default() {
    kernel(async |test| {
        let received = Received::<Config>::default();

        test.mount(&keeper(&received)).ready().await.unwrap();

        assert_eq!(received.take(), [defaults()]);
    });
}

#[test]
fn k_143_a_dynamic_plugin_gets_the_defaults_of_its_schema() {
    kernel(async |test| {
        let received = Received::<Value>::default();
        let keep = received.clone();
        let schema = json!({
            "type": "object",
            "properties": { "port": { "type": "integer", "default": 80 }, "host": { "type": "string" } },
        });
        let body = move |_, config| -> LocalBoxFuture<'static, _> {
            keep.borrow_mut().push(config);
            Box::pin(async { Ok(None) })
        };
        let def = PluginDef::dynamic("keeper", &json!([]), Some(schema), body).unwrap();

        test.mount(&def).ready().await.unwrap();
        let given = json!({ "port": null, "host": "localhost" });
        test.root.plugin(&def, given).unwrap().ready().await.unwrap();

        let full = json!({ "host": "localhost", "port": 80 });
        assert_eq!(received.take(), [json!({ "port": 80 }), full]);
    });
}

#[test]
fn k_144_given_fields_are_kept_and_missing_ones_take_their_defaults() {
    kernel(async |test| {
        let received = Received::<Config>::default();
        let config = json!({ "maxSteps": 3, "note": "short" });

        test.root.plugin(&keeper(&received), config).unwrap().ready().await.unwrap();

        let note = Some("short".to_owned());
        assert_eq!(received.take(), [Config { max_steps: 3, note, ..defaults() }]);
    });
}

#[test]
fn k_148_without_a_validator_the_body_gets_the_raw_value() {
    for raw in [json!({ "any": [1, null, { "thing": null }] }), json!("text"), json!(7)] {
        kernel(async |test| {
            let received = Received::<Value>::default();

            test.root.plugin(&keeper(&received), raw.clone()).unwrap().ready().await.unwrap();

            assert_eq!(received.take(), [raw]);
        });
    }
}

#[test]
fn k_149_null_counts_as_absent_at_any_depth() {
    kernel(async |test| {
        let received = Received::<Config>::default();
        let config =
            json!({ "greeting": null, "note": null, "tools": null, "inner": { "deep": null } });

        test.root.plugin(&keeper(&received), config).unwrap().ready().await.unwrap();

        assert_eq!(received.take(), [defaults()]);
    });
}

#[test]
fn k_150_an_unknown_key_is_one_warning_with_its_path_and_the_nearest_key() {
    kernel(async |test| {
        let received = Received::<Config>::default();
        let config = json!({ "maxStep": 3, "inner": { "depp": 1 } });

        let mount = test.root.plugin(&keeper(&received), config).unwrap();
        let state = mount.ready().await.unwrap();

        assert_eq!(state, State::Active);
        assert_eq!(received.take(), [defaults()]);
        let warnings: Vec<_> = test.reports.take().iter().map(unknown_key).collect();
        let expected = [("maxStep", "maxSteps"), ("inner.depp", "deep")];
        assert_eq!(warnings.len(), 2);
        for (path, near) in expected {
            let found = warnings.iter().find(|it| it.0 == path).expect("a warning for the path");
            assert!(found.1.as_deref().is_some_and(|it| it.ends_with(near)), "{found:?}");
        }
    });
}

/// The path of an unknown key and the nearest known one.
fn unknown_key(report: &Report) -> (String, Option<String>) {
    assert_eq!(report.plugin, "keeper");
    match &report.what {
        What::UnknownKey { path, near } => {
            assert!(report.to_string().contains(path.as_str()), "{report}");
            (path.clone(), near.clone())
        }
        other => unreachable!("{other:?} is no warning"),
    }
}

#[test]
fn k_150_a_guard_refuses_an_unknown_key() {
    kernel(async |test| {
        let received = Received::<Config>::default();
        let guard = keeper(&received).guard();

        let mount = test.root.plugin(&guard, json!({ "maxStep": 3 })).unwrap();
        let refused = mount.ready().await;

        assert!(matches!(&refused, Err(Error::Config(_))), "{refused:?}");
        assert!(refused.unwrap_err().to_string().contains("maxStep"));
        assert_eq!(mount.state(), State::Failed);
        assert!(received.take().is_empty());
        assert!(matches!(test.reports.take_one().what, What::ConfigRefused));
    });
}

#[test]
fn k_152_a_default_is_not_shared_between_mounts() {
    kernel(async |test| {
        let received = Received::<Config>::default();
        let keep = received.clone();
        let body = move |_: Context, mut config: Config| {
            config.tools.push("mine".to_owned());
            keep.borrow_mut().push(config);
            async { Ok::<(), BoxError>(()) }
        };
        let def = plugin(body).named("greedy");

        test.mount(&def).ready().await.unwrap();
        test.mount(&def).ready().await.unwrap();

        let lists: Vec<_> = received.take().into_iter().map(|it| it.tools).collect();
        assert_eq!(lists, [["bash", "mine"], ["bash", "mine"]]);
    });
}

#[test]
fn a_secret_is_read_and_never_shown() {
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Keyed {
        key: Secret,
    }
    kernel(async |test| {
        let received = Received::<Keyed>::default();
        let def = keeper(&received);

        test.root.plugin(&def, json!({ "key": "hunter2" })).unwrap().ready().await.unwrap();

        let [keyed] = &received.take()[..] else { panic!("one start") };
        assert_eq!(keyed.key.expose(), "hunter2");
        assert!(!format!("{keyed:?}").contains("hunter2"));
    });
}
