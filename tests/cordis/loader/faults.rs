//! A list or a config with a fault: all of it is said, and nothing changes.

use schemars::JsonSchema;
use serde::Deserialize;

use nano_cordis::cordis::loader::{Cause, Fault, LoadError};
use nano_cordis::cordis::{BoxError, Context, Secret, What, plugin};

use super::stage::Stage;
use crate::support::{Test, kernel};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its shape matters")]
struct Config {
    model: String,
    #[serde(default)]
    retries: u32,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    inner: Inner,
    key: Option<Secret>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its shape matters")]
struct Inner {
    #[serde(default)]
    deep: u32,
}

async fn typed(_: Context, _: Config) -> Result<(), BoxError> {
    Ok(())
}

/// A loader that runs `a` and `b`, and what a save of another list is refused with.
async fn refusal(test: &Test, list: impl AsRef<[u8]>) -> LoadError {
    let stage = Stage::with_probes(test, &["a", "b"]);
    stage.module("typed", plugin(typed));
    stage.module("guard", plugin(typed).guard());
    stage.start("[{ id: a, name: a }, { id: b, name: b }]").await.unwrap();
    stage.took_place();

    let refused = stage.save(list).await.expect_err("the list has a fault");

    assert_eq!(stage.took_place(), [""; 0]);
    assert_eq!(stage.children(), ["a ACTIVE", "b ACTIVE"]);
    assert_eq!(stage.told(), [format!("cordis.yml not applied: {}", refused.cause)]);
    refused
}

fn faults(refused: &LoadError) -> Vec<String> {
    match &refused.cause {
        Cause::Faults(faults) => faults.iter().map(Fault::to_string).collect(),
        other => vec![other.to_string()],
    }
}

/// Each list is refused with exactly these faults.
fn refused_with(list: &str, expected: &[&str]) {
    kernel(async |test| {
        let refused = refusal(&test, list).await;

        assert_eq!(faults(&refused), expected);
    });
}

#[test]
fn k_166_an_entry_without_an_id_is_refused_by_its_place_and_name() {
    refused_with(
        "- { id: a, name: a }\n- name: b\n- id: ''\n  name: c\n- config: {}\n",
        &[
            "entry 2 (`b`) (line 2): it has no `id`",
            "entry 3 (`c`) (line 3): it has no `id`",
            "entry 4 (line 5): it has no `id`",
            "entry 4 (line 5): it has no `name`",
        ],
    );
}

#[test]
fn k_167_a_missing_id_on_a_save_leaves_all_as_it_is() {
    refused_with("[{ name: a }]", &["entry 1 (`a`) (line 1): it has no `id`"]);
}

#[test]
fn k_168_an_id_that_is_there_twice_is_refused_with_both_places() {
    refused_with(
        "- id: x\n  name: a\n- id: y\n  name: b\n- id: x\n  name: b\n",
        &["entry `x` (line 5): id: entry 1 has this id already (line 1)"],
    );
}

#[test]
fn k_172_invalid_yaml_changes_nothing_and_the_next_good_save_applies() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a", "b"]);
        stage.start("[{ id: a, name: a }]").await.unwrap();

        let refused = stage.save("- id: a\n  name: [").await.unwrap_err();
        let (between, told) = (stage.children(), stage.told());
        stage.save("[{ id: b, name: b }]").await.unwrap();

        let cause = refused.cause.to_string();
        assert!(cause.starts_with("it is not valid YAML at line 3: "), "{cause}");
        assert_eq!(between, ["a ACTIVE"]);
        assert_eq!(told.len(), 1);
        assert_eq!(stage.children(), ["b ACTIVE"]);
    });
}

#[test]
fn k_173_empty_blank_and_other_documents_are_refused() {
    let empty = "it is empty; a list without entries is written `[]`";
    let cases = [
        ("", empty),
        (" \n\n", empty),
        ("# nothing but a comment\n", empty),
        ("---\n", empty),
        ("id: a\nname: a\n", "it must be a list of entries, this is a mapping"),
        ("entries", "it must be a list of entries, this is text"),
    ];
    for (list, expected) in cases {
        kernel(async |test| {
            let refused = refusal(&test, list).await;

            assert_eq!(refused.cause.to_string(), expected, "{list:?}");
        });
    }
}

#[test]
fn k_182_an_unknown_key_is_refused_with_the_nearest_one_and_x_is_free() {
    refused_with(
        "- id: a\n  name: a\n  confg: {}\n  disable: true\n  x-note: anything\n",
        &[
            "entry `a` (line 3): confg: no such key (did you mean `config`?); an entry has id, name, config, disabled, optional",
            "entry `a` (line 4): disable: no such key (did you mean `disabled`?); an entry has id, name, config, disabled, optional",
        ],
    );
}

#[test]
fn k_183_at_the_start_every_fault_is_returned_and_nothing_was_mounted() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a"]);
        stage.module("typed", plugin(typed));
        let list = "- { id: a, name: a }\n- id: llm\n  name: typed\n  config:\n    model: 3\n    retries: many\n";

        let refused = stage.start(list).await.map(drop).unwrap_err();

        let expected = "cordis.yml: entry `llm` (line 5): config.model: must be a text, not 3; put it in quotes; \
                        entry `llm` (line 6): config.retries: must be a whole number, not \"many\"";
        assert_eq!(refused, expected);
        assert_eq!(stage.took_place(), [""; 0]);
        assert_eq!(test.reports.take_one().what, What::BodyFailed);
    });
}

#[test]
fn every_fault_of_every_config_is_named_with_its_path() {
    refused_with(
        "- id: one\n  name: typed\n  config:\n    inner: { deep: x }\n    tools: [ok, 2]\n- { id: two, name: typed }\n",
        &[
            "entry `one` (line 3): config.model: is required",
            "entry `one` (line 4): config.inner.deep: must be a whole number, not \"x\"",
            "entry `one` (line 5): config.tools.1: must be a text, not 2; put it in quotes",
            "entry `two` (line 6): config.model: is required",
        ],
    );
}

#[test]
fn a_key_that_is_there_twice_is_refused_with_both_lines() {
    refused_with(
        "- id: a\n  name: a\n  config: { x: 1 }\n  config: { x: 2 }\n- id: b\n  name: b\n  config:\n    url: p\n    url: q\n",
        &[
            "entry `a` (line 3): config: this key is there twice (lines 3 and 4)",
            "entry `b` (line 8): config.url: this key is there twice (lines 8 and 9)",
        ],
    );
}

#[test]
fn a_merge_key_is_refused_by_name() {
    refused_with(
        "- id: a\n  name: a\n  x-base: &base { model: m }\n  config:\n    <<: *base\n    url: u\n",
        &["entry `a` (line 5): config.<<: merge keys are not read; write out what it stands for"],
    );
}

#[test]
fn yes_and_no_are_text_and_text_is_not_true_or_false() {
    refused_with(
        "- { id: a, name: a, disabled: yes }\n- { id: b, name: b, optional: 1 }\n- { id: 3, name: no }\n",
        &[
            "entry `a` (line 1): disabled: must be true or false, this is text (\"yes\")",
            "entry `b` (line 2): optional: must be true or false, this is a number (1)",
            "entry 3 (`no`) (line 3): id: must be text, this is a number; put it in quotes",
        ],
    );
}

#[test]
fn an_entry_that_is_no_mapping_is_refused() {
    refused_with(
        "- a\n- { id: b, name: b }\n",
        &["entry 1 (line 1): an entry is a mapping with `id` and `name`, this is text"],
    );
}

#[test]
fn a_guard_cannot_be_optional() {
    refused_with(
        "- id: approval\n  name: guard\n  config: { model: m }\n  optional: true\n",
        &[
            "entry `approval` (line 4): optional: a guard cannot be optional: without it nothing would be guarded",
        ],
    );
}

#[test]
fn a_guard_refuses_a_key_that_it_does_not_know() {
    refused_with(
        "- id: approval\n  name: guard\n  config: { model: m, tolls: [bash] }\n",
        &["entry `approval` (line 3): config.tolls: unknown key; did you mean `tools`?"],
    );
}

#[test]
fn the_value_of_a_secret_is_not_shown() {
    refused_with(
        "- id: a\n  name: typed\n  config: { model: m, key: 12345 }\n",
        &["entry `a` (line 3): config.key: must be a text, not a value that is not shown"],
    );
}

#[test]
fn numbers_and_tags_that_no_config_can_hold_are_named_by_path_and_line_and_not_repeated() {
    refused_with(
        "- id: a\n  name: typed\n  config:\n    model: m\n    retries: 99999999999999999999\n    key: -99999999999999999999\n\
         - id: b\n  name: typed\n  config:\n    model: !env KEY\n    retries: .inf\n    tools: [!!binary aGk=, 1e999]\n",
        &[
            "entry `a` (line 5): config.retries: this number is too large to be read; put it in quotes if it is text",
            "entry `a` (line 6): config.key: this number is too large to be read; put it in quotes if it is text",
            "entry `b` (line 10): config.model: tags are not read, here `!env`; put it in quotes if it is text",
            "entry `b` (line 11): config.retries: this is no number that can be counted with; put it in quotes if it is text",
        ],
    );
}

#[test]
fn a_tab_is_called_a_tab() {
    kernel(async |test| {
        let refused = refusal(&test, "- id: a\n\tname: a\n").await;

        let text = refused.cause.to_string();
        assert!(
            text.contains("line 2") && text.contains("(a tab: YAML is indented with blanks)"),
            "{text}"
        );
    });
}

#[test]
fn a_placeholder_without_quotes_in_braces_gets_a_hint() {
    kernel(async |test| {
        let refused = refusal(&test, "- { id: a, name: a, config: { x: ${HOME} } }\n").await;

        let text = refused.cause.to_string();
        assert!(text.ends_with("(inside `{ }` and `[ ]` a placeholder needs quotes)"), "{text}");
    });
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    kernel(async |test| {
        let refused = refusal(&test, b"- { id: a, name: \xff }").await;

        assert_eq!(refused.to_string(), "cordis.yml: it is not UTF-8 text");
    });
}

#[test]
fn aliases_of_aliases_do_not_blow_up() {
    kernel(async |test| {
        let level = |it: usize| {
            let inner = [format!("*a{}", it - 1).as_str(); 9].join(",");
            format!("  x-{it}: &a{it} [{inner}]\n")
        };
        let first = "- id: a\n  name: a\n  x-0: &a0 [1,1,1,1,1,1,1,1,1]\n".to_owned();

        let refused =
            refusal(&test, first + &(1..10).map(level).collect::<Vec<_>>().concat()).await;

        assert_eq!(refused.cause.to_string(), "it is not valid YAML: repetition limit exceeded");
    });
}

#[test]
fn a_file_that_cannot_be_read_is_refused() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a"]);
        let loader = stage.start("[{ id: a, name: a }]").await.unwrap();
        std::fs::remove_file(stage.file("cordis.yml")).unwrap();

        loader.reload();
        let refused = loader.applied().await.unwrap_err();

        assert!(refused.to_string().starts_with("cordis.yml: it cannot be read: "), "{refused}");
        assert_eq!(stage.children(), ["a ACTIVE"]);
    });
}

#[test]
fn the_byte_order_mark_of_some_editors_is_no_fault() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a"]);

        stage.start("\u{feff}- { id: a, name: a }\r\n").await.unwrap();

        assert_eq!(stage.children(), ["a ACTIVE"]);
    });
}
