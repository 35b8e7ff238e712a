//! What makes a conversation at a terminal comfortable: commands, history, lines of several lines, completion, looks.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Folder, WAIT_FOR_GO, events, list, reason, said, script, scripted};
use crate::terminal::{CTRL_D, Terminal};

const HELLO: &str = "{content: Hello}";

/// A conversation at a terminal, whose prompt is there.
fn conversation(folder: &Folder) -> Terminal {
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal
}

/// Types a command, and waits for what it says and for the next prompt.
fn command(terminal: &mut Terminal, line: &str, said: &[&str]) {
    terminal.type_keys(&format!("{line}\r"));
    for it in said {
        terminal.wait_for(it);
    }
    terminal.wait_for("you> ");
}

fn leave(mut terminal: Terminal) -> (String, u32) {
    terminal.type_keys(CTRL_D);
    terminal.ended()
}

#[test]
fn help_lists_the_commands_and_none_of_them_reaches_the_model() {
    let folder = Folder::with(&scripted(HELLO));
    let mut terminal = conversation(&folder);

    command(&mut terminal, "/help", &["/clear", "/exit", "/help", "/model", "/plugins", "/tools"]);
    leave(terminal);

    assert_eq!(folder.sessions().len(), 0);
}

#[test]
fn tools_and_plugins_show_what_is_there_and_what_each_has_registered() {
    let folder = Folder::with(&scripted(HELLO));
    let mut terminal = conversation(&folder);

    command(&mut terminal, "/tools", &["bash  Run a command with bash."]);
    command(
        &mut terminal,
        "/plugins",
        &[
            "session      session      active",
            "provides session",
            "tools bash",
            "approval     approval     active",
            "listens to loader/applied, tools/changed, tools/pre-execute",
        ],
    );
    leave(terminal);
}

#[test]
fn an_unknown_command_is_named_and_paths_and_blanks_make_a_turn() {
    let folder = Folder::with(&scripted("{content: Hello}, {content: Hello}"));
    let mut terminal = conversation(&folder);

    command(&mut terminal, "/modle x", &["there is no command /modle; /help lists them"]);
    command(&mut terminal, "/etc/hosts is what?", &["assistant> Hello"]);
    command(&mut terminal, " /modle x", &["assistant> Hello"]);
    leave(terminal);

    assert_eq!(said(&folder.log()), ["/etc/hosts is what?", " /modle x"]);
}

#[test]
fn in_a_pipe_every_line_is_a_turn() {
    let folder = Folder::with(&scripted(HELLO));

    folder.run(&[], "/help\n/exit\n");

    assert_eq!(said(&folder.log()), ["/help", "/exit"]);
}

#[test]
fn model_says_which_one_is_asked_and_takes_another_one_from_the_next_request_on() {
    let folder = Folder::with(&scripted(HELLO));
    let mut terminal = conversation(&folder);

    command(&mut terminal, "/model", &["the model is fake"]);
    command(&mut terminal, "one", &["assistant> Hello"]);
    command(&mut terminal, "/model big two", &["the name of a model has no blanks in it"]);
    command(&mut terminal, "/model big", &["the model is big from now on"]);
    command(&mut terminal, "two", &["assistant> Hello"]);
    command(&mut terminal, "/model", &["the model is big"]);
    leave(terminal);

    let log = folder.log();
    let headers = log.iter().filter(|it| it["type"] == "request/header");
    let models: Vec<_> = headers.map(|it| it["data"]["header"]["model"].clone()).collect();
    assert_eq!(models, ["fake", "big"]);
}

#[test]
fn clear_begins_a_new_session_and_names_the_one_before() {
    let folder = Folder::with(&scripted(HELLO));
    let mut terminal = conversation(&folder);

    command(&mut terminal, "one", &["assistant> Hello"]);
    command(
        &mut terminal,
        "/clear",
        &["session 2", "this is a new session; the one before it was 2"],
    );
    command(&mut terminal, "two", &["assistant> Hello"]);
    command(&mut terminal, "/sessions", &["closed   two", "closed   one"]);
    leave(terminal);

    let logs: Vec<_> = folder.sessions().iter().map(|it| events(it)).collect();
    let mut said: Vec<_> = logs.iter().map(|it| said(it)).collect();
    said.sort();
    assert_eq!(said, [["one"], ["two"]]);
}

#[test]
fn a_turn_after_clear_is_closed_in_its_log_when_the_program_is_told_to_end() {
    let lines = [("llm", &*script(WAIT_FOR_GO)), ("approval", "")];
    let folder = Folder::with(&list(&lines));
    let mut terminal = conversation(&folder);
    command(&mut terminal, "/clear", &["this is a new session"]);
    terminal.type_keys("two\r");
    terminal.wait_for("[tool] bash");

    kill(Pid::from_raw(terminal.process_id()), Signal::SIGTERM).unwrap();
    let (_, status) = terminal.ended();

    assert_eq!((reason(&folder.log()), status), ("aborted", 143));
}

#[test]
fn exit_ends_the_conversation() {
    let folder = Folder::with(&scripted(HELLO));
    let mut terminal = conversation(&folder);

    terminal.type_keys("/exit\r");
    let (_, status) = terminal.ended();

    assert_eq!(status, 0);
}

#[test]
fn a_command_is_completed() {
    let folder = Folder::with(&scripted(HELLO));
    let mut terminal = conversation(&folder);

    terminal.type_keys("/plu\t\r");
    terminal.wait_for("provides session");
    terminal.wait_for("you> ");
    leave(terminal);
}

#[test]
fn a_path_is_completed_and_a_name_with_control_characters_is_not_offered() {
    let folder = Folder::with(&scripted(HELLO));
    folder.write("a-long-name.txt", "");
    folder.write("b\x1b]0;title\x07.txt", "");
    let mut terminal = conversation(&folder);

    command(&mut terminal, "read ./a-lo\t ./b\t", &["assistant> Hello"]);
    leave(terminal);

    assert_eq!(said(&folder.log()), ["read ./a-long-name.txt ./b"]);
}

#[test]
fn a_line_goes_on_behind_a_backslash_and_after_alt_enter() {
    let folder = Folder::with(&scripted(HELLO));
    let mut terminal = conversation(&folder);

    terminal.type_keys("one\\\r");
    terminal.type_keys("two\x1b\r");
    command(&mut terminal, "three\\\\", &["assistant> Hello"]);
    leave(terminal);

    assert_eq!(said(&folder.log()), ["one\ntwo\nthree\\\\"]);
}

#[test]
fn what_was_typed_is_found_again_in_the_next_run_and_nobody_else_can_read_it() {
    let folder = Folder::with(&scripted(HELLO));
    let mut terminal = conversation(&folder);
    command(&mut terminal, "the first line 你好", &["assistant> Hello"]);
    command(&mut terminal, "another", &["assistant> Hello"]);
    leave(terminal);

    let mut terminal = conversation(&folder);
    // Ctrl-R searches, and the second Enter sends what was found.
    terminal.type_keys("\x12first");
    terminal.wait_for("the first line");
    terminal.type_keys("\r");
    terminal.wait_for("assistant> Hello");
    terminal.wait_for("you> ");
    leave(terminal);

    let logs: Vec<_> = folder.sessions().iter().map(|it| events(it)).collect();
    assert!(logs.iter().any(|it| said(it) == ["the first line 你好"]), "{logs:?}");
    let mode = fs::metadata(folder.path().join(".nano/history")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn no_history_is_written_through_a_link() {
    let folder = Folder::with(&scripted(HELLO));
    fs::create_dir(folder.path().join(".nano")).unwrap();
    let outside = folder.path().join("outside");
    fs::write(&outside, "kept").unwrap();
    std::os::unix::fs::symlink(&outside, folder.path().join(".nano/history")).unwrap();
    let mut terminal = conversation(&folder);

    command(&mut terminal, "one", &["assistant> Hello"]);
    leave(terminal);

    assert_eq!(fs::read_to_string(&outside).unwrap(), "kept");
}

#[test]
fn compact_makes_a_summary_and_the_next_request_has_it_in_place_of_the_rest() {
    let words = "word ".repeat(100);
    let lines = format!("{{content: '{words}'}}, {{content: Short.}}, {{content: Done.}}");
    let lines = lines.replace("Short.", "Short., delayMs: 3000");
    let model = format!("name: llm-fake, config: {{script: [{lines}], repeat: error}}");
    let extra = "{id: compaction, name: compaction}";
    let folder = Folder::with(&format!("{}- {extra}\n", list(&[("llm", &model)])));
    let mut terminal = conversation(&folder);

    command(&mut terminal, "/compact", &["there is nothing to compact yet"]);
    command(&mut terminal, "one", &["word word"]);
    command(&mut terminal, "/compact the numbers", &[" /compact, ", "compacted 1 messages"]);
    command(&mut terminal, "/compact", &["there is nothing to compact yet"]);
    command(&mut terminal, "two", &["assistant> Done."]);
    leave(terminal);

    let log = folder.log();
    let asked = log.iter().find(|it| it["type"] == "compaction/request").unwrap();
    let instruction = asked["data"]["instruction"].as_str().unwrap();
    assert!(instruction.ends_with("\n\nthe numbers"), "{instruction}");
    let summary = log.iter().find(|it| it["type"] == "compaction/summary").unwrap();
    assert_eq!(summary["data"]["message"]["role"], "assistant");
    let resumed = folder.run(&["--continue", "three"], "");
    assert_eq!(resumed.code(), 0, "{}", resumed.err);
}

#[test]
fn a_reply_in_markdown_has_looks_on_a_capable_terminal_and_none_elsewhere() {
    let reply = "{content: \"# Title\\nsome **bold** word\"}";
    let folder = Folder::with(&scripted(reply));
    let mut terminal = conversation(&folder);
    command(&mut terminal, "one", &["\x1b[1m# Title\x1b[22m", "\x1b[1m**bold**\x1b[22m word"]);
    leave(terminal);

    let mut colourless = folder.command(&[]);
    colourless.env("NO_COLOR", "1");
    let mut terminal = Terminal::start(colourless);
    terminal.wait_for("you> ");
    command(&mut terminal, "one", &["# Title", "some **bold** word"]);
    let (shown, _) = leave(terminal);
    let piped = folder.run(&["one"], "");

    assert!(!shown.contains("\x1b[1m"), "{shown:?}");
    assert_eq!(piped.out, "assistant> # Title\nsome **bold** word\n");
}

#[test]
fn lines_that_are_typed_while_a_turn_runs_are_the_next_turns() {
    let lines = format!("{WAIT_FOR_GO}, {{content: First}}");
    let folder = Folder::with(&list(&[("llm", &script(&lines)), ("approval", "")]));
    let mut terminal = conversation(&folder);
    terminal.type_keys("one\r");
    terminal.wait_for("[tool] bash");

    terminal.type_keys("two\r");
    folder.write("go", "");
    terminal.wait_for("assistant> First");
    terminal.wait_for("you> ");
    terminal.wait_for("assistant> First");
    terminal.wait_for("you> ");
    leave(terminal);

    assert_eq!(said(&folder.log()), ["one", "two"]);
}

#[test]
fn while_nothing_is_to_be_seen_the_terminal_says_what_is_waited_for_and_takes_it_back() {
    let lines = format!("{WAIT_FOR_GO}, {{content: First}}");
    let folder = Folder::with(&list(&[("llm", &script(&lines)), ("approval", "")]));
    let mut terminal = conversation(&folder);
    terminal.type_keys("one\r");

    terminal.wait_for(" bash, ");
    terminal.wait_for("\x1b7\x1b[1A\r\x1b[2K");
    folder.write("go", "");
    terminal.wait_for("\r\x1b[2K\x1b[1A\x1b[2K[result]");
    terminal.wait_for("assistant> First");
    terminal.wait_for("you> ");
    leave(terminal);
}

#[test]
fn no_status_is_shown_while_a_question_is_open_nor_where_nobody_looks() {
    let lines = "{tool: bash, args: {command: 'sleep 2.5; echo over'}}, {content: First}";
    let folder = Folder::with(&scripted(lines));
    let mut terminal = conversation(&folder);
    terminal.type_keys("one\r");
    terminal.wait_for("[y/N] ");
    let piped = Folder::with(&list(&[("llm", &script(lines)), ("approval", "")])).run(&["one"], "");

    terminal.type_keys("n\r");
    terminal.wait_for("assistant> First");
    terminal.wait_for("you> ");
    let (shown, _) = leave(terminal);

    assert!(!shown.contains(" bash, "), "{shown:?}");
    assert!(piped.out.contains("over"), "{}", piped.out);
    assert!(!piped.err.contains(" bash, "), "{}", piped.err);
}
