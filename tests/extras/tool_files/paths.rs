//! No tool leaves its root.

use std::{fs, os::unix::fs::symlink};

use serde_json::json;

use super::{desk, edit};

#[test]
fn nothing_outside_of_the_root_is_read_written_or_searched() {
    desk(async |desk| {
        let outside = tempfile::tempdir().unwrap();
        let secret = outside.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        symlink(outside.path(), desk.root.join("folder")).unwrap();
        symlink(&secret, desk.root.join("file")).unwrap();
        symlink(outside.path().join("new"), desk.root.join("dangling")).unwrap();
        let absolute = secret.to_str().unwrap();
        let up = format!("folder/../{}", "../".repeat(30)) + &absolute[1..];
        let paths =
            [absolute, &up, "..", "../x", "/etc/passwd", "folder/secret", "folder/new/x", "file"];

        for path in paths {
            let read = desk.refused("read", json!({ "file_path": path })).await;
            let write = desk.refused("write", json!({ "file_path": path, "content": "" })).await;
            let edit = desk.refused("edit", edit(path, "secret", "x")).await;
            let glob = desk.refused("glob", json!({ "pattern": "*", "path": path })).await;
            let grep = desk.refused("grep", json!({ "pattern": "s", "path": path })).await;
            for said in [read, write, edit, glob, grep] {
                assert!(said.contains("is outside of"), "{path}: {said}");
            }
        }

        let dangling =
            desk.refused("write", json!({ "file_path": "dangling", "content": "" })).await;
        assert!(dangling.contains("which is not there"), "{dangling}");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
        assert_eq!(desk.done("grep", json!({ "pattern": "secret" })).await, "(no match)");
    });
}

#[test]
fn paths_and_links_within_the_root_are_good_in_every_form() {
    desk(async |desk| {
        desk.put("a/b", "text\n");
        symlink("a", desk.root.join("link")).unwrap();
        symlink("a/b", desk.root.join("file")).unwrap();
        let absolute = desk.root.join("a/b");

        for path in ["a/b", "./a/../a/b", "link/b", "file", absolute.to_str().unwrap()] {
            assert_eq!(desk.read(path).await, "     1\ttext", "{path}");
        }
        desk.edit("file", "text", "other").await;

        assert_eq!(desk.text("a/b"), "other\n");
        assert!(desk.root.join("file").is_symlink());
    });
}

#[test]
fn a_root_that_is_no_folder_is_an_error_that_names_it() {
    desk(async |desk| {
        desk.put("file", "");
        let root = desk.root.join("file");

        let list = super::list(&root, "");
        desk.rig.save(&list).await.unwrap();
        let problem = desk.rig.service::<nano_cordis::cordis::Loader>().problem().unwrap();

        assert!(problem.contains("file` is no folder that can be used"), "{problem}");
        desk.rig.take_reports();
    });
}
