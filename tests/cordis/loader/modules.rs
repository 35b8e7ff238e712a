//! A module that cannot be loaded concerns its entries alone; one that was saved is loaded before anything stops.

use nano_cordis::cordis::loader::Standing;
use nano_cordis::cordis::{State, What};

use super::stage::Stage;
use crate::support::kernel;

const TWO: &str = "[{ id: a, name: ./a.ts }, { id: b, name: b }]";

#[test]
fn k_169_an_entry_that_cannot_be_loaded_is_reported_and_the_others_run() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["b"]);
        stage.broken("./a.ts", "line 3: unexpected `}`");

        stage.start(TWO).await.unwrap();

        assert_eq!(stage.children(), ["b ACTIVE"]);
        assert_eq!(stage.entry("a").standing, Standing::NotLoaded);
        let line = "entry `a`: line 3: unexpected `}`";
        assert_eq!(stage.loader().problem().as_deref(), Some(line));
    });
}

#[test]
fn k_170_an_entry_that_could_not_be_loaded_is_tried_again_at_the_next_save() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["b"]);
        stage.broken("./a.ts", "no");
        stage.start(TWO).await.unwrap();
        stage.module("./a.ts", test.probe("a").def());
        stage.took_place();

        stage.save(format!("# a comment\n{TWO}")).await.unwrap();

        assert_eq!(stage.took_place(), ["a start"]);
        assert_eq!(stage.loader().problem(), None);
    });
}

#[test]
fn the_same_bytes_are_another_try_for_an_entry_that_could_not_be_loaded() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["b"]);
        stage.broken("./a.ts", "no");
        stage.start(TWO).await.unwrap();
        stage.module("./a.ts", test.probe("a").def());
        stage.forget();

        stage.save(TWO).await.unwrap();

        assert_eq!(stage.took_place(), ["a start"]);
        assert_eq!(stage.told(), ["applied cordis.yml"]);
    });
}

#[test]
fn k_171_a_repaired_module_is_mounted_when_it_is_saved() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["b"]);
        stage.broken("./a.ts", "no");
        stage.start(TWO).await.unwrap();
        stage.module("./a.ts", test.probe("a").def());
        stage.forget();

        stage.save_module("a.ts").await.unwrap();

        assert_eq!(stage.took_place(), ["a start"]);
        assert_eq!(stage.told(), ["reloaded ./a.ts"]);
    });
}

#[test]
fn a_saved_module_remounts_every_entry_that_uses_it_and_no_other() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["b"]);
        stage.module("./a.ts", test.probe("old").def());
        let list = "[{ id: one, name: ./a.ts }, { id: b, name: b }, { id: two, name: ./a.ts }]";
        stage.start(list).await.unwrap();
        stage.module("./a.ts", test.probe("new").def());
        stage.took_place();

        let applied = stage.save_module("a.ts").await.unwrap();

        assert_eq!(stage.took_place(), ["old stop", "old stop", "new start", "new start"]);
        assert_eq!(applied.changed, ["one", "two"]);
        assert_eq!(stage.told(), ["reloaded ./a.ts"]);
    });
}

#[test]
fn a_saved_module_that_cannot_be_loaded_changes_nothing_but_is_remembered() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["b"]);
        stage.module("./a.ts", test.probe("old").def());
        stage.start(TWO).await.unwrap();
        stage.broken("./a.ts", "half of it");
        stage.took_place();

        stage.save_module("a.ts").await.unwrap();
        let (entry, problem) = (stage.entry("a"), stage.loader().problem());
        stage.module("./a.ts", test.probe("new").def());
        stage.save_module("a.ts").await.unwrap();

        assert_eq!(entry.standing, Standing::Mounted(State::Active));
        assert!(entry.stale);
        assert_eq!(problem, None);
        assert_eq!(stage.took_place(), ["old stop", "new start"]);
        let lines = ["./a.ts not applied: half of it", "reloaded ./a.ts"];
        assert_eq!(stage.told(), lines);
        assert!(!stage.entry("a").stale);
    });
}

#[test]
fn a_version_that_could_not_be_loaded_is_tried_again_at_a_save_of_the_list() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["b"]);
        stage.module("./a.ts", test.probe("old").def());
        stage.start(TWO).await.unwrap();
        stage.broken("./a.ts", "half of it");
        stage.save_module("a.ts").await.unwrap();
        stage.module("./a.ts", test.probe("new").def());
        stage.forget();

        stage.save(format!("# a comment\n{TWO}")).await.unwrap();

        assert_eq!(stage.took_place(), ["old stop", "new start"]);
        assert!(!stage.entry("a").stale);
    });
}

#[test]
fn a_changed_entry_whose_new_module_cannot_be_loaded_keeps_what_it_has() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a", "b"]);
        stage.start("[{ id: a, name: a }, { id: b, name: b }]").await.unwrap();
        stage.took_place();

        let applied = stage.save("[{ id: a, name: nobody }, { id: b, name: b }]").await.unwrap();

        assert_eq!(stage.took_place(), [""; 0]);
        assert!(stage.entry("a").stale);
        assert_eq!(stage.children(), ["a ACTIVE", "b ACTIVE"]);
        assert_eq!(applied.failed, [("a".into(), "no plugin is named `nobody`".into())]);
        let stays = "entry `a`: no plugin is named `nobody`; what runs of it stays";
        assert_eq!(stage.told(), ["applied cordis.yml", stays]);
    });
}

#[test]
fn a_new_version_that_refuses_the_config_keeps_the_old_one_running() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["b"]);
        stage.echo("./a.ts");
        stage
            .start("[{ id: a, name: ./a.ts, config: { n: 1 } }, { id: b, name: b }]")
            .await
            .unwrap();
        let schema =
            serde_json::json!({ "type": "object", "properties": { "n": { "type": "string" } } });
        stage.echo_of("./a.ts", Some(schema));
        stage.took_place();

        stage.save_module("a.ts").await.unwrap();

        assert_eq!(stage.took_place(), [""; 0]);
        assert!(stage.entry("a").stale);
        let line = "./a.ts not applied: entry `a` (line 1): config.n: must be a text, not 1; put it in quotes";
        assert_eq!(stage.told(), [line]);
    });
}

#[test]
fn a_repaired_module_that_refuses_the_config_concerns_its_entry_alone() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["b"]);
        stage.broken("./a.ts", "no");
        stage.start(TWO).await.unwrap();
        let schema = serde_json::json!({ "type": "object", "required": ["n"] });
        stage.echo_of("./a.ts", Some(schema));
        stage.forget();

        stage.save_module("a.ts").await.unwrap();

        let fault = "entry `a` (line 1): config.n: is required";
        assert_eq!(stage.told(), [format!("./a.ts not applied: {fault}")]);
        assert_eq!(stage.entry("a").standing, Standing::NotLoaded);
    });
}

#[test]
fn a_new_version_whose_body_fails_is_not_rolled_back() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["b"]);
        stage.module("./a.ts", test.probe("old").def());
        stage.start(TWO).await.unwrap();
        stage.module("./a.ts", test.probe("new").fails("boom").def());
        stage.took_place();

        stage.save_module("a.ts").await.unwrap();

        assert_eq!(test.reports.take_one().what, What::BodyFailed);
        assert_eq!(stage.took_place(), ["old stop", "new start", "new stop"]);
        assert_eq!(stage.loader().problem().as_deref(), Some("entry `a`: boom"));
    });
}

#[test]
fn a_module_saved_with_a_refused_list_is_reloaded_all_the_same() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["b"]);
        stage.module("./a.ts", test.probe("old").def());
        stage.start(TWO).await.unwrap();
        stage.module("./a.ts", test.probe("new").def());
        stage.took_place();

        stage.write("cordis.yml", "[{ id: a }]");
        stage.loader().reload();
        stage.save_module("a.ts").await.unwrap();

        assert_eq!(stage.took_place(), ["old stop", "new start"]);
        assert_eq!(stage.told().len(), 2);
    });
}

#[test]
fn the_files_of_modules_in_use_are_watched_also_those_that_could_not_be_loaded() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["b"]);
        stage.module("./a.ts", test.probe("a").def());
        let list = "[{ id: a, name: ./a.ts }, { id: b, name: b }, { id: c, name: ./gone.ts },
            { id: d, name: ./off.ts, disabled: true }]";

        let loader = stage.start(list).await.unwrap();

        let expected = ["a.ts", "cordis.yml", "gone.ts"].map(|it| stage.file(it));
        assert_eq!(loader.watched(), expected);
    });
}
