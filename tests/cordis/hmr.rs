//! Hmr on a watcher that the test rings. The files are real, the clock is not.

mod files;
mod modules;
mod stirs;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

use serde_json::Value;
use tokio::sync::mpsc::Sender;

use nano_cordis::cordis::hmr::{self, Places, Watch};
use nano_cordis::cordis::{BeforeApply, State};

use crate::loader::stage::Stage;
use crate::support::{Test, kernel, pass};

/// A watcher that rings when the test says so.
#[derive(Clone, Default)]
pub(crate) struct Bell(Rc<Ropes>);

#[derive(Default)]
struct Ropes {
    now: RefCell<Option<(BTreeSet<PathBuf>, Sender<()>)>>,
    starts: Cell<usize>,
    broken: Cell<bool>,
}

impl Watch for Bell {
    fn start(&self, places: &Places, stirred: Sender<()>) -> Result<Box<dyn Any>, String> {
        self.0.starts.set(self.0.starts.get() + 1);
        if self.0.broken.get() {
            return Err("no watches left".into());
        }
        self.0.now.replace(Some((places.folders.clone(), stirred)));
        Ok(Box::new(()))
    }
}

impl Bell {
    pub(crate) fn ring(&self) {
        if let Some((_, stirred)) = &*self.0.now.borrow() {
            stirred.try_send(()).ok();
        }
    }

    pub(crate) fn folders(&self) -> BTreeSet<PathBuf> {
        self.0.now.borrow().as_ref().map(|(folders, _)| folders.clone()).unwrap_or_default()
    }

    /// Whether anybody would hear it.
    fn is_heard(&self) -> bool {
        self.0.now.borrow().as_ref().is_some_and(|(_, stirred)| !stirred.is_closed())
    }
}

/// Probes, and hmr under its own name.
pub(crate) fn stage(test: &Test, names: &[&str]) -> (Stage, Bell) {
    let stage = Stage::with_probes(test, names);
    let bell = Bell::default();
    stage.module("hmr", hmr::plugin(Rc::new(bell.clone())));
    (stage, bell)
}

/// A list with hmr and these entries, each named after its plugin.
pub(crate) fn list(names: &[&str]) -> String {
    let entry = |name: &&str| format!("- {{ id: {name}, name: {name} }}\n");
    format!("- {{ id: hmr, name: hmr }}\n{}", names.iter().map(entry).collect::<String>())
}

/// Saves the list, rings, and gives it time.
async fn save(stage: &Stage, bell: &Bell, text: &str) {
    stage.write("cordis.yml", text);
    bell.ring();
    pass(3000).await;
}

#[test]
fn k_186_a_saved_list_is_applied_and_one_line_says_so() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &["a", "b"]);
        stage.start(list(&["a"])).await.unwrap();

        save(&stage, &bell, &list(&["a", "b"])).await;

        assert_eq!(stage.took_place(), ["a start", "b start"]);
        assert_eq!(stage.told(), ["applied cordis.yml"]);
    });
}

#[test]
fn k_193_a_burst_of_writes_is_one_save_and_the_last_content_wins() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &["a", "b"]);
        stage.echo("a");
        stage.start(list(&[])).await.unwrap();

        for count in 1..=5 {
            let entry = format!("- {{ id: a, name: a, config: {{ n: {count} }} }}\n");
            stage.write("cordis.yml", list(&[]) + &entry);
            bell.ring();
            pass(20).await;
        }
        pass(3000).await;

        assert_eq!(stage.took_place(), [r#"a start {"n":5}"#]);
        assert_eq!(stage.told(), ["applied cordis.yml"]);
    });
}

#[test]
fn as_long_as_the_file_changes_it_is_not_read() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &[]);
        stage.echo("a");
        stage.start(list(&[])).await.unwrap();

        for count in 1..=10 {
            let entry = format!("- {{ id: a, name: a, config: {{ n: {count} }} }}\n");
            stage.write("cordis.yml", list(&[]) + &entry);
            bell.ring();
            pass(70).await;
        }
        let before = stage.took_place();
        pass(3000).await;

        assert_eq!(before, [""; 0]);
        assert_eq!(stage.took_place(), [r#"a start {"n":10}"#]);
    });
}

#[test]
fn k_194_spaced_saves_are_applied_one_by_one() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &[]);
        stage.echo("a");
        stage.start(list(&[])).await.unwrap();

        for count in 1..=5 {
            let entry = format!("- {{ id: a, name: a, config: {{ n: {count} }} }}\n");
            save(&stage, &bell, &(list(&[]) + &entry)).await;
        }

        assert_eq!(stage.took_place().last().unwrap(), r#"a start {"n":5}"#);
        assert_eq!(stage.told(), ["applied cordis.yml"; 5]);
        assert_eq!(stage.children(), ["hmr ACTIVE", "a ACTIVE"]);
    });
}

#[test]
fn k_195_a_file_that_is_renamed_over_the_list_is_a_save_each_time() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &["a", "b"]);
        stage.start(list(&[])).await.unwrap();

        for names in [&["a"][..], &["a", "b"]] {
            stage.write("cordis.yml~", list(names));
            fs::rename(stage.file("cordis.yml~"), stage.file("cordis.yml")).unwrap();
            bell.ring();
            pass(3000).await;
        }

        assert_eq!(stage.took_place(), ["a start", "b start"]);
    });
}

#[test]
fn k_196_deleted_and_created_again_is_one_save_and_nothing_was_unmounted() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &["a", "b"]);
        stage.start(list(&["a"])).await.unwrap();

        fs::remove_file(stage.file("cordis.yml")).unwrap();
        bell.ring();
        pass(200).await;
        save(&stage, &bell, &list(&["a", "b"])).await;

        assert_eq!(stage.took_place(), ["a start", "b start"]);
        assert_eq!(stage.told(), ["applied cordis.yml"]);
    });
}

#[test]
fn k_197_a_file_that_is_empty_for_a_moment_is_not_an_empty_list() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &["a", "b"]);
        stage.start(list(&["a"])).await.unwrap();

        stage.write("cordis.yml", "");
        bell.ring();
        pass(30).await;
        save(&stage, &bell, &list(&["a", "b"])).await;

        assert_eq!(stage.took_place(), ["a start", "b start"]);
        assert_eq!(stage.told(), ["applied cordis.yml"]);
    });
}

#[test]
fn a_list_that_stays_empty_is_refused_once() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &["a"]);
        stage.start(list(&["a"])).await.unwrap();

        save(&stage, &bell, "").await;
        bell.ring();
        pass(3000).await;

        let line = "cordis.yml not applied: it is empty; a list without entries is written `[]`";
        assert_eq!(stage.told(), [line]);
        assert_eq!(stage.took_place(), ["a start"]);
    });
}

#[test]
fn k_199_identical_bytes_remount_nothing() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &["a"]);
        stage.start(list(&["a"])).await.unwrap();

        save(&stage, &bell, &list(&["a"])).await;

        assert_eq!(stage.took_place(), ["a start"]);
        assert_eq!(stage.told(), [""; 0]);
    });
}

#[test]
fn k_201_what_was_there_before_is_no_save() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &["a"]);
        stage.module("./a.ts", test.probe("script").def());
        stage.write("a.ts", "version 1");

        stage.start(list(&["a", "./a.ts"])).await.unwrap();
        bell.ring();
        pass(3000).await;

        assert_eq!(stage.took_place(), ["a start", "script start"]);
        assert_eq!(stage.told(), [""; 0]);
    });
}

#[test]
fn k_202_hmr_can_be_removed_by_a_save_that_it_noticed() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &["a", "b"]);
        stage.start(list(&["a"])).await.unwrap();

        save(&stage, &bell, "- { id: b, name: b }").await;

        assert_eq!(stage.took_place(), ["a start", "a stop", "b start"]);
        assert_eq!(stage.children(), ["b ACTIVE"]);
        assert_eq!(stage.told(), ["applied cordis.yml"]);
        assert!(!bell.is_heard());
    });
}

#[test]
fn k_203_hmr_goes_on_after_its_own_config_has_changed() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &["a"]);
        stage.start(list(&[])).await.unwrap();
        let hmr = "- { id: hmr, name: hmr, config: { debounceMs: 300 } }\n";

        save(&stage, &bell, hmr).await;
        save(&stage, &bell, &format!("{hmr}- {{ id: a, name: a }}\n")).await;

        assert_eq!(stage.took_place(), ["a start"]);
        assert_eq!(stage.told(), ["applied cordis.yml"; 2]);
        assert_eq!(bell.0.starts.get(), 2);
    });
}

#[test]
fn k_204_a_reload_in_progress_completes_without_hmr_and_nothing_comes_after() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &["a"]);
        stage.module("slow", test.probe("slow").cleanup_delay(2000).def());
        stage.start("- { id: slow, name: slow }").await.unwrap();
        let hmr = test.root.plugin(&hmr::plugin(Rc::new(bell.clone())), Value::Null).unwrap();
        pass(1).await;
        stage.write("cordis.yml", "- { id: a, name: a }");
        bell.ring();
        pass(500).await;

        let before = stage.children();
        hmr.dispose().await;
        stage.write("cordis.yml", "[]");
        bell.ring();
        pass(5000).await;

        assert_eq!(before, ["slow UNLOADING"]);
        assert_eq!(hmr.state(), State::Disposed);
        assert_eq!(stage.children(), ["a ACTIVE"]);
    });
}

#[test]
fn k_207_a_save_before_the_watch_began_is_not_lost() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &["a", "b"]);
        stage.start("- { id: a, name: a }").await.unwrap();

        stage.write("cordis.yml", "- { id: b, name: b }");
        test.mount(&hmr::plugin(Rc::new(bell)));
        pass(3000).await;

        assert_eq!(stage.children(), ["b ACTIVE"]);
    });
}

#[test]
fn k_208_a_list_that_was_missing_for_a_while_is_applied_when_it_is_back() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &["a", "b"]);
        stage.start(list(&["a"])).await.unwrap();

        fs::remove_file(stage.file("cordis.yml")).unwrap();
        bell.ring();
        pass(60_000).await;
        let told = stage.told();
        save(&stage, &bell, &list(&["a", "b"])).await;

        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("cordis.yml not applied: it cannot be read: "), "{told:?}");
        assert_eq!(stage.took_place(), ["a start", "b start"]);
        assert_eq!(stage.told(), ["applied cordis.yml"]);
    });
}

#[test]
fn a_28_busy_neighbours_do_not_put_a_save_off() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &["a"]);
        stage.start(list(&[])).await.unwrap();
        let neighbour = bell.clone();
        let busy = async move |_| loop {
            neighbour.ring();
            pass(50).await;
        };
        test.root.spawn::<()>("busy", busy).unwrap();

        stage.write("cordis.yml", list(&["a"]));
        pass(2000).await;

        assert_eq!(stage.children(), ["hmr ACTIVE", "a ACTIVE"]);
    });
}

#[test]
fn a_28_a_save_during_an_apply_and_a_save_during_a_hold_are_not_lost() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &["a", "b"]);
        stage.module("slow", test.probe("slow").cleanup_delay(2000).def());
        stage.start(list(&["slow"])).await.unwrap();
        test.root
            .on_parallel::<BeforeApply>(async |_, _| {
                pass(5000).await;
                Ok(())
            })
            .unwrap();

        save(&stage, &bell, &list(&["a"])).await;
        save(&stage, &bell, &list(&["b"])).await;
        pass(20_000).await;
        save(&stage, &bell, &list(&["a", "b"])).await;
        pass(20_000).await;

        assert_eq!(
            stage.took_place(),
            ["slow start", "slow stopping", "slow stop", "b start", "a start"]
        );
    });
}
