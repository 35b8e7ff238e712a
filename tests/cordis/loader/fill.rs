//! What is not written in the file: variables of the environment and `--set`.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use nano_cordis::cordis::{BoxError, Context, PluginDef, Secret, plugin};

use super::stage::Stage;
use crate::support::{Journal, Test, kernel};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    text: Option<String>,
    whole: Option<u16>,
    ratio: Option<f64>,
    flag: Option<bool>,
    #[serde(default)]
    list: Vec<String>,
    #[serde(skip_serializing)]
    key: Option<Secret>,
    #[serde(skip_serializing)]
    #[expect(dead_code, reason = "it cannot be made")]
    picky: Option<Picky>,
}

/// A text by its schema, and none by its type.
#[derive(JsonSchema)]
struct Picky(#[expect(dead_code, reason = "it cannot be made")] String);

impl<'de> Deserialize<'de> for Picky {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Err(D::Error::custom(format!("{text} is not good enough")))
    }
}

/// Writes its config into the journal.
fn shows(journal: &Journal) -> PluginDef {
    let journal = journal.clone();
    plugin(move |_: Context, config: Config| {
        let key = config.key.as_ref().map(|it| it.expose().len());
        journal.push(format!("{} {key:?}", json!(config)));
        async { Ok::<(), BoxError>(()) }
    })
}

fn stage(test: &Test) -> Stage {
    let stage = Stage::new(test);
    stage.module("it", shows(&test.journal));
    stage
}

/// Starts one entry with this config and says what the plugin got.
async fn filled(stage: &Stage, config: &str) -> Result<Value, String> {
    stage.start(format!("- id: it\n  name: it\n  config: {config}\n")).await?;
    let line = stage.took_place().concat();
    Ok(serde_json::from_str(line.rsplit_once(' ').unwrap().0).unwrap())
}

#[test]
fn a_placeholder_is_replaced_anywhere_in_a_config_and_only_there() {
    kernel(async |test| {
        let stage = stage(&test);
        stage.variable("NAME", "world");

        let config =
            filled(&stage, "{ text: 'hello ${NAME}!', list: ['${NAME}', 'a ${NAME} b ${NAME}'] }");

        let config = config.await.unwrap();
        assert_eq!(config["text"], "hello world!");
        assert_eq!(config["list"], json!(["world", "a world b world"]));
        assert_eq!(stage.entry("it").name, "it");
    });
}

#[test]
fn a_default_stands_in_for_a_variable_that_is_not_set_or_empty() {
    kernel(async |test| {
        let stage = stage(&test);
        stage.variable("EMPTY", "");

        let config =
            filled(&stage, "{ list: ['${NONE:-a b}', '${EMPTY:-c}', '${NONE:-}', '${EMPTY}'] }");

        assert_eq!(config.await.unwrap()["list"], json!(["a b", "c", "", ""]));
    });
}

#[test]
fn a_doubled_dollar_is_a_literal_and_a_bare_one_means_nothing() {
    kernel(async |test| {
        let stage = stage(&test);
        stage.variable("NAME", "world");

        let config =
            filled(&stage, "{ list: ['$${NAME}', '$NAME', '$$${NAME}', 'a $${b} ${NAME}'] }");

        assert_eq!(
            config.await.unwrap()["list"],
            json!(["${NAME}", "$NAME", "$${NAME}", "a ${b} world"])
        );
    });
}

#[test]
fn what_was_put_in_is_not_read_again() {
    kernel(async |test| {
        let stage = stage(&test);
        stage.variable("OUTER", "${INNER} *x [1, 2]");
        stage.variable("INNER", "never");

        let config = filled(&stage, "{ text: '${OUTER}' }");

        assert_eq!(config.await.unwrap()["text"], "${INNER} *x [1, 2]");
    });
}

#[test]
fn a_scalar_that_is_one_placeholder_takes_the_type_of_its_field() {
    kernel(async |test| {
        let stage = stage(&test);
        for (name, value) in [("N", "80"), ("R", "0.5"), ("B", "true")] {
            stage.variable(name, value);
        }

        let config = filled(&stage, "{ whole: '${N}', ratio: '${R}', flag: '${B}', text: '${N}' }");

        let expected = json!({ "whole": 80, "ratio": 0.5, "flag": true, "text": "80", "list": [] });
        assert_eq!(config.await.unwrap(), expected);
    });
}

/// A start with this config fails with exactly this fault.
fn refused_with(config: &str, expected: &str) {
    kernel(async |test| {
        let stage = stage(&test);
        stage.variable("WORD", "hidden-value");
        stage.variable("BIG", "70001");
        stage.variable("MY_API_KEY", "hidden-value");

        let refused = filled(&stage, config).await.unwrap_err();

        test.reports.take_one();
        assert_eq!(refused, format!("cordis.yml: entry `it` (line 3): {expected}"));
        assert!(!refused.contains("hidden-value"), "{refused}");
    });
}

#[test]
fn a_variable_that_is_not_set_is_named_with_its_field() {
    refused_with(
        "{ list: [ok, '${NONE}'] }",
        "config.list.1: the environment variable `NONE` is not set",
    );
}

#[test]
fn a_value_of_the_wrong_type_is_not_shown() {
    refused_with(
        "{ whole: '${WORD}' }",
        "config.whole: must be a whole number, and what `WORD` holds is not",
    );
}

#[test]
fn a_value_that_the_schema_refuses_is_not_shown() {
    refused_with(
        "{ whole: '${BIG}' }",
        "config.whole: must be at most 65535, and `${BIG}` stands for something else",
    );
}

#[test]
fn a_value_that_only_the_type_itself_refuses_is_not_shown() {
    refused_with("{ picky: '${WORD}' }", "config.picky: what `${WORD}` stands for does not fit");
}

#[test]
fn part_of_a_text_is_no_number() {
    refused_with(
        "{ whole: '1${WORD}' }",
        "config.whole: must be a whole number, and `1${WORD}` stands for something else",
    );
}

#[test]
fn a_placeholder_cannot_stand_for_a_list() {
    refused_with(
        "{ list: '${WORD}' }",
        "config.list: a variable can stand for text, a number or a boolean only",
    );
}

#[test]
fn a_placeholder_that_is_not_closed_is_refused() {
    refused_with(
        "{ text: 'a ${WORD' }",
        "config.text: `${` is not closed; a literal one is written `$${`",
    );
}

#[test]
fn a_placeholder_without_a_proper_name_is_refused() {
    refused_with(
        "{ text: '${a b}' }",
        "config.text: `${a b}` names no variable; a literal `${` is written `$${`",
    );
}

#[test]
fn a_default_with_a_placeholder_is_refused() {
    refused_with(
        "{ text: '${A:-${WORD}}' }",
        "config.text: the default of `A` holds another placeholder, which is not read",
    );
}

#[test]
fn a_variable_that_may_be_a_secret_stands_in_secret_fields_only() {
    refused_with(
        "{ text: '${MY_API_KEY}' }",
        "config.text: `MY_API_KEY` may be a secret (KEY), and this field is not kept secret",
    );
}

#[test]
fn a_secret_field_takes_a_secret() {
    kernel(async |test| {
        let stage = stage(&test);
        stage.variable("MY_API_KEY", "sesame");

        stage.start("- { id: it, name: it, config: { key: '${MY_API_KEY}' } }").await.unwrap();

        assert_eq!(
            stage.took_place(),
            [r#"{"text":null,"whole":null,"ratio":null,"flag":null,"list":[]} Some(6)"#]
        );
    });
}

#[test]
fn a_variable_that_has_changed_remounts_at_the_next_change_of_the_file() {
    kernel(async |test| {
        let stage = stage(&test);
        stage.variable("NAME", "one");
        filled(&stage, "{ text: '${NAME}' }").await.unwrap();

        stage.variable("NAME", "two");
        stage
            .save("# comment\n- id: it\n  name: it\n  config: { text: '${NAME}' }\n")
            .await
            .unwrap();

        assert!(stage.took_place().concat().contains("two"));
    });
}

#[test]
fn set_wins_over_the_file_is_read_by_the_schema_and_holds_at_every_save() {
    kernel(async |test| {
        let mut stage = stage(&test);
        let set = [("text", "1.10"), ("whole", "8080"), ("flag", "true"), ("list", "[a, b]")];
        stage.set = set.map(|(key, value)| ("it".into(), key.into(), value.into())).to_vec();

        let config = filled(&stage, "{ text: x, whole: 1 }").await.unwrap();
        stage.save("- id: it\n  name: it\n  config: { text: y, ratio: 0.5 }\n").await.unwrap();

        let mut expected = json!({ "text": "1.10", "whole": 8080, "ratio": null, "flag": true, "list": ["a", "b"] });
        assert_eq!(config, expected);
        expected["ratio"] = json!(0.5);
        assert_eq!(stage.took_place(), [format!("{expected} None")]);
        let still =
            "set for this run, whatever cordis.yml says: it.text, it.whole, it.flag, it.list";
        assert_eq!(stage.told(), ["applied cordis.yml", still]);
    });
}

#[test]
fn set_does_not_read_placeholders() {
    kernel(async |test| {
        let mut stage = stage(&test);
        stage.set = vec![("it".into(), "text".into(), "${NONE}".into())];

        let config = filled(&stage, "{}").await.unwrap();

        assert_eq!(config["text"], "${NONE}");
    });
}

#[test]
fn set_and_disable_must_name_an_entry_and_a_value_that_fits() {
    kernel(async |test| {
        let mut stage = stage(&test);
        stage.set = vec![
            ("itt".into(), "text".into(), "x".into()),
            ("it".into(), "whole".into(), "many".into()),
        ];
        stage.disable = vec!["other".into()];

        let refused = filled(&stage, "{ whole: 1 }").await.unwrap_err();

        test.reports.take_one();
        let expected = "cordis.yml: --set itt.text: no entry has the id `itt` (did you mean `it`?); \
                        --disable other: no entry has the id `other`; \
                        --set it.whole: must be a whole number, not \"many\"";
        assert_eq!(refused, expected);
    });
}

#[test]
fn disable_wins_over_the_file_at_every_save() {
    kernel(async |test| {
        let mut stage = stage(&test);
        stage.disable = vec!["it".into()];
        stage.start("- { id: it, name: nobody }").await.unwrap();

        stage.save("- { id: it, name: it, disabled: false }").await.unwrap();

        assert!(stage.children().is_empty());
        assert_eq!(stage.loader().problem(), None);
        let still = "left out of this run, whatever cordis.yml says: it";
        assert_eq!(stage.told(), ["applied cordis.yml", still]);
    });
}
