//! Replies that come in pieces: shown as they come, and once.

use crate::support::{Folder, Running, list, script, scripted, texts};
use crate::terminal::{CTRL_C, CTRL_D, Terminal};

#[test]
fn a_reply_is_shown_while_it_comes_and_not_again_when_it_is_whole() {
    let folder = Folder::with(&scripted("{pieces: [Hel, 'lo '], delayMs: 60000}"));
    let running = Running::start(folder.command(&["hi"]));

    running.wait_for_output("assistant> Hello");
    running.signal(nix::sys::signal::Signal::SIGTERM);
    let cut = running.ended_with_input_open();
    folder.save(&scripted("{pieces: [Hel, 'lo ', \"\\n\", there, \"\\n\\n\"]}"));
    let whole = folder.run(&["hi"], "");

    assert_eq!((cut.out.as_str(), cut.code()), ("assistant> Hello\n", 143));
    assert_eq!(whole.out, "assistant> Hello \nthere\n");
}

#[test]
fn text_comes_before_the_calls_of_the_same_reply() {
    let both =
        "{pieces: ['Let me ', look.], tool: bash, args: {command: 'true'}}, {pieces: [Do, ne.]}";
    let folder = Folder::with(&list(&[("llm", &script(both)), ("approval", "")]));

    let ended = folder.run(&["hi"], "");

    let expected = "assistant> Let me look.\n[tool] bash {\"command\":\"true\"}\n[result] (no output)\n[exit code: 0]\n\nassistant> Done.\n";
    assert_eq!(ended.out, expected);
}

#[test]
fn blanks_beside_a_call_are_no_reply() {
    let both = "{pieces: [\"\\n\", ' '], tool: bash, args: {command: 'true'}}, {content: done}";
    let folder = Folder::with(&list(&[("llm", &script(both)), ("approval", "")]));

    assert!(folder.run(&["hi"], "").out.starts_with("[tool] bash "));
}

#[test]
fn a_reply_that_begins_again_says_so_and_has_a_heading_of_its_own() {
    let folder =
        Folder::with(&scripted("{pieces: [Hel], retry: the connection broke, content: Hello}"));
    let mut terminal = Terminal::start(folder.command(&["hi"]));

    terminal
        .wait_for("assistant> Hel\r\n[nano-cordis] the connection broke; retry 1 of 1 in 0 s\r\n");
    let (shown, status) = terminal.ended();
    let piped = folder.run(&["hi"], "");

    assert!(shown.ends_with("\n\nassistant> Hello\n") && status == 0, "{shown}");
    assert_eq!(piped.out, "assistant> Hel\n\nassistant> Hello\n");
    assert_eq!(
        texts(&crate::support::events(&folder.sessions()[0]), "assistant/message"),
        ["Hello"]
    );
}

#[test]
fn with_quiet_only_the_whole_reply_is_printed() {
    let folder =
        Folder::with(&scripted("{pieces: [Hel], retry: the connection broke, content: Hello}"));

    let ended = folder.run(&["-q", "hi"], "");

    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("Hello\n", ""));
}

#[test]
fn a_reply_that_is_cancelled_half_way_ends_its_line_before_the_prompt() {
    let folder = Folder::with(&scripted("{pieces: [Half a sent], delayMs: 60000}"));
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys("hi\r");
    terminal.wait_for("assistant> Half a sent");

    terminal.type_keys(CTRL_C);
    terminal.wait_for("^C\r\n[nano-cordis] cancelled\r\n");
    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_D);

    assert_eq!(terminal.ended().1, 0);
}

#[test]
fn news_that_comes_within_a_reply_does_not_stand_in_its_line() {
    let folder = Folder::with(&scripted("{pieces: [Half a sent], delayMs: 60000}"));
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys("hi\r");
    terminal.wait_for("assistant> Half a sent");

    folder.save(&scripted("{content: Changed}"));

    terminal.wait_for("\r\n[nano-cordis] cordis.yml changed; applied when this turn ends");
}
