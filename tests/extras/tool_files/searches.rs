//! `glob` and `grep`.

use std::fs;

use nix::{sys::stat::Mode, unistd::mkfifo};
use serde_json::{Value, json};

use super::{Desk, desk};

async fn glob(desk: &Desk<'_>, pattern: &str) -> String {
    desk.done("glob", json!({ "pattern": pattern })).await
}

async fn grep(desk: &Desk<'_>, pattern: &str) -> String {
    desk.done("grep", json!({ "pattern": pattern })).await
}

#[test]
fn glob_gives_sorted_paths_and_what_gitignore_names_is_left_out() {
    desk(async |desk| {
        for name in ["b.rs", "a/c.rs", "a/d/e.rs", "a/x.md", "out/f.rs", ".git/g.rs", ".ci/h.rs"] {
            desk.put(name, "");
        }
        desk.put(".gitignore", "out/\n");

        assert_eq!(glob(desk, "*.rs").await, ".ci/h.rs\na/c.rs\na/d/e.rs\nb.rs");
        assert_eq!(glob(desk, "a/*").await, "a/c.rs\na/d/\na/x.md");
        assert_eq!(glob(desk, "a/**/*.{rs,md}").await, "a/c.rs\na/d/e.rs\na/x.md");
        assert_eq!(glob(desk, "none*").await, "(no match)");
        let inner = json!({ "pattern": "*.rs", "path": "a/d" });
        assert_eq!(desk.done("glob", inner).await, "a/d/e.rs");
        let absolute = format!("{}/a/*.md", desk.root.display());
        assert_eq!(glob(desk, &absolute).await, "a/x.md");
    });
}

#[test]
fn glob_tells_the_first_100_paths_and_how_many_there_are() {
    desk(async |desk| {
        for number in 0..150 {
            desk.put(&format!("{number:03}"), "");
        }

        let found = glob(desk, "*").await;

        assert!(found.starts_with("000\n001\n"), "{found}");
        let end = "099\n\n[the first 100 of 150; a narrower pattern shows the others]";
        assert!(found.ends_with(end), "{found}");
    });
}

#[test]
fn patterns_that_are_none_are_refused_in_one_line() {
    desk(async |desk| {
        desk.put("file", "");
        let refused = async |tool: &str, arguments: Value| desk.refused(tool, arguments).await;

        let open = refused("glob", json!({ "pattern": "a[" })).await;
        let up = refused("glob", json!({ "pattern": "../*" })).await;
        let outside = refused("glob", json!({ "pattern": "/etc/*" })).await;
        let empty = refused("glob", json!({ "pattern": "" })).await;
        let file = refused("glob", json!({ "pattern": "*", "path": "file" })).await;
        let regex = refused("grep", json!({ "pattern": "a(b" })).await;
        let lines = refused("grep", json!({ "pattern": "a\nb" })).await;
        let filter = refused("grep", json!({ "pattern": "a", "glob": "{a" })).await;

        assert!(open.starts_with("`a[` is no pattern of paths: "), "{open}");
        assert!(up.contains("`..` leads nowhere"), "{up}");
        assert!(outside.contains("`/etc/*` is outside of"), "{outside}");
        assert!(empty.contains("it is empty"), "{empty}");
        assert!(file.contains("`file` is no folder"), "{file}");
        assert_eq!(regex, "`a(b` is no regular expression: unclosed group");
        assert!(lines.contains("a match is in one"), "{lines}");
        assert!(filter.starts_with("`{a` is no pattern of paths: "), "{filter}");
    });
}

#[test]
fn grep_gives_path_number_and_line_sorted_by_path() {
    desk(async |desk| {
        desk.put("b", "x\nfound it\r\ny\nfound again");
        desk.put("a/c.rs", "no\nfound\n");
        desk.put("ignored", "found\n");
        desk.put(".gitignore", "ignored\n");
        desk.put(".git/config", "found\n");
        desk.put("binary", b"found\n\0");

        assert_eq!(grep(desk, "found").await, "a/c.rs:2:found\nb:2:found it\nb:4:found again");
        assert_eq!(grep(desk, "^found$").await, "a/c.rs:2:found");
        assert_eq!(grep(desk, "it$").await, "b:2:found it");
        assert_eq!(grep(desk, "nothing").await, "(no match)");
        let filtered = json!({ "pattern": "FOUND", "glob": "*.rs", "ignore_case": true });
        assert_eq!(desk.done("grep", filtered).await, "a/c.rs:2:found");
        let one = json!({ "pattern": "found", "path": "ignored" });
        assert_eq!(desk.done("grep", one).await, "ignored:1:found");
        let binary = json!({ "pattern": "found", "path": "binary" });
        assert_eq!(desk.done("grep", binary).await, "(no match: the file is binary)");
    });
}

#[test]
fn a_match_is_within_one_line() {
    desk(async |desk| {
        desk.put("a", "one\n\ntwo three\n");

        assert_eq!(grep(desk, r"\s+").await, "a:3:two three");
        assert_eq!(grep(desk, r"e\s+t").await, "(no match)");
        assert_eq!(grep(desk, r"[^x]+e$").await, "a:1:one\na:3:two three");
        assert_eq!(grep(desk, "^$").await, "a:2:");
        assert_eq!(grep(desk, "(?s)one.*three").await, "(no match)");
        assert_eq!(grep(desk, "x*").await, "a:1:one\na:2:\na:3:two three");
    });
}

#[test]
fn lines_are_numbered_right_however_the_file_is_cut_into_pieces() {
    desk(async |desk| {
        let lines: Vec<_> = (1..=30_000).map(|it| format!("line {it}")).collect();
        let long = format!("{}needle{}", "x".repeat(200_000), "y".repeat(5000));
        desk.put("a", format!("{}\n{long}\nneedle", lines.join("\n")));

        let found = grep(desk, "needle|line 29999").await;
        let lines: Vec<_> = found.lines().collect();

        assert_eq!(lines[0], "a:29999:line 29999");
        assert!(lines[1].starts_with("a:30001:…xxx"), "{found}");
        assert!(
            lines[1].contains("xneedley") && lines[1].ends_with("… [of 205006 bytes]"),
            "{found}"
        );
        assert!(lines[1].len() < 2100);
        assert_eq!(lines[2], "a:30002:needle");
    });
}

#[test]
fn grep_tells_the_first_250_lines_and_that_there_are_more() {
    desk(async |desk| {
        for name in ["c", "a", "b"] {
            desk.put(name, "x\n".repeat(100));
        }
        desk.put("d", "x\n".repeat(1000));

        let found = grep(desk, "x").await;
        let lines: Vec<_> = found.lines().collect();

        assert_eq!((lines[0], lines[249]), ("a:1:x", "c:50:x"));
        assert_eq!(lines[251], "[the first 250 matches; there are more, search for less]");
        assert_eq!(lines.len(), 252);
    });
}

#[test]
fn a_pipe_in_the_tree_holds_no_search_up() {
    desk(async |desk| {
        mkfifo(&desk.root.join("pipe"), Mode::S_IRWXU).unwrap();
        desk.put("a", "x\n");
        let pipe = json!({ "pattern": "x", "path": "pipe" });

        assert_eq!(grep(desk, "x").await, "a:1:x");
        assert_eq!(desk.done("grep", pipe).await, "(no match)");
        fs::remove_file(desk.root.join("pipe")).unwrap();
    });
}

#[test]
fn a_stopped_turn_ends_a_search() {
    desk(async |desk| {
        desk.put("a", "x\n");
        desk.rig.cancel.cancel();

        let result = desk.call("grep", json!({ "pattern": "x" })).await;

        assert_eq!(result.content, "Error: aborted: the turn was stopped");
    });
}
