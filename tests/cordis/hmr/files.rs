//! The system's own watcher, on real files and the real clock: few tests, and each waits for what it expects.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tokio::time::timeout;

use nano_cordis::cordis::hmr::{self, Places, System, Watch};
use nano_cordis::cordis::{Context, plugin};

use super::list;
use crate::loader::stage::Stage;
use crate::support::{Journal, Reports, Test};

/// As `kernel`, with a clock that runs.
fn real(test: impl AsyncFnOnce(Test)) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let reports = Reports::default();
        let root = Context::root_with(reports.recorder());
        let running = test(Test { root, journal: Journal::default(), reports: reports.clone() });
        timeout(Duration::from_secs(20), running).await.expect("the save was not noticed");
        assert_eq!(reports.lines(), [""; 0]);
    });
}

/// A stage with the real hmr.
fn stage(test: &Test) -> Stage {
    let stage = Stage::with_probes(test, &["a"]);
    stage.module("hmr", plugin(hmr::apply).named("hmr"));
    stage.echo("it");
    stage
}

/// The list in version `n`.
fn version(n: usize) -> String {
    format!("{}- {{ id: it, name: it, config: {{ n: {n} }} }}\n", list(&[]))
}

/// Five saves, each made in this way, are five reloads.
fn five_saves(save: impl Fn(&Stage, &str)) {
    real(async |test| {
        let stage = stage(&test);
        stage.start(version(0)).await.unwrap();

        for n in 1..=5 {
            save(&stage, &version(n));
            assert_eq!(stage.told_next().await, ["applied cordis.yml"]);
        }

        let last = stage.took_place().pop().unwrap();
        assert_eq!(last, r#"it start {"n":5}"#);
    });
}

#[test]
fn saves_in_place_are_noticed() {
    five_saves(|stage, text| stage.write("cordis.yml", text));
}

#[test]
fn k_195_saves_by_rename_are_noticed() {
    five_saves(|stage, text| {
        stage.write("new", text);
        fs::rename(stage.file("new"), stage.file("cordis.yml")).unwrap();
    });
}

#[test]
fn k_196_saves_by_delete_and_create_are_noticed() {
    five_saves(|stage, text| {
        fs::remove_file(stage.file("cordis.yml")).unwrap();
        stage.write("cordis.yml", text);
    });
}

#[test]
fn k_197_saves_by_truncate_and_write_are_noticed() {
    five_saves(|stage, text| {
        stage.write("cordis.yml", "");
        stage.write("cordis.yml", text);
    });
}

#[test]
fn k_198_reading_a_file_stirs_nobody_and_neither_do_the_permissions_of_another() {
    real(async |test| {
        let stage = stage(&test);
        stage.write("cordis.yml", version(0));
        stage.write("neighbour", "");
        let (stirred, mut stirs) = mpsc::channel(1);
        let folder = fs::canonicalize(stage.file("")).unwrap();
        let files = BTreeSet::from([folder.join("cordis.yml")]);
        let places = Places { folders: BTreeSet::from([folder]), files };
        let _watching = System.start(&places, stirred).unwrap();

        for _ in 0..10 {
            fs::read(stage.file("cordis.yml")).unwrap();
            chmod(&stage, "neighbour", 0o600);
        }
        let after_reading = timeout(Duration::from_millis(200), stirs.recv()).await;
        stage.write("cordis.yml", version(1));
        let after_writing = stirs.recv().await;

        after_reading.expect_err("nothing was to happen");
        assert_eq!(after_writing, Some(()));
    });
}

fn chmod(stage: &Stage, name: &str, mode: u32) {
    fs::set_permissions(stage.file(name), fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn d_23_permissions_alone_are_noticed_and_what_is_mended_by_them_is_applied() {
    real(async |test| {
        let stage = stage(&test);
        stage.start(version(0)).await.unwrap();

        let mut told = Vec::new();
        for n in 1..=2 {
            chmod(&stage, "cordis.yml", 0o666);
            told.push(stage.told_next().await);
            stage.write("cordis.yml", version(n));
            told.push(stage.told_next().await);
            chmod(&stage, "cordis.yml", 0o644);
            told.push(stage.told_next().await);
        }

        let refused = |it: &Vec<String>| it.len() == 1 && it[0].contains("chmod go-w");
        assert!(told.iter().enumerate().all(|(at, it)| at % 3 == 2 || refused(it)), "{told:?}");
        assert_eq!([&told[2], &told[5]], [&["applied cordis.yml"]; 2]);
        assert_eq!(stage.took_place().pop().unwrap(), r#"it start {"n":2}"#);
    });
}

#[test]
fn k_200_a_linked_list_is_followed_to_its_target_in_another_folder() {
    real(async |test| {
        let stage = stage(&test);
        fs::create_dir(stage.file("dotfiles")).unwrap();
        stage.write("dotfiles/list.yml", version(0));
        symlink("dotfiles/list.yml", stage.file("cordis.yml")).unwrap();
        stage.start_on(Some(stage.file("cordis.yml"))).await.unwrap();

        stage.write("dotfiles/list.yml", version(1));

        assert_eq!(stage.told_next().await, ["applied cordis.yml"]);
    });
}

#[test]
fn k_200_a_link_that_is_turned_to_another_list_is_a_save() {
    real(async |test| {
        let stage = stage(&test);
        for n in 0..=3 {
            stage.write(&format!("{n}.yml"), version(n));
        }
        symlink("0.yml", stage.file("cordis.yml")).unwrap();
        stage.start_on(Some(stage.file("cordis.yml"))).await.unwrap();

        for n in 1..=3 {
            symlink(format!("{n}.yml"), stage.file("new")).unwrap();
            fs::rename(stage.file("new"), stage.file("cordis.yml")).unwrap();
            assert_eq!(stage.told_next().await, ["applied cordis.yml"]);
        }
    });
}

#[test]
fn k_200_a_linked_folder_is_watched_on_both_sides() {
    real(async |test| {
        let stage = stage(&test);
        for n in [0, 2] {
            fs::create_dir(stage.file(&n.to_string())).unwrap();
            stage.write(&format!("{n}/cordis.yml"), version(n));
        }
        symlink("0", stage.file("now")).unwrap();
        stage.start_on(Some(stage.file("now/cordis.yml"))).await.unwrap();

        stage.write("0/cordis.yml", version(1));
        let in_target = stage.told_next().await;
        symlink("2", stage.file("new")).unwrap();
        fs::rename(stage.file("new"), stage.file("now")).unwrap();
        let turned = stage.told_next().await;
        stage.write("2/cordis.yml", version(3));
        let in_new_target = stage.told_next().await;

        assert_eq!([in_target, turned, in_new_target], [["applied cordis.yml"]; 3]);
    });
}
