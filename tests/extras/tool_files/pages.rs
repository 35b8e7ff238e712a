//! `read`: pages, and what is no text.

use std::{fs, os::unix::net::UnixListener};

use nix::{sys::stat::Mode, unistd::mkfifo};
use serde_json::json;

use super::desk;

#[test]
fn lines_come_with_their_numbers_and_without_their_ends() {
    desk(async |desk| {
        desk.put("a", "\u{feff}one\r\ntwo\n\nfour");

        assert_eq!(desk.read("a").await, "     1\tone\n     2\ttwo\n     3\t\n     4\tfour");
    });
}

#[test]
fn a_page_ends_after_2000_lines_or_51200_bytes_and_says_how_to_go_on() {
    desk(async |desk| {
        desk.put("lines", "x\n".repeat(2001));
        desk.put("bytes", format!("{}\n", "y".repeat(1000)).repeat(100));

        let lines = desk.read("lines").await;
        let rest = desk.done("read", json!({ "file_path": "lines", "offset": 2001 })).await;
        let bytes = desk.read("bytes").await;

        assert!(
            lines.ends_with("  2000\tx\n\n[lines 1 to 2000; go on with offset 2001]"),
            "{lines}"
        );
        assert_eq!(rest, "  2001\tx");
        assert!(bytes.ends_with("\n\n[lines 1 to 50; go on with offset 51]"), "{bytes}");
        assert!(bytes.len() <= 51_300);
    });
}

#[test]
fn a_part_is_read_by_offset_and_limit() {
    desk(async |desk| {
        desk.put("a", "1\n2\n3\n4\n");
        let part = |offset, limit| json!({ "file_path": "a", "offset": offset, "limit": limit });

        let middle = desk.done("read", part(2, 2)).await;
        let end = desk.done("read", part(4, 9)).await;
        let beyond = desk.refused("read", part(5, 1)).await;
        let none = desk.refused("read", part(0, 1)).await;

        assert_eq!(middle, "     2\t2\n     3\t3\n\n[lines 2 to 3; go on with offset 4]");
        assert_eq!(end, "     4\t4");
        assert_eq!(beyond, "`a` has 4 lines, so none from 5 on");
        assert!(none.contains("`offset`"), "{none}");
    });
}

#[test]
fn a_long_line_is_cut_between_characters() {
    desk(async |desk| {
        desk.put("a", format!("{}\nb\n", "é".repeat(3000)));

        let page = desk.read("a").await;

        let cut =
            format!("     1\t{}… [cut: this line has 6000 bytes]\n     2\tb", "é".repeat(2000));
        assert_eq!(page, cut);
    });
}

#[test]
fn a_file_larger_than_memory_is_read_page_by_page_and_never_changed() {
    desk(async |desk| {
        desk.put("huge", "first\n");
        let file = fs::OpenOptions::new().write(true).open(desk.root.join("huge")).unwrap();
        file.set_len(1 << 40).unwrap();

        let first = desk.done("read", json!({ "file_path": "huge", "limit": 1 })).await;
        let zeros = desk.refused("read", json!({ "file_path": "huge", "offset": 2 })).await;
        let over = desk.refused("write", json!({ "file_path": "huge", "content": "x" })).await;

        assert_eq!(first, "     1\tfirst\n\n[lines 1 to 1; go on with offset 2]");
        assert_eq!(zeros, "`huge` is binary, not text; look at it with a command");
        assert!(over.contains("change files up to 8388608"), "{over}");
    });
}

#[test]
fn what_is_no_text_is_refused_or_shown_as_such() {
    desk(async |desk| {
        desk.put("empty", "");
        desk.put("binary", b"a\0b");
        desk.put("latin", b"caf\xe9\nplain\n");

        assert_eq!(desk.read("empty").await, "(the file is empty)");
        let binary = desk.refused("read", json!({ "file_path": "binary" })).await;
        assert_eq!(binary, "`binary` is binary, not text; look at it with a command");
        let latin = "     1\tcaf\u{fffd}\n     2\tplain\n\n[1 line holds bytes that are no UTF-8, shown as \u{fffd}]";
        assert_eq!(desk.read("latin").await, latin);
    });
}

#[test]
fn a_folder_a_pipe_a_socket_and_nothing_are_named_and_nobody_waits() {
    desk(async |desk| {
        fs::create_dir(desk.root.join("folder")).unwrap();
        mkfifo(&desk.root.join("pipe"), Mode::S_IRWXU).unwrap();
        let _socket = UnixListener::bind(desk.root.join("socket")).unwrap();
        let read = async |name: &str| desk.refused("read", json!({ "file_path": name })).await;

        let folder = "`folder` is a folder, not a file; see what is in it with glob";
        assert_eq!(read("folder").await, folder);
        assert_eq!(read("pipe").await, "`pipe` is a named pipe, not a regular file");
        assert_eq!(read("socket").await, "`socket` is a socket, not a regular file");
        assert_eq!(read("none").await, "`none` is not there; find what there is with glob");
        assert!(read(" ").await.starts_with("a path is missing"));
        assert!(read("a\0b").await.contains("cannot read `a␀b`"), "{}", read("a\0b").await);
    });
}
