//! A16, A32: what came from a model, a command, a file or the command line never commands the terminal, and nothing of our
//! own does where it does not belong.

use crate::support::{Ended, Folder, Running, list, script, scripted, texts};
use crate::terminal::{CTRL_D, Terminal};

/// The full forms: CSI, OSC with both ends, DCS, APC, C1, DEL, bell, a private mode, a direction mark.
const HOSTILE: &str = "A\x1b[2J\x1b]0;T\x07\x1b]52;c;aGk=\x1b\\\x1bPq#0\x1b\\\x1b_G\x1b\\\u{9b}2J\u{9d}0;x\u{9c}\x7f\x08\x1b[?25l\u{202e}B";

fn assert_harmless(shown: &str) {
    let command = shown.find(|it: char| it.is_control() && !matches!(it, '\n' | '\t'));
    assert_eq!(command, None, "{shown:?}");
}

fn assert_shown_harmless(ended: &Ended, text: &str) {
    let all = format!("{}{}", ended.out, ended.err);
    assert_harmless(&all);
    // JSON is for programs, and holds what it must as it is.
    assert!(!all.contains('\u{202e}') || all.starts_with("{\"schema\""), "{all:?}");
    assert!(all.contains(text), "{all}");
}

/// As a double-quoted text of YAML.
fn yaml(text: &str) -> String {
    let json = serde_json::to_string(text).unwrap();
    let written = |it: char| match it {
        '\u{7f}'..='\u{9f}' => format!("\\u{:04x}", u32::from(it)),
        _ => it.to_string(),
    };
    json.chars().map(written).collect()
}

#[test]
fn a_16_what_a_model_says_in_one_piece_or_in_many_is_harmless() {
    let pieces: Vec<_> = HOSTILE.chars().map(|it| yaml(&it.to_string())).collect();
    for line in [
        format!("{{content: {}}}", yaml(HOSTILE)),
        format!("{{pieces: [{}]}}", pieces.join(", ")),
        format!("{{pieces: [{0}], retry: {0}, content: {0}}}", yaml(HOSTILE)),
        format!("{{error: {}}}", yaml(HOSTILE)),
    ] {
        let folder = Folder::with(&scripted(&line));

        for arguments in [&["hi"][..], &["-q", "hi"], &["-vv", "hi"], &["--json", "hi"]] {
            assert_shown_harmless(&folder.run(arguments, ""), "2J");
        }
    }
}

#[test]
fn a_16_what_a_command_prints_is_harmless_and_progress_bars_are_short() {
    let command = r"printf 'A\033[2J\033]0;T\007\033]52;c;aGk=\007\033[?25l\233 2JB\n'; for i in $(seq 500); do printf '\r%d%%' $i; done; echo";
    let line = format!("{{tool: bash, args: {{command: {}}}}}, {{content: done}}", yaml(command));
    let folder = Folder::with(&list(&[("llm", &script(&line)), ("approval", "")]));

    let ended = folder.run(&["hi"], "");

    assert_shown_harmless(&ended, "500%");
    let result = ended.out.split("[result] ").nth(1).unwrap();
    assert!(result.starts_with('A') && result.contains("2JB\n"), "{result}");
}

#[test]
fn a_11_bytes_that_are_no_text_are_shown_and_logged_as_text() {
    let command = r"printf 'a\377\376b\000c\n'; printf '\345\223'; printf '\210\n'";
    let line = format!("{{tool: bash, args: {{command: {}}}}}, {{content: done}}", yaml(command));
    let folder = Folder::with(&list(&[("llm", &script(&line)), ("approval", "")]));

    let ended = folder.run(&["hi"], "");

    assert_shown_harmless(&ended, "b␀c\n哈\n");
    assert_eq!(texts(&folder.log(), "tool/result").len(), 1);
}

#[test]
fn a_16_names_of_tools_and_their_arguments_are_harmless_also_in_the_question() {
    let unknown = format!("{{tool: {0}, args: {{{0}: {0}}}}}", yaml(HOSTILE));
    let asked = format!("{{tool: bash, args: {{command: {}}}}}", yaml(HOSTILE));
    let folder = Folder::with(&scripted(&format!("{unknown}, {asked}, {{content: done}}")));

    let ended = folder.run(&["hi"], "n\n");

    assert_shown_harmless(&ended, "Allow bash {\"command\":\"A\\u001b[2J");
    assert_eq!(texts(&folder.log(), "tool/result").len(), 2);
}

#[test]
fn a_16_the_list_of_sessions_and_a_resumed_history_are_harmless() {
    let folder = Folder::with(&scripted("{content: Hello}"));
    folder.run(&[HOSTILE], "");

    assert_shown_harmless(&folder.run(&["--sessions"], ""), "A␛[2J");
    assert_shown_harmless(&folder.run(&["-c", HOSTILE], ""), "Hello");
    assert_shown_harmless(&folder.run(&["-c"], &format!("{HOSTILE}\n")), "Hello");
}

#[test]
fn a_16_names_in_messages_about_the_command_line_and_the_configuration_are_harmless() {
    let folder = Folder::with(&scripted("{content: Hello}"));
    let (flag, set) = (format!("--x{HOSTILE}"), format!("{HOSTILE}.x=1"));
    folder.write("other.yml", &format!("- {{id: {0}, name: {0}, {0}: 1}}\n", yaml(HOSTILE)));
    folder.write("unknown.yml", &format!("{}- {{id: x, name: {}}}\n", list(&[]), yaml(HOSTILE)));

    for arguments in [
        &[&*flag][..],
        &["--set", &set, "hi"],
        &["--disable", HOSTILE, "hi"],
        &["--config", HOSTILE, "hi"],
        &["--config", "other.yml", "hi"],
        &["--config", "unknown.yml", "hi"],
        &["--config", "unknown.yml", "--check"],
        &["--resume", HOSTILE, "hi"],
        &["--repair", HOSTILE],
    ] {
        let ended = folder.run(arguments, "");

        assert_shown_harmless(&ended, "A");
        assert_eq!(ended.code(), 2, "{arguments:?}: {ended:?}");
    }
}

#[test]
fn a_32_no_stream_that_is_no_terminal_gets_an_escape_byte() {
    let folder = Folder::new();
    for arguments in [
        &["Say hello"][..],
        &["--wrong"],
        &["--help"],
        &["--version"],
        &["-vv", "Say hello"],
        &["--sessions"],
        &["--check"],
        &[],
    ] {
        let mut command = folder.command(arguments);
        command.env("TERM", "xterm-256color").env("CLICOLOR_FORCE", "1");

        let mut running = Running::start(command);
        running.end_of_input();
        let ended = running.ended();

        assert!(![&ended.out, &ended.err].iter().any(|it| it.contains('\x1b')), "{ended:?}");
    }
}

#[test]
fn a_32_in_a_terminal_nothing_is_styled_and_without_an_editor_nothing_is_moved() {
    let variables: [(&str, &[(&str, &str)]); 4] = [
        ("an editor", &[("TERM", "xterm-256color")]),
        ("NO_COLOR", &[("TERM", "xterm-256color"), ("NO_COLOR", "1")]),
        ("dumb", &[("TERM", "dumb")]),
        ("no TERM", &[]),
    ];
    for (name, variables) in variables {
        let folder = Folder::with(&list(&[]));
        let mut command = folder.command(&[]);
        command.envs(variables.iter().copied());
        let mut terminal = Terminal::start_as_it_is(&command);

        terminal.wait_for("you> ");
        terminal.type_keys("hi\r");
        terminal.wait_for("[y/N] ");
        terminal.type_keys("maybe\r");
        terminal.wait_for("you> ");
        folder.save("- [\n");
        terminal.wait_for("not applied");
        terminal.type_keys(CTRL_D);
        let (shown, status) = terminal.ended();

        let styles = shown.split("\x1b[").skip(1).filter(|it| {
            it.trim_start_matches(|it: char| it.is_ascii_digit() || it == ';').starts_with('m')
        });
        assert_eq!((styles.count(), status), (0, 0), "{name}: {shown:?}");
        let can_edit = variables.first().is_some_and(|it| it.1.starts_with("xterm"));
        assert_eq!(shown.contains('\x1b'), can_edit, "{name}: {shown:?}");
    }
}

#[test]
fn a_32_each_stream_is_judged_for_itself() {
    for (line, file) in
        [("nano-cordis > out.txt", "out.txt"), ("nano-cordis 2> err.txt", "err.txt")]
    {
        let folder = Folder::with(&scripted("{content: Hello}"));
        let mut terminal = Terminal::start(folder.shell_command(line));

        terminal.wait_for("you> ");
        terminal.type_keys("hi\r");
        terminal.wait_for("you> ");
        terminal.type_keys(CTRL_D);
        terminal.ended();

        let written = std::fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(!written.contains('\x1b'), "{written:?}");
    }
}
