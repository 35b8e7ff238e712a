//! What the files look like to the system: modes, links, limits.

use std::{
    fs::{self, File},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use nano_cordis::{
    cordis::State,
    harness::{
        persistence::Persistence,
        session::{SessionEvent, Sessions},
    },
};
use serde_json::json;

use super::{desk, mode};
use crate::support::{builtin, folder, in_process, run, talk};

#[test]
fn logs_and_their_folder_are_the_users_alone_and_not_published() {
    desk(async |desk| {
        talk(&desk.open("one"), "hi", "hello");

        let nano = desk.folder.path().join(".nano");
        assert_eq!(
            (mode(&nano), mode(&desk.dir()), mode(&desk.path("one"))),
            (0o700, 0o700, 0o600)
        );
        assert_eq!(fs::read_to_string(nano.join(".gitignore")).unwrap(), "*\n");
    });
}

#[test]
fn a_folder_that_was_there_is_not_taken_out_of_version_control() {
    run(async |app| {
        let (project, made) = (folder(), folder().path().join("logs"));
        for dir in [project.path(), &made] {
            app.mount("session", json!({})).await;
            app.mount("persistence", json!({ "dir": dir })).await;

            talk(&app.service::<Sessions>().create().unwrap(), "hi", "hello");

            assert_eq!(dir.join(".gitignore").exists(), dir == made);
            app.unmount("persistence").await;
            app.unmount("session").await;
        }
        fs::remove_dir_all(made.parent().unwrap()).unwrap();
    });
}

#[test]
fn an_empty_name_of_the_folder_is_a_fault_of_the_configuration() {
    run(async |app| {
        app.mount("session", json!({})).await;

        let mount = app.ctx.plugin(&builtin("persistence"), json!({ "dir": "" })).unwrap();
        mount.ready().await.unwrap_err();

        let report = app.take_report();
        assert!(report.ends_with("dir: must have at least 1 character, not \"\""), "{report}");
    });
}

#[test]
fn a_log_that_others_could_read_is_closed_to_them_at_resume() {
    desk(async |desk| {
        desk.save("one", 1).await;
        fs::set_permissions(desk.path("one"), fs::Permissions::from_mode(0o644)).unwrap();

        desk.resume("one");

        assert_eq!(mode(&desk.path("one")), 0o600);
    });
}

#[test]
fn sessions_are_not_kept_behind_a_link() {
    run(async |app| {
        let (project, elsewhere) = (folder(), folder());
        symlink(elsewhere.path(), project.path().join(".nano")).unwrap();
        app.mount("session", json!({})).await;

        let dir = project.path().join(".nano/sessions");
        let mount = app.ctx.plugin(&builtin("persistence"), json!({ "dir": dir })).unwrap();
        let refused = mount.ready().await.unwrap_err().to_string();

        assert_eq!(mount.state(), State::Failed);
        assert!(refused.contains(".nano is a symbolic link"), "{refused}");
        assert!(app.take_report().contains("symbolic link"));
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    });
}

#[test]
fn a_link_that_comes_later_is_refused_at_the_first_event() {
    desk(async |desk| {
        let elsewhere = folder();
        let session = desk.open("one");
        symlink(elsewhere.path(), desk.folder.path().join(".nano")).unwrap();

        let turn = super::EventBody::TurnStart { turn: 1, format: 1, cwd: String::new() };
        let refused = session.append(turn).unwrap_err().to_string();

        assert!(refused.contains("symbolic link"), "{refused}");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    });
}

#[test]
fn files_and_folders_are_private_whatever_the_umask() {
    let test = "persistence::disk::files_and_folders_are_private_whatever_the_umask";
    let Some(folder) = in_process("umask 000", test, save_a_turn) else { return };

    let sessions = folder.path().join("a/.nano/sessions");
    let modes =
        [&folder.path().join("a/.nano"), &sessions, &sessions.join("one.jsonl")].map(|it| mode(it));
    assert_eq!(modes, [0o700, 0o700, 0o600]);
}

fn save_a_turn(dir: &Path) {
    let dir = dir.join("a/.nano/sessions");
    run(async move |app| {
        app.mount("session", json!({})).await;
        app.mount("persistence", json!({ "dir": dir })).await;
        talk(&app.service::<Sessions>().restore("one", vec![]).unwrap(), "hi", "hello");
    });
}

#[test]
fn h_092_at_a_limit_of_the_system_the_file_keeps_whole_lines_and_nobody_is_told() {
    let test = "persistence::disk::h_092_at_a_limit_of_the_system_the_file_keeps_whole_lines_and_nobody_is_told";
    let Some(folder) = in_process("ulimit -f 8", test, meet_the_limit) else { return };

    let log = fs::read_to_string(folder.path().join("one.jsonl")).unwrap();
    assert!(log.ends_with("}\n") && log.len() > 2000, "{}", log.len());
}

#[test]
fn h_092_a_limit_that_allows_nothing_is_an_error_and_not_the_end_of_the_program() {
    let test = "persistence::disk::h_092_a_limit_that_allows_nothing_is_an_error_and_not_the_end_of_the_program";
    let Some(folder) = in_process("ulimit -f 0", test, meet_the_limit) else { return };

    assert!(!folder.path().join("one.jsonl").exists());
}

#[test]
fn h_092_a_limit_leaves_no_half_of_the_file_that_hides_the_folder() {
    let test = "persistence::disk::h_092_a_limit_leaves_no_half_of_the_file_that_hides_the_folder";
    let Some(folder) = in_process("ulimit -f 0", test, |dir| meet_the_limit(&dir.join(".nano")))
    else {
        return;
    };

    assert_eq!(fs::read_dir(folder.path().join(".nano")).unwrap().count(), 0);
}

#[test]
fn h_084_a_torn_write_that_cannot_be_put_aside_is_not_cut() {
    let test = "persistence::disk::h_084_a_torn_write_that_cannot_be_put_aside_is_not_cut";
    let shell = "head -c 3000 /dev/zero >\"$NANO_TEST_DIR/one.jsonl\"; ulimit -f 1";
    let Some(folder) = in_process(shell, test, resume_what_is_torn) else { return };

    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap()).collect();
    assert_eq!((left.len(), left[0].metadata().unwrap().len()), (1, 3000));
}

fn resume_what_is_torn(dir: &Path) {
    let dir = dir.to_owned();
    run(async move |app| {
        app.mount("session", json!({})).await;
        app.mount("persistence", json!({ "dir": dir })).await;

        let failed = app.service::<Persistence>().load("one").unwrap_err().to_string();

        assert!(failed.contains("cannot write") && failed.contains("one.jsonl.torn"), "{failed}");
    });
}

#[test]
fn h_092_a_first_event_that_does_not_fit_leaves_no_file() {
    let test = "persistence::disk::h_092_a_first_event_that_does_not_fit_leaves_no_file";
    let Some(folder) = in_process("ulimit -f 1", test, meet_the_limit_at_once) else { return };

    assert!(!folder.path().join("one.jsonl").exists());
}

#[test]
fn h_092_a_log_whose_name_cannot_be_made_to_last_is_not_begun() {
    let test = "persistence::disk::h_092_a_log_whose_name_cannot_be_made_to_last_is_not_begun";
    let Some(folder) = in_process("ulimit -n 64", test, begin_without_a_descriptor) else { return };

    assert!(!folder.path().join("one.jsonl").exists());
}

/// With one descriptor left the log can be opened, but not the folder that it is in.
fn begin_without_a_descriptor(dir: &Path) {
    let dir = dir.to_owned();
    run(async move |app| {
        app.mount("session", json!({})).await;
        app.mount("persistence", json!({ "dir": dir })).await;
        let session = app.service::<Sessions>().restore("one", vec![]).unwrap();
        let mut open: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        open.pop();

        let start = super::EventBody::TurnStart { turn: 1, format: 1, cwd: String::new() };
        let failed = session.append(start).unwrap_err().to_string();

        drop(open);
        assert!(failed.contains("cannot sync"), "{failed}");
    });
}

#[test]
fn a_25_a_log_that_is_too_large_for_memory_is_refused_in_words() {
    desk(async |desk| {
        desk.put("one", "");
        File::options().write(true).open(desk.path("one")).unwrap().set_len(3 << 30).unwrap();

        let refused = desk.load("one").unwrap_err().to_string();

        assert!(
            refused.ends_with("has 3221225472 bytes, more than a session can have"),
            "{refused}"
        );
        assert_eq!(fs::metadata(desk.path("one")).unwrap().len(), 3 << 30);
    });
}

fn meet_the_limit_at_once(dir: &Path) {
    let dir = dir.to_owned();
    run(async move |app| {
        app.mount("session", json!({})).await;
        app.mount("persistence", json!({ "dir": dir })).await;
        let session = app.service::<Sessions>().restore("one", vec![]).unwrap();

        let note = super::EventBody::ignorable("test/note", &"x".repeat(3000)).unwrap();
        let failed = session.append(note).unwrap_err().to_string();

        assert!(failed.ends_with("one.jsonl: only a part could be written"), "{failed}");
    });
}

fn meet_the_limit(dir: &Path) {
    let dir = dir.to_owned();
    run(async move |app| {
        app.mount("session", json!({})).await;
        app.mount("persistence", json!({ "dir": dir })).await;
        let session = app.service::<Sessions>().restore("one", vec![]).unwrap();
        let heard = app.record(|it: &SessionEvent| it.event.seq);

        let start = super::EventBody::TurnStart { turn: 1, format: 1, cwd: String::new() };
        let began = session.append(start).err();
        let note = || super::EventBody::ignorable("test/note", &"x".repeat(300)).unwrap();
        let met = began.or_else(|| (0..100).find_map(|_| session.append(note()).err()));
        let failed = met.expect("the limit was met").to_string();

        let text = fs::read_to_string(dir.join("one.jsonl")).unwrap_or_default();
        assert_eq!(text.lines().count(), session.len());
        assert_eq!(heard.borrow().len(), session.len());
        assert_eq!(failed.contains("--repair one"), session.is_mid_turn(), "{failed}");
        assert!(session.append(note()).unwrap_err().to_string().contains("takes no more events"));
    });
}
