//! The list as text of anybody: whatever the bytes are, they are applied or refused, soon; and what was written is read.

use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;
use serde_json::{Map, Value, json};

use nano_cordis::cordis::loader::Standing;

use super::check;
use crate::loader::stage::Stage;
use crate::support::kernel;

const CASES: u32 = 300;
/// Far more than any of this takes, and far less than a minute.
const SOON: Duration = Duration::from_secs(20);

/// What YAML is made of.
const TOKENS: &[&str] = &[
    "- ",
    "-",
    "id: a",
    "name: a",
    "config: ",
    "disabled: ",
    "optional: ",
    "x-y: ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    ": ",
    "? ",
    "\n",
    "  ",
    "\t",
    "\r\n",
    "&a ",
    "*a",
    "<<: ",
    "!t ",
    "!!binary ",
    "!<x> ",
    "---\n",
    "...\n",
    "|\n",
    ">-\n",
    "\"",
    "'",
    "\\u0000",
    "${A}",
    "${",
    "$${",
    "#",
    "%YAML 1.1\n",
    "0x1f",
    "1e999",
    "~",
    "yes",
    ".nan",
    "99999999999999999999",
    "\u{feff}",
    "\u{2028}",
    "é",
    "\0",
];

fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let soup = vec(proptest::sample::select(TOKENS), 0..40).prop_map(|it| it.concat().into_bytes());
    let good =
        b"- id: a\n  name: a\n  config: { text: \"hello\", list: [1, 2] }\n- { id: b, name: b }\n"
            .to_vec();
    let length = good.len();
    let damaged = vec((0..length, any::<u8>()), 1..4).prop_map(move |changes| {
        let mut bytes = good.clone();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        bytes
    });
    prop_oneof![soup, damaged, vec(any::<u8>(), 0..60)]
}

/// Saves a list over a good one: it is applied, or refused and then nothing has changed. A good one is applied again.
fn survives(list: &[u8]) {
    let begun = Instant::now();
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a", "b"]);
        stage.start("- { id: good, name: b }").await.unwrap();

        let saved = stage.save(list).await;
        let children = stage.children();
        stage.save("- { id: better, name: b }").await.unwrap();

        if let Err(refused) = saved {
            assert_eq!(children, ["good ACTIVE"]);
            assert!(!refused.to_string().contains('\n'), "{refused}");
        }
        assert_eq!(stage.children(), ["better ACTIVE"]);
    });
    assert!(begun.elapsed() < SOON, "{:?} for {} bytes", begun.elapsed(), list.len());
}

#[test]
fn no_bytes_make_the_loader_fail_or_hang() {
    check(CASES, &hostile(), |list| survives(&list));
}

#[test]
fn nothing_that_is_repeated_makes_it_slow() {
    let repeated = [
        "[",
        "{",
        "- ",
        "? ",
        "&a ",
        "!t ",
        "[*a",
        "- - ",
        "a: ",
        "'",
        "\"",
        "\\",
        "| ",
        "#",
        "- {id: a, name: a}\n",
        "- {id: 1}\n",
        "- &a [*a]\n",
        "- {",
        "[{",
        "{a: ",
        "? [",
        "%TAG ! x\n",
        "---\n",
        "\n",
        "\t",
        "  - \n",
        "{? ",
        "*a ",
        "x,",
        "[,",
    ];
    for token in repeated {
        survives(token.repeat(20_000 / token.len()).as_bytes());
    }
}

#[test]
fn deep_nesting_is_no_overflow() {
    for (open, close) in [("[", "]"), ("{a: ", "}")] {
        let depth = 10_000;
        let value = open.repeat(depth) + &close.repeat(depth);
        survives(format!("- {{ id: a, name: a, config: {value} }}").as_bytes());
    }
}

#[test]
fn the_largest_list_with_many_faults_is_refused_in_time() {
    let entry = "- { id: a, name: a, config: { text: some text that fills the line }, confg: 1 }\n";
    survives(entry.repeat(700_000 / entry.len()).as_bytes());
}

/// An entry as a user could write it.
#[derive(Debug, Clone)]
struct Written {
    name: &'static str,
    config: Option<Value>,
    disabled: Option<bool>,
}

fn value() -> impl Strategy<Value = Value> {
    // A `$` could begin a placeholder; and some characters no YAML may hold, except escaped.
    let text =
        || proptest::string::string_regex("[^$\u{7f}-\u{9f}\u{fffe}\u{ffff}]{0,12}").unwrap();
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |it| it.is_finite()).prop_map(Value::from),
        text().prop_map(Value::from),
        proptest::sample::select(
            &["no", "1.10", "~", "null", "0x1f", "1e3", "- a", "#", "<<", "true", "2001-01-01", ""]
                [..]
        )
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let key = text().prop_filter("no merge key", |it| it != "<<");
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((key, inner), 0..4).prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

fn written() -> impl Strategy<Value = Vec<Written>> {
    let config = vec((proptest::string::string_regex("[a-zA-Z]{1,6}").unwrap(), value()), 0..4);
    let config = config.prop_map(|it| Value::Object(it.into_iter().collect::<Map<_, _>>()));
    let name = prop_oneof![Just("it"), Just("other")];
    let entry = (name, proptest::option::of(config), proptest::option::of(any::<bool>()));
    let entry = entry.prop_map(|(name, config, disabled)| Written { name, config, disabled });
    vec(entry, 0..5)
}

#[test]
fn what_is_written_is_read_in_yaml_and_in_json() {
    check(CASES, &(written(), any::<bool>()), |(written, is_json)| {
        let entries: Vec<Value> = (0..)
            .zip(&written)
            .map(|(number, it)| {
                let mut entry = json!({ "id": format!("entry {number}"), "name": it.name });
                it.config.iter().for_each(|config| entry["config"] = config.clone());
                it.disabled.iter().for_each(|flag| entry["disabled"] = json!(flag));
                entry
            })
            .collect();
        let text = if is_json {
            json!(entries).to_string()
        } else {
            serde_yaml::to_string(&entries).unwrap()
        };
        kernel(async |test| {
            let stage = Stage::new(&test);
            stage.echo("it");
            stage.echo("other");

            let loader = stage.start(&text).await.unwrap_or_else(|err| panic!("{err} in {text}"));

            let read = loader.entries();
            let started = |it: &Written| !it.disabled.unwrap_or_default();
            assert_eq!(read.len(), written.len());
            for (number, (read, written)) in read.iter().zip(&written).enumerate() {
                let is_disabled = read.standing == Standing::Disabled;
                assert_eq!((&*read.id, &*read.name), (&*format!("entry {number}"), written.name));
                assert_eq!(is_disabled, !started(written));
            }
            let expected: Vec<_> = written
                .iter()
                .filter(|it| started(it))
                .map(|it| format!("{} start {}", it.name, it.config.clone().unwrap_or_default()))
                .collect();
            assert_eq!(stage.took_place(), expected, "{text}");
        });
    });
}
