//! Saved modules, on a watcher that the test rings.

use nano_cordis::cordis::loader::Standing;
use nano_cordis::cordis::{BoxError, Builtins, Context, NoConfig, State, What, plugin};

use super::{Bell, list, stage};
use crate::loader::stage::Stage;
use crate::support::{Ping, define, hear, kernel, listeners, pass};

/// Writes another version of these files, rings, and gives it time.
async fn save(stage: &Stage, bell: &Bell, names: &[&str], content: &str) {
    for name in names {
        stage.write(name, content);
    }
    bell.ring();
    pass(3000).await;
}

#[test]
fn k_187_a_saved_module_remounts_the_entries_that_use_it_and_no_other() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &["b"]);
        stage.module("./a.ts", test.probe("old").def());
        stage.write("a.ts", "1");
        stage.start(list(&["./a.ts", "b"])).await.unwrap();
        stage.module("./a.ts", test.probe("new").def());

        save(&stage, &bell, &["a.ts"], "2").await;

        assert_eq!(stage.took_place(), ["old start", "b start", "old stop", "new start"]);
        assert_eq!(stage.told(), ["reloaded ./a.ts"]);
    });
}

#[test]
fn k_188_the_registrations_of_the_old_version_are_gone_and_the_new_ones_there_once() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &[]);
        let version = |line: &'static str| {
            let journal = test.journal.clone();
            define("a", [], async move |ctx: Context| {
                hear(&ctx, &journal, line)?;
                Ok(())
            })
        };
        stage.module("./a.ts", version("old"));
        stage.write("a.ts", "0");
        stage.start(list(&["./a.ts"])).await.unwrap();
        let before = listeners(&test.root);
        stage.module("./a.ts", version("new"));

        for content in ["1", "2", "3"] {
            save(&stage, &bell, &["a.ts"], content).await;
        }
        test.root.emit(&Ping);

        assert_eq!(stage.took_place(), ["new"]);
        assert_eq!(listeners(&test.root), before);
    });
}

#[test]
fn k_189_a_module_that_cannot_be_loaded_leaves_the_old_one_running() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &[]);
        stage.module("./a.ts", test.probe("old").def());
        stage.write("a.ts", "1");
        stage.start(list(&["./a.ts"])).await.unwrap();

        stage.broken("./a.ts", "line 1: unexpected end");
        save(&stage, &bell, &["a.ts"], "half").await;

        assert_eq!(stage.children(), ["hmr ACTIVE", "./a.ts ACTIVE"]);
        let line = "./a.ts not applied: line 1: unexpected end";
        assert_eq!(stage.told(), [line]);
        assert_eq!(stage.took_place(), ["old start"]);
    });
}

#[test]
fn k_190_after_a_save_that_could_not_be_loaded_one_that_can_is_reloaded() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &[]);
        stage.module("./a.ts", test.probe("old").def());
        stage.write("a.ts", "1");
        stage.start(list(&["./a.ts"])).await.unwrap();
        stage.broken("./a.ts", "line 1: unexpected end");
        save(&stage, &bell, &["a.ts"], "half").await;
        assert_eq!(stage.told().len(), 1);

        stage.module("./a.ts", test.probe("new").def());
        save(&stage, &bell, &["a.ts"], "whole").await;

        assert_eq!(stage.took_place(), ["old start", "old stop", "new start"]);
        assert_eq!(stage.told(), ["reloaded ./a.ts"]);
    });
}

#[test]
fn k_191_a_new_version_whose_body_fails_is_not_rolled_back_and_a_good_save_mends_it() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &[]);
        stage.module("./a.ts", test.probe("old").def());
        stage.write("a.ts", "1");
        stage.start(list(&["./a.ts"])).await.unwrap();

        stage.module("./a.ts", test.probe("bad").fails("boom").def());
        save(&stage, &bell, &["a.ts"], "2").await;
        let between = stage.entry("./a.ts").standing;
        stage.module("./a.ts", test.probe("new").def());
        save(&stage, &bell, &["a.ts"], "3").await;

        assert_eq!(test.reports.take_one().what, What::BodyFailed);
        assert_eq!(between, Standing::Mounted(State::Failed));
        assert_eq!(
            stage.took_place(),
            ["old start", "old stop", "bad start", "bad stop", "new start"]
        );
    });
}

#[test]
fn k_192_the_consumers_of_a_saved_provider_stop_and_start_once() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &[]);
        stage.module("./p.ts", test.probe("p").gives("x").def());
        stage.module("c", test.probe("c").needs("x").def());
        stage.write("p.ts", "1");
        stage.start(list(&["./p.ts", "c"])).await.unwrap();
        stage.took_place();

        save(&stage, &bell, &["p.ts"], "2").await;

        assert_eq!(stage.took_place(), ["c stop", "p stop", "p start", "c start"]);
    });
}

#[test]
fn k_205_of_two_modules_saved_together_one_may_fail() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &[]);
        for name in ["a", "b"] {
            stage.module(&format!("./{name}.ts"), test.probe(name).def());
            stage.write(&format!("{name}.ts"), "1");
        }
        stage.start(list(&["./a.ts", "./b.ts"])).await.unwrap();
        stage.broken("./a.ts", "no");
        stage.took_place();

        save(&stage, &bell, &["a.ts", "b.ts"], "2").await;

        assert_eq!(stage.took_place(), ["b stop", "b start"]);
        assert_eq!(stage.told(), ["./a.ts not applied: no", "reloaded ./b.ts"]);
    });
}

#[test]
fn a_version_that_was_read_for_a_refused_list_is_still_noticed() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &[]);
        stage.module("./a.ts", test.probe("old").def());
        stage.write("a.ts", "1");
        stage.start(list(&["./a.ts"])).await.unwrap();
        stage.took_place();

        stage.module("./a.ts", test.probe("new").def());
        stage.write("a.ts", "2");
        let guard = test.probe("guard").def().guard();
        stage.module("guard", guard);
        let faulty =
            "- { id: ./a.ts, name: ./a.ts, config: 1 }\n- { id: g, name: guard, optional: true }\n";
        stage.save(faulty).await.unwrap_err();
        bell.ring();
        pass(3000).await;

        assert_eq!(stage.took_place(), ["old stop", "new start"]);
    });
}

#[test]
fn writing_the_same_bytes_is_another_try_for_a_module_that_could_not_be_loaded() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &[]);
        stage.broken("./a.ts", "what it imports is not there");
        stage.write("a.ts", "1");
        stage.start(list(&["./a.ts"])).await.unwrap();
        stage.module("./a.ts", test.probe("a").def());
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(1);

        stage.write("a.ts", "1");
        let file = std::fs::File::options().write(true).open(stage.file("a.ts")).unwrap();
        file.set_modified(later).unwrap();
        bell.ring();
        pass(3000).await;

        assert_eq!(stage.took_place(), ["a start"]);
    });
}

#[test]
fn a_module_in_another_folder_is_watched_from_its_first_save_on() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &[]);
        std::fs::create_dir(stage.file("scripts")).unwrap();
        stage.module("./scripts/a.ts", test.probe("a").def());
        stage.write("scripts/a.ts", "1");
        stage.start(list(&[])).await.unwrap();
        pass(10).await;
        let before = bell.folders();

        stage.write("cordis.yml", list(&["./scripts/a.ts"]));
        bell.ring();
        pass(3000).await;

        let folder = std::fs::canonicalize(stage.file("scripts")).unwrap();
        assert!(!before.contains(&folder));
        assert!(bell.folders().contains(&folder));
    });
}

#[test]
fn a_module_whose_folder_does_not_exist_yet_is_noticed_when_it_comes() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &[]);
        stage.broken("./later/a.ts", "there is no such file");
        stage.start(list(&["./later/a.ts"])).await.unwrap();
        pass(10).await;
        let root = std::fs::canonicalize(stage.file("")).unwrap();
        let before = bell.folders();

        std::fs::create_dir(stage.file("later")).unwrap();
        stage.module("./later/a.ts", test.probe("a").def());
        save(&stage, &bell, &["later/a.ts"], "1").await;

        assert_eq!(before, [root.clone()].into());
        assert_eq!(bell.folders(), [root.clone(), root.join("later")].into());
        assert_eq!(stage.took_place(), ["a start"]);
    });
}

#[test]
fn saving_the_source_of_a_built_in_is_answered_once() {
    kernel(async |test| {
        let stage = Stage::new(&test);
        let bell = Bell::default();
        let idle = plugin(async |_: Context, _: NoConfig| Ok::<(), BoxError>(()));
        let hmr = nano_cordis::cordis::hmr::plugin(std::rc::Rc::new(bell.clone()));
        let builtins = Builtins::new().with("tool-bash", idle).with("hmr", hmr);
        std::fs::create_dir_all(stage.file("src/harness")).unwrap();
        stage.write("src/harness/tool-bash.ts", "1");
        stage.write("cordis.yml", list(&["./src/harness/tool-bash.ts"]));
        let file = Some(stage.file("cordis.yml"));
        stage.start_with(file, std::rc::Rc::new(builtins)).await.unwrap();

        for content in ["2", "3"] {
            save(&stage, &bell, &["src/harness/tool-bash.ts"], content).await;
        }

        let line = "./src/harness/tool-bash.ts is compiled in; what was saved is not read";
        assert_eq!(stage.told(), [line]);
    });
}
