//! The loader: what runs is what the file says, and a save changes no more than it must.

mod faults;
mod fill;
mod modules;
mod problems;
mod saves;
pub(crate) mod stage;

use nano_cordis::cordis::State;
use nano_cordis::cordis::loader::Standing;

use crate::support::{define, kernel};
use stage::Stage;

const THREE: &str = "[{ id: a, name: a }, { id: b, name: b }, { id: c, name: c }]";

#[test]
fn k_157_each_entry_becomes_a_child_of_the_loader() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a", "b", "c"]);

        stage.start("[{ id: c, name: c }, { id: a, name: a }, { id: b, name: b }]").await.unwrap();

        assert_eq!(stage.children(), ["c ACTIVE", "a ACTIVE", "b ACTIVE"]);
    });
}

#[test]
fn k_158_a_removed_entry_unloads_alone() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a", "b", "c"]);
        stage.start(THREE).await.unwrap();
        stage.took_place();

        let applied = stage.save("[{ id: a, name: a }, { id: c, name: c }]").await.unwrap();

        assert_eq!(stage.took_place(), ["b stop"]);
        assert_eq!(applied.changed, ["b"]);
        assert_eq!(stage.told(), ["applied cordis.yml"]);
    });
}

#[test]
fn k_159_a_changed_config_remounts_its_entry_alone() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["b"]);
        stage.echo("a");
        stage.start("[{ id: a, name: a, config: { say: 1 } }, { id: b, name: b }]").await.unwrap();
        stage.took_place();

        stage.save("[{ id: a, name: a, config: { say: 2 } }, { id: b, name: b }]").await.unwrap();

        assert_eq!(stage.took_place(), [r#"a stop {"say":1}"#, r#"a start {"say":2}"#]);
    });
}

#[test]
fn k_160_an_added_entry_is_mounted_alone() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a", "b", "c"]);
        stage.start("[{ id: a, name: a }, { id: c, name: c }]").await.unwrap();
        stage.took_place();

        let applied = stage.save(THREE).await.unwrap();

        assert_eq!(stage.took_place(), ["b start"]);
        assert_eq!(applied.changed, ["b"]);
    });
}

#[test]
fn k_161_reading_the_same_file_again_changes_nothing_and_says_nothing() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a", "b", "c"]);
        stage.start(THREE).await.unwrap();
        let loads = stage.loads();
        stage.took_place();

        let applied = stage.save(THREE).await.unwrap();

        assert_eq!(stage.took_place(), [""; 0]);
        assert_eq!(stage.loads(), loads);
        assert!(applied.changed.is_empty());
        assert_eq!(stage.told(), [""; 0]);
    });
}

#[test]
fn k_162_order_comments_and_key_order_are_no_change() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["b"]);
        stage.echo("a");
        let before =
            "- { id: a, name: a, config: { x: 1, y: { p: 1, q: 2 } } }\n- { id: b, name: b }\n";
        let after = "# changed\n- name: b\n  id: b\n\n- config: { y: { q: 2, p: 1 }, x: 1 }\n  id: a\n  name: a\n";
        stage.start(before).await.unwrap();
        stage.took_place();

        stage.save(after).await.unwrap();

        assert_eq!(stage.took_place(), [""; 0]);
        assert_eq!(stage.told(), ["applied cordis.yml (no entry changed)"]);
    });
}

#[test]
fn k_163_disabling_an_entry_unmounts_it_and_enabling_it_mounts_it() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a"]);
        stage.start("[{ id: a, name: a }]").await.unwrap();

        stage.save("[{ id: a, name: a, disabled: true }]").await.unwrap();
        let between = stage.entry("a").standing;
        stage.save("[{ id: a, name: a }]").await.unwrap();

        assert_eq!(stage.took_place(), ["a start", "a stop", "a start"]);
        assert_eq!(between, Standing::Disabled);
    });
}

#[test]
fn k_164_a_disabled_entry_is_not_even_looked_up() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a"]);

        stage.start("[{ id: a, name: a }, { id: b, name: nobody, disabled: true }]").await.unwrap();

        assert_eq!(stage.loader().problem(), None);
        assert_eq!(stage.told(), [""; 0]);
        assert_eq!(stage.loads(), 1);
    });
}

#[test]
fn k_165_another_name_under_the_same_id_is_another_plugin() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a", "b"]);
        stage.start("[{ id: it, name: a }]").await.unwrap();

        stage.save("[{ id: it, name: b }]").await.unwrap();

        assert_eq!(stage.took_place(), ["a start", "a stop", "b start"]);
    });
}

#[test]
fn k_174_an_explicit_empty_list_unmounts_everything() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a", "b", "c"]);
        stage.start(THREE).await.unwrap();

        stage.save("[]\n").await.unwrap();

        assert!(stage.children().is_empty());
        assert!(stage.loader().entries().is_empty());
    });
}

#[test]
fn k_180_the_entries_go_with_the_loader() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a", "b", "c"]);
        stage.start(THREE).await.unwrap();
        stage.took_place();

        stage.mount().dispose().await;

        assert_eq!(stage.took_place(), ["c stop", "b stop", "a stop"]);
        assert_eq!(stage.mount().state(), State::Disposed);
    });
}

#[test]
fn k_184_a_waiting_entry_is_listed_with_what_it_waits_for() {
    kernel(async |test| {
        let stage = Stage::new(&test);
        stage.module("a", test.probe("a").needs("x").needs("y").def());

        stage.start("[{ id: first, name: a }]").await.unwrap();

        let entry = stage.entry("first");
        assert_eq!((entry.id.as_str(), entry.name.as_str()), ("first", "a"));
        assert_eq!(entry.standing, Standing::Mounted(State::Pending));
        assert_eq!(entry.missing, ["x", "y"]);
    });
}

#[test]
fn k_185_an_entry_outlives_a_child_that_it_disposes() {
    kernel(async |test| {
        let stage = Stage::new(&test);
        let child = test.probe("child").def();
        let body = async move |ctx: nano_cordis::cordis::Context| {
            let mount = ctx.plugin(&child, serde_json::Value::Null)?;
            mount.ready().await?;
            mount.dispose().await;
            Ok(())
        };
        stage.module("a", define("a", [], body));

        stage.start("[{ id: a, name: a }]").await.unwrap();

        assert_eq!(stage.took_place(), ["child start", "child stop"]);
        assert_eq!(stage.entry("a").standing, Standing::Mounted(State::Active));
        assert_eq!(stage.loader().problem(), None);
    });
}

#[test]
fn without_a_file_the_embedded_list_counts() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a"]);

        let loader = stage.start_on(None).await.unwrap();
        loader.reload();
        loader.applied().await.unwrap();

        assert_eq!(stage.children(), ["built-in ACTIVE"]);
        assert!(loader.watched().is_empty());
    });
}

#[test]
fn a_thousand_entries_load_each_module_once() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a"]);
        let list: Vec<_> = (0..1000).map(|it| format!("- {{ id: e{it}, name: a }}\n")).collect();
        let list = list.concat();

        stage.start(&list).await.unwrap();
        let started = stage.took_place().len();
        stage.save(list + "- { id: last, name: a }\n").await.unwrap();

        assert_eq!(started, 1000);
        assert_eq!(stage.took_place(), ["a start"]);
        assert_eq!(stage.loads(), 2);
    });
}
