//! A17 to A19: the question shows all, only an answer to it counts, and nobody there is a no.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Folder, Running, list, reason, script, texts};
use crate::terminal::Terminal;

/// A model that has these commands run, then ends.
fn commands(commands: &[&str]) -> String {
    let calls = commands.iter().map(|it| {
        let arguments = json!({ "command": it });
        format!("{{tool: bash, args: {}}}, ", json!(arguments.to_string()))
    });
    format!("{}{{content: done}}", calls.collect::<String>())
}

fn folder(of: &[&str]) -> Folder {
    Folder::with(&list(&[("llm", &script(&commands(of)))]))
}

/// What stands between the last `Allow` and the place where the answer is typed.
fn question(shown: &str) -> String {
    let from = shown.rfind("Allow ").unwrap();
    shown[from..].split("? [y/N] ").next().unwrap().replace("\r\n", "")
}

#[test]
fn a_17_however_long_a_command_is_its_end_is_shown_before_the_answer_is_read() {
    let many_lines = format!("echo start\n{}rm -rf build # end", "\n".repeat(80));
    let long_line = format!("echo {}; rm -rf build", "x".repeat(5000));
    let huge = format!("echo {}; rm -rf build", "y".repeat(200_000));
    for command in [many_lines, long_line, huge] {
        let folder = folder(&[&command]);
        let mut terminal = Terminal::start(folder.command(&["hi"]));

        terminal.wait_for("? [y/N] ");
        let asked = question(&terminal.all());
        terminal.type_keys("n\r");
        let (shown, status) = terminal.ended();

        let arguments = json!({ "command": command }).to_string();
        let length = format!(" ({} characters)", arguments.chars().count());
        let said = if arguments.len() < 1000 { "" } else { &length };
        assert_eq!((asked, status), (format!("Allow bash {arguments}{said}"), 0));
        assert!(shown.contains("[result] Error: the user refused"));
    }
}

#[test]
fn a_17_what_cannot_be_seen_is_written_out() {
    let folder = folder(&["ls \u{200b}\u{202e}\u{a0}\u{2066}\u{e0041}\x1b[8m   \n\n\t# "]);
    let mut terminal = Terminal::start(folder.command(&["hi"]));

    terminal.wait_for("? [y/N] ");
    let asked = question(&terminal.all());
    terminal.type_keys("n\r");
    terminal.ended();

    let shown = r#"{"command":"ls \u200b\u202e\u00a0\u2066\udb40\udc41\u001b[8m   \n\n\t# "}"#;
    assert_eq!(asked, format!("Allow bash {shown}"));
}

#[test]
fn a_17_the_question_is_the_last_thing_on_the_screen_even_if_something_is_said_meanwhile() {
    let folder = folder(&["touch ran"]);
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys("hi\r");
    terminal.wait_for("? [y/N] ");

    folder.save(&list(&[("prompt", "name: prompt, config: {persona: other}")]));
    terminal.wait_for("\r\n[nano-cordis] cordis.yml changed; applied when this turn ends");
    terminal.type_keys("n\r");
    terminal.wait_for("[result] Error: the user refused");

    assert!(!folder.has("ran"));
}

#[test]
fn a_18_nobody_there_is_a_no_that_is_said_once_and_the_program_ends() {
    for (line, why) in [
        ("nano-cordis 'Say hello' </dev/null", "end of input"),
        ("nano-cordis 'Say hello' <&-", "end of input"),
        ("nano-cordis 'Say hello' 0>/dev/null", "standard input cannot be read"),
        ("nano-cordis 'Say hello' < .", "standard input cannot be read"),
        ("echo Say hello | nano-cordis -", "standard input was read for the prompt"),
    ] {
        let folder = folder(&["touch ran"]);

        let ended = Running::start(folder.shell_command(line)).ended();

        assert_eq!(ended.out.matches("Allow bash").count(), 1, "{line}");
        assert!(
            ended.err.contains(&format!("refused: nobody can answer ({why}")),
            "{line}: {ended:?}"
        );
        let log = folder.log();
        let [told] = texts(&log, "tool/result")[..] else { panic!("{log:?}") };
        assert!(told.starts_with(&format!("Error: nobody can answer ({why}")), "{told}");
        assert_eq!((ended.code(), reason(&log), folder.has("ran")), (0, "completed", false));
    }
}

#[test]
fn a_19_only_y_and_yes_approve_and_everything_else_is_said_to_refuse() {
    let long = "y".repeat(10_000);
    for (answer, approves) in [
        ("y", true),
        (" YES ", true),
        ("", false),
        ("yep", false),
        ("yes, but not in src", false),
        ("ｙ", false),
        ("1", false),
        ("true", false),
        ("n", false),
        ("y\0", false),
        ("\x1b[Ay", false),
        (&long, false),
    ] {
        let folder = folder(&["touch ran"]);
        let mut terminal = Terminal::start(folder.command(&["hi"]));
        terminal.wait_for("? [y/N] ");
        // A terminal takes what it has room for and drops the rest.
        terminal.type_keys(&format!("{}\r", answer.chars().take(4000).collect::<String>()));
        let (shown, status) = terminal.ended();
        let piped = folder.run(&["hi"], &format!("{answer}\n"));

        assert_eq!((folder.has("ran"), status), (approves, 0), "{answer:.20?}: {shown:.2000}");
        assert_eq!(
            piped.out.contains("[result] Error: the user refused"),
            !approves,
            "{answer:.20?}"
        );
        let is_slip = !approves && !matches!(answer, "" | "n");
        for said in [&shown, &piped.err] {
            let named = said.contains("refused: \"") && said.contains("is neither y nor yes");
            assert_eq!(named, is_slip, "{answer:.20?}: {said:.2000}");
        }
    }
}

#[test]
fn a_19_one_answer_is_for_one_question() {
    let folder = folder(&["touch one", "touch two"]);
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys("hi\r");
    terminal.wait_for("? [y/N] ");

    terminal.type_keys("y\ry\r");
    terminal.wait_for("touch two\"}? [y/N] ");
    terminal.type_keys("n\r");
    terminal.wait_for("assistant> done");
    // What was typed too early is a turn to come.
    terminal.wait_for("you> y\r\n");

    assert_eq!((folder.has("one"), folder.has("two")), (true, false));
}

#[test]
fn a_35_a_pipe_that_stays_open_is_not_waited_for() {
    let folder = Folder::with(&list(&[("llm", &script("{content: Hello}"))]));
    let unset = list(&[(
        "llm",
        "name: llm-openai, config: {baseUrl: 'http://127.0.0.1:9', model: m, apiKeyEnv: NO_SUCH_KEY}",
    )]);
    let begun = Instant::now();

    let said = Running::start(folder.command(&["Say hello"])).ended_with_input_open();
    let unset = Running::start(Folder::with(&unset).command(&["hi"])).ended_with_input_open();
    let wrong = Running::start(Folder::with("- [").command(&["hi"])).ended_with_input_open();
    let unknown = Running::start(folder.command(&["-r", "nobody", "hi"])).ended_with_input_open();

    assert!(begun.elapsed() < Duration::from_secs(8), "each within 2 s");
    assert_eq!((said.out.as_str(), said.code()), ("assistant> Hello\n", 0));
    assert!(unset.err.contains("NO_SUCH_KEY"), "{unset:?}");
    assert_eq!([unset.code(), wrong.code(), unknown.code()], [1, 2, 2]);
}
