//! A33, A34: what is typed or pasted arrives as it was meant, in every script and in windows of every size.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Folder, Running, said, scripted};
use crate::terminal::{CTRL_D, Terminal};

const HELLO: &str = "{content: Hello}";

/// What the model gets when this is typed at the prompt of a window of so many columns.
fn typed(columns: u16, keys: &[&str]) -> Vec<String> {
    let folder = Folder::with(&scripted(HELLO));
    let mut terminal = Terminal::start_in(columns, folder.command(&[]));
    terminal.wait_for("you> ");
    for part in keys {
        terminal.type_keys(part);
    }
    terminal.wait_for("assistant> Hello");
    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_D);
    terminal.ended();
    said(&folder.log()).into_iter().map(str::to_owned).collect()
}

#[test]
fn a_33_wide_characters_can_be_edited_past_the_edge_of_the_window() {
    assert_eq!(typed(20, &["你好世界\x1b[D\x1b[D们\x7f啊\r"]), ["你好啊世界"]);
    assert_eq!(
        typed(20, &["一二三四五六七八九十百千\x1b[H零\x1b[F万\r"]),
        ["零一二三四五六七八九十百千万"]
    );
}

#[test]
fn a_33_a_window_of_no_size_or_a_tiny_one_does_not_matter() {
    for columns in [0, 1, 2, 5, 6] {
        assert_eq!(typed(columns, &["你好a\x1b[D世\r"]), ["你好世a"], "{columns}");
    }
}

#[test]
fn a_33_whatever_bytes_are_typed_the_terminal_is_left_as_it_was() {
    // Not those that end, stop or quit a program; all others, among them halves of characters and of keys.
    let is_harmless = |it: &u8| !matches!(it, 0 | 3 | 4 | 0x11 | 0x13 | 0x1a | 0x1c);
    let mut number = 7_u32;
    let mut noise = std::iter::repeat_with(move || {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        number.to_be_bytes()[0]
    });
    for term in ["xterm", "dumb"] {
        for _ in 0..5 {
            let folder = Folder::with(&scripted(HELLO));
            let mut command = folder.command(&[]);
            command.env("TERM", term);
            let mut terminal = Terminal::start_as_it_is(&command);
            terminal.wait_for("you> ");

            let bytes: Vec<u8> = noise.by_ref().filter(is_harmless).take(300).collect();
            terminal.type_bytes(&bytes);
            terminal.wait_for("\n");
            kill(Pid::from_raw(terminal.process_id()), Signal::SIGTERM).unwrap();
            let (before, after) = (terminal.modes_at_first.clone(), terminal.modes_at_the_end());

            assert_eq!((after, terminal.ended().1), (before, 143), "{term}: {bytes:?}");
        }
    }
}

#[test]
fn a_33_one_backspace_is_one_visible_character() {
    assert_eq!(typed(20, &["x👩\u{200d}👩\u{200d}👧a\x7f\x7f\r"]), ["x"]);
    assert_eq!(typed(20, &["xe\u{301}\x7f\r"]), ["x"]);
}

#[test]
fn a_33_a_long_line_survives_a_change_of_the_window() {
    let folder = Folder::with(&scripted(HELLO));
    let mut terminal = Terminal::start_in(20, folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys(&"漢".repeat(199));
    terminal.wait_for("漢");
    terminal.resize(40);
    terminal.type_keys("字\r");
    terminal.wait_for("assistant> Hello");
    terminal.type_keys(CTRL_D);
    terminal.ended();

    assert_eq!(said(&folder.log()), [format!("{}字", "漢".repeat(199))]);
}

#[test]
fn a_33_plain_lines_arrive_untouched_whatever_the_locale_says() {
    for locale in ["C", "POSIX", "en_US.UTF-8", "zh_CN.GBK"] {
        let folder = Folder::with(&scripted("{content: 好}"));
        let mut command = folder.command(&[]);
        command.env("LANG", locale).env("LC_ALL", locale);
        let mut running = Running::start(command);

        running.write("你好\n");
        running.end_of_input();

        assert_eq!(running.ended().out, "assistant> 好\n");
        assert_eq!(said(&folder.log()), ["你好"], "{locale}");
    }
}

#[test]
fn a_33_a_terminal_without_an_editor_takes_wide_characters_too() {
    let folder = Folder::with(&scripted(HELLO));
    let mut command = folder.command(&[]);
    command.env("TERM", "dumb").env("LANG", "C");
    let mut terminal = Terminal::start_as_it_is(&command);
    terminal.wait_for("you> ");
    terminal.type_keys("你好世界 👩\u{200d}👧\r");
    terminal.wait_for("assistant> Hello");
    terminal.type_keys(CTRL_D);
    terminal.ended();

    assert_eq!(said(&folder.log()), ["你好世界 👩\u{200d}👧"]);
}

#[test]
fn a_34_a_paste_is_one_message_and_none_of_its_bytes_is_a_key() {
    assert_eq!(typed(80, &["\x1b[200~one\ntwo\nthree\x1b[201~", "\r"]), ["one\ntwo\nthree"]);
    assert_eq!(typed(80, &["\x1b[200~one\rtwo\r\nthree\r\x1b[201~", "\r"]), ["one\ntwo\nthree\n"]);

    let keys = &typed(80, &["\x1b[200~a\x03b\x04c\x1b[Dd\x7fe\x15f\tg\x1b[201~", "\r"])[0];
    let letters: String = keys.chars().filter(char::is_ascii_lowercase).collect();
    assert!(letters.starts_with("abc") && letters.ends_with("defg"), "{keys:?}");
}

#[test]
fn a_34_lines_of_a_pipe_are_turns_in_order() {
    let folder = Folder::with(&scripted(HELLO));

    let ended = folder.run(&[], "a\nb\nc\n");

    assert_eq!((said(&folder.log()), ended.code()), (vec!["a", "b", "c"], 0));
}

#[test]
fn a_34_a_very_long_paste_is_taken_in_seconds() {
    let begun = Instant::now();
    let pasted = format!("\x1b[200~{}\x1b[201~", "x".repeat(1_000_000));

    let said = typed(80, &[&pasted, "\r"]);

    assert_eq!(said[0].len(), 1_000_000);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn a_34_a_very_long_piped_line_is_one_turn() {
    let folder = Folder::with(&scripted(HELLO));
    let line = "漢".repeat(1_000_000);

    folder.run(&[], &format!("{line}\nnext\n"));

    assert_eq!(said(&folder.log()), [line.as_str(), "next"]);
}
