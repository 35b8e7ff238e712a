//! `write` and `edit`: what they do, what they keep, and what they refuse.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt},
};

use nano_cordis::harness::tools::Tools;
use serde_json::{Value, json};

use super::{desk, edit};

fn write(name: &str, content: &str) -> Value {
    json!({ "file_path": name, "content": content })
}

#[test]
fn a_new_file_needs_no_read_and_its_folders_are_made() {
    desk(async |desk| {
        assert_eq!(desk.done("write", write("a/b/c", "x\n")).await, "created `a/b/c`");
        assert_eq!(desk.text("a/b/c"), "x\n");

        // What was written is known, so it can be changed at once.
        desk.edit("a/b/c", "x", "y").await;

        assert_eq!(desk.text("a/b/c"), "y\n");
        assert_eq!(desk.names(), ["a"]);
        assert_eq!(fs::read_dir(desk.root.join("a/b")).unwrap().count(), 1);
    });
}

#[test]
fn a_file_that_is_there_must_have_been_read() {
    desk(async |desk| {
        desk.put("a", "1\n");
        let said = "`a` was not read in this session; read it, then retry";

        assert_eq!(desk.refused("write", write("a", "2\n")).await, said);
        assert_eq!(desk.refused("edit", edit("a", "1", "2")).await, said);
        desk.read("a").await;
        let done = desk.done("write", write("a", "2\n")).await;

        assert_eq!(done, "updated `a`\n\n--- a\n+++ a\n@@ -1 +1 @@\n-1\n+2");
        assert_eq!(desk.text("a"), "2\n");
    });
}

#[test]
fn a_read_of_one_session_is_none_of_another() {
    desk(async |desk| {
        desk.put("a", "1\n");
        let tools = desk.rig.service::<Tools>();
        let [one, other] = [desk.rig.session(), desk.rig.session()];
        let request = |name: &str, arguments: Value, session: &_| {
            let session = Some(std::rc::Rc::clone(session));
            let call = crate::shared::call(name, arguments.to_string());
            nano_cordis::harness::tools::CallRequest { session, ..call }
        };

        tools.execute(request("read", json!({ "file_path": "a" }), &one)).await;
        let refused = tools.execute(request("edit", edit("a", "1", "2"), &other)).await;
        let done = tools.execute(request("edit", edit("a", "1", "3"), &one)).await;

        assert!(refused.content.contains("was not read in this session"), "{refused:?}");
        assert!(!done.is_error, "{done:?}");
    });
}

#[test]
fn a_file_that_has_changed_since_must_be_read_again() {
    desk(async |desk| {
        desk.put("a", "1\n");
        desk.read("a").await;
        let time = fs::metadata(desk.root.join("a")).unwrap().modified().unwrap();
        // As long as before, and as old.
        desk.put("a", "2\n");
        let file = fs::OpenOptions::new().write(true).open(desk.root.join("a")).unwrap();
        file.set_modified(time).unwrap();

        let said = "`a` has changed since it was read; read it again, then retry";
        assert_eq!(desk.refused("edit", edit("a", "2", "3")).await, said);
        assert_eq!(desk.refused("write", write("a", "3\n")).await, said);
        assert_eq!(desk.text("a"), "2\n");
        desk.read("a").await;
        desk.edit("a", "2", "3").await;
        assert_eq!(desk.text("a"), "3\n");
    });
}

#[test]
fn the_old_text_must_be_there_exactly_once() {
    desk(async |desk| {
        desk.put("a", "x y x\n");
        desk.read("a").await;
        let all =
            json!({ "file_path": "a", "old_string": "x", "new_string": "z", "replace_all": true });

        let none = desk.refused("edit", edit("a", "q", "z")).await;
        let two = desk.refused("edit", edit("a", "x", "z")).await;
        let same = desk.refused("edit", edit("a", "y", "y")).await;
        let empty = desk.refused("edit", edit("a", "", "y")).await;
        desk.done("edit", all).await;

        assert!(none.starts_with("`old_string` is not in `a`; read it again"), "{none}");
        assert!(two.starts_with("`old_string` is 2 times in `a`; give more"), "{two}");
        assert!(same.starts_with("`old_string` and `new_string` are the same"), "{same}");
        assert!(empty.starts_with("`old_string` is empty"), "{empty}");
        assert_eq!(desk.text("a"), "z y z\n");
    });
}

#[test]
fn line_ends_marks_other_bytes_and_a_missing_last_newline_stay() {
    desk(async |desk| {
        desk.put("windows", "a\r\nb\r\nc");
        desk.put("whole", "\u{feff}a\r\nb\r\n");
        desk.put("latin", b"caf\xe9\nx\n");
        for name in ["windows", "whole", "latin"] {
            desk.read(name).await;
        }

        desk.edit("windows", "a\nb", "x\ny\nz").await;
        desk.done("write", write("whole", "c\nd\n")).await;
        desk.edit("latin", "x", "y").await;
        let mixed = desk.refused("edit", edit("latin", "y", "é")).await;

        assert_eq!(desk.text("windows"), "x\r\ny\r\nz\r\nc");
        assert_eq!(desk.text("whole"), "\u{feff}c\r\nd\r\n");
        assert_eq!(desk.bytes("latin"), b"caf\xe9\ny\n");
        assert!(mixed.starts_with("`latin` is not UTF-8"), "{mixed}");
    });
}

#[test]
fn the_mode_stays_and_nothing_is_left_beside_the_file() {
    desk(async |desk| {
        desk.put("a", "1\n");
        fs::set_permissions(desk.root.join("a"), Permissions::from_mode(0o4751)).unwrap();
        desk.read("a").await;

        desk.edit("a", "1", "2").await;

        assert_eq!(fs::metadata(desk.root.join("a")).unwrap().mode() & 0o7777, 0o4751);
        assert_eq!(desk.names(), ["a"]);
    });
}

#[test]
fn what_cannot_be_a_file_is_refused() {
    desk(async |desk| {
        desk.put("file", "");
        fs::create_dir(desk.root.join("folder")).unwrap();
        let large = "x".repeat((8 << 20) + 1);

        let folder = desk.refused("write", write("folder", "")).await;
        let new = desk.refused("write", write("new/", "")).await;
        let below = desk.refused("write", write("file/x", "")).await;
        let upwards = desk.refused("write", write("new/../x", "")).await;
        let large = desk.refused("write", write("large", &large)).await;
        let missing = desk.refused("edit", edit("missing", "a", "b")).await;

        assert!(folder.starts_with("`folder` is a folder"), "{folder}");
        assert!(new.starts_with("`new` is a folder"), "{new}");
        assert!(below.starts_with("cannot read `file/x`"), "{below}");
        assert!(upwards.contains("`..` stands after a folder that is not there"), "{upwards}");
        assert!(large.starts_with("`large` has 8388609 bytes"), "{large}");
        assert!(missing.starts_with("`missing` is not there"), "{missing}");
        assert_eq!(desk.names(), ["file", "folder"]);
    });
}
