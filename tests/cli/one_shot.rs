//! One prompt, one turn, one exit status.

use std::io;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{
    Folder, Running, SCRIPTED_END, WAIT_FOR_GO, id_of, kinds, list, reason, script, scripted, texts,
};
use crate::terminal::Terminal;

const CALL: &str = "[tool] bash {\"command\":\"echo hello from nano\"}\n";
const QUESTION: &str = "Allow bash {\"command\":\"echo hello from nano\"}? [y/N] ";
const RESULT: &str = "[result] hello from nano\n\n[exit code: 0]\n";

#[test]
fn h_147_through_a_pipe_the_program_writes_the_newline_after_the_answer() {
    let folder = Folder::new();

    let ended = folder.run(&["Say hello"], "y\n");

    assert_eq!(ended.out, format!("{CALL}{QUESTION}\n{RESULT}\n{SCRIPTED_END}"));
    assert_eq!((ended.err.as_str(), ended.code()), ("", 0));
}

#[test]
fn h_147_in_a_terminal_the_transcript_is_the_documented_one() {
    let folder = Folder::new();
    let mut terminal = Terminal::start(folder.command(&["Say hello"]));

    terminal.wait_for("[y/N] ");
    terminal.type_keys("y\r");

    assert_eq!(terminal.ended(), (format!("{CALL}{QUESTION}y\n{RESULT}\n{SCRIPTED_END}"), 0));
}

#[test]
fn h_147_what_was_typed_before_the_question_is_no_answer() {
    let folder = Folder::with(&scripted(&format!(
        "{WAIT_FOR_GO}, {{tool: bash, args: {{command: echo no}}}}, {{content: x}}"
    )));
    let mut terminal = Terminal::start(folder.command(&["Say hello"]));

    terminal.wait_for("[y/N] ");
    terminal.type_keys("y\r");
    terminal.wait_for("\n");
    terminal.type_keys("y\r");
    terminal.wait_for("y\r\n");
    folder.write("go", "");
    terminal.wait_for("[y/N] ");
    terminal.type_keys("n\r");
    let (_, status) = terminal.ended();

    let log = folder.log();
    let [_, refused] = texts(&log, "tool/result")[..] else { panic!("{log:?}") };
    assert!(refused.starts_with("Error: ") && status == 0, "{refused}");
}

#[test]
fn h_148_a_no_is_shown_as_the_result_and_the_turn_completes() {
    let folder = Folder::new();

    let ended = folder.run(&["Say hello"], "n\n");

    assert!(ended.out.contains("\n[result] Error: the user refused"), "{}", ended.out);
    assert_eq!((ended.code(), reason(&folder.log())), (0, "completed"));
}

#[test]
fn h_149_at_the_end_of_input_a_question_is_asked_once_and_refused() {
    let folder = Folder::new();

    let ended = folder.run(&["Say hello"], "");

    let why = "nobody can answer (end of input)";
    assert_eq!(ended.out.matches("Allow bash").count(), 1);
    assert!(
        ended.out.contains(&format!("[result] Error: {why}, so this call was refused")),
        "{}",
        ended.out
    );
    assert_eq!(ended.err, format!("[nano-cordis] refused: {why}\n"));
    assert_eq!((ended.code(), reason(&folder.log())), (0, "completed"));
}

#[test]
fn h_150_a_silent_pipe_refuses_after_the_wait_and_later_questions_unread() {
    let calls = script(
        "{tool: bash, args: {command: a}}, {tool: bash, args: {command: b}}, {content: done}",
    );
    let folder =
        Folder::with(&list(&[("llm", &calls), ("cli", "name: cli, config: {answerWaitMs: 600}")]));
    let begun = Instant::now();

    let ended = Running::start(folder.command(&["Say hello"])).ended_with_input_open();

    let log = folder.log();
    let [first, second] = texts(&log, "tool/result")[..] else { panic!("{log:?}") };
    assert!(first.starts_with("Error: nobody answered within 0.6 s, so"), "{first}");
    assert!(second.starts_with("Error: nobody answered an earlier question"), "{second}");
    assert!(ended.err.contains("refused: nobody answered within 0.6 s"), "{}", ended.err);
    assert!(begun.elapsed() > Duration::from_millis(600));
    assert_eq!(ended.code(), 0);
}

#[test]
fn h_150_without_a_question_an_open_pipe_is_not_read() {
    let folder = Folder::with(&scripted("{content: Hello}"));

    let ended = Running::start(folder.command(&["hi"])).ended_with_input_open();

    assert_eq!(
        (ended.out.as_str(), ended.err.as_str(), ended.code()),
        ("assistant> Hello\n", "", 0)
    );
}

#[test]
fn h_152_the_log_is_in_the_folder_of_the_run() {
    let folder = Folder::new();

    folder.run(&["Say", "hello"], "y\n");

    assert_eq!(texts(&folder.log(), "user/message"), ["Say hello"]);
}

#[test]
fn h_153_a_model_error_is_explained_on_stderr_with_the_session_to_go_on_with() {
    let folder = Folder::with(&scripted("{error: the model is on fire}"));

    let ended = folder.run(&["hi"], "");

    assert!(ended.err.starts_with("nano-cordis: the model is on fire\n"), "{}", ended.err);
    assert!(
        ended.err.contains("[nano-cordis] session ") && ended.err.contains("--resume"),
        "{}",
        ended.err
    );
    assert_eq!((ended.out.as_str(), ended.code()), ("", 1));
}

#[test]
fn a_turn_that_reaches_its_step_limit_says_how_to_go_on_and_exits_with_3() {
    let endless = script("{tool: bash, args: {command: \"true\"}}");
    let folder = Folder::with(&list(&[
        ("llm", &endless),
        ("approval", ""),
        ("loop", "name: agent-loop, config: {maxSteps: 2}"),
    ]));

    let ended = folder.run(&["hi"], "");

    assert!(
        ended.err.contains("[nano-cordis] stopped after 2 steps; say \"go on\" to continue\n"),
        "{}",
        ended.err
    );
    assert_eq!((ended.code(), reason(&folder.log())), (3, "max-steps"));
}

#[test]
fn h_157_a_reader_that_has_gone_ends_the_program_quietly_and_in_order() {
    let many = script("{tool: bash, args: {command: \"seq 100000\"}}, {content: done}");
    let folder = Folder::with(&list(&[("llm", &many), ("approval", "")]));

    let ended = Running::start_unread(folder.command(&["hi"])).ended();

    assert_eq!((ended.err.as_str(), ended.code()), ("", 141));
    assert_eq!(reason(&folder.log()), "aborted");
}

#[test]
fn an_output_that_takes_no_more_fails_the_run_with_the_reason() {
    for options in ["", "-q", "--json", "--output-format=stream-json"] {
        let folder = Folder::with(&scripted("{content: Hello}"));

        let line = folder.shell_command(&format!("nano-cordis {options} hi > /dev/full"));
        let ended = Running::start(line).ended();

        assert!(
            ended.err.contains("nano-cordis: cannot write to stdout: No space left"),
            "{ended:?}"
        );
        assert_eq!((ended.code(), ended.err.matches("cannot write").count()), (1, 1), "{options}");
    }
}

#[test]
fn whatever_was_asked_for_and_could_not_be_written_is_no_success() {
    for asked in ["--help", "--version", "--sessions", "--check", "--repair 1", "-q hi"] {
        let folder = Folder::with(&scripted("{content: Hello}"));
        folder.run(&["hi"], "");
        let session = id_of(&folder.sessions()[0]);
        let asked = asked.replace("--repair 1", &format!("--repair {session}"));

        let full = folder.shell_command(&format!("nano-cordis {asked} > /dev/full"));
        let full = Running::start(full).ended();
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut unread = folder.command(&asked.split(' ').collect::<Vec<_>>());
        let unread = unread.stdin(Stdio::null()).stdout(writer).output().unwrap();

        let said = "nano-cordis: cannot write to stdout: No space left";
        assert!(full.err.contains(said), "{asked}: {full:?}");
        assert_eq!((full.code(), full.err.matches("cannot write").count()), (1, 1), "{asked}");
        assert_eq!((unread.stderr, unread.status.code()), (vec![], Some(141)), "{asked}");
    }
}

#[test]
fn the_prompt_can_come_from_standard_input_and_then_nobody_can_be_asked() {
    let folder = Folder::new();

    let ended = folder.run(&["-"], "Zeile eins\nline two\n\n");

    assert_eq!(texts(&folder.log(), "user/message"), ["Zeile eins\nline two"]);
    assert!(ended.out.contains("[result] Error: ") && ended.code() == 0, "{ended:?}");
}

#[test]
fn standard_input_that_cannot_be_read_is_named_with_the_reason() {
    for line in ["nano-cordis - < .", "nano-cordis < ."] {
        let folder = Folder::with(&scripted("{content: Hello}"));

        let ended = Running::start(folder.shell_command(line)).ended();

        let why = "nano-cordis: standard input cannot be read: Is a directory";
        assert!(ended.err.contains(why), "{}", ended.err);
        assert_eq!((ended.out.as_str(), ended.code(), folder.has(".nano")), ("", 2, false));
    }
}

#[test]
fn a_question_to_an_input_that_cannot_be_read_is_refused_with_the_reason() {
    let folder = Folder::new();

    let ended = Running::start(folder.shell_command("nano-cordis 'Say hello' < .")).ended();

    let why = "refused: nobody can answer (standard input cannot be read: ";
    assert!(ended.err.contains(why), "{}", ended.err);
    assert_eq!((ended.code(), reason(&folder.log())), (0, "completed"));
}

#[test]
fn an_empty_prompt_is_refused_and_leaves_no_file() {
    let folder = Folder::new();

    let ended = folder.run(&[" "], "");

    assert_eq!((ended.err.as_str(), ended.code()), ("nano-cordis: the text is empty\n", 2));
    assert!(!folder.has(".nano"));
}

#[test]
fn quiet_leaves_the_final_text_on_stdout_and_the_question_on_stderr() {
    let folder = Folder::new();

    let ended = folder.run(&["-q", "Say hello"], "y\n");

    assert_eq!(ended.out, "The command ran; that is all for this scripted reply.\n");
    assert_eq!(ended.err, format!("{QUESTION}\n"));
}

#[test]
fn quiet_still_warns_of_a_guard_that_guards_nothing() {
    let folder = Folder::with(&list(&[
        ("llm", &script("{content: Hello}")),
        ("approval", "name: approval, config: {tools: [bsh]}"),
    ]));

    let ended = folder.run(&["-q", "hi"], "");

    for warning in ["bash: runs without asking", "approval: there is no tool named `bsh`"] {
        assert!(ended.err.contains(warning), "{}", ended.err);
    }
    assert_eq!((ended.out.as_str(), ended.code()), ("Hello\n", 0));
}

#[test]
fn verbose_shows_what_happens_on_stderr_and_leaves_stdout_alone() {
    let folder = Folder::with(&scripted("{content: Hello}"));

    let ended = folder.run(&["-vv", "hi"], "");

    assert_eq!(ended.out, "assistant> Hello\n");
}

#[test]
fn text_beside_a_call_comes_before_it() {
    let both = "{content: Let me look., tool: bash, args: {command: 'true'}}, {content: Done.}";
    let folder = Folder::with(&list(&[("llm", &script(both)), ("approval", "")]));

    let ended = folder.run(&["hi"], "");

    let expected = "assistant> Let me look.\n[tool] bash {\"command\":\"true\"}\n[result] (no output)\n[exit code: 0]\n\nassistant> Done.\n";
    assert_eq!(ended.out, expected);
}

#[test]
fn control_characters_of_a_command_do_not_reach_the_screen() {
    let hostile = r#"{tool: bash, args: {command: "printf 'A\\033[2J\\033]0;T\\007\\xc2\\x9bB\\n'"}}, {content: "\u001b[31mred"}"#;
    let folder = Folder::with(&list(&[("llm", &script(hostile)), ("approval", "")]));

    let ended = folder.run(&["hi"], "");

    assert!(!ended.out.contains(|it: char| it.is_control() && it != '\n'), "{}", ended.out);
    assert!(ended.out.contains("A␛[2J") && ended.out.contains("␛[31mred"), "{}", ended.out);
}

#[test]
fn the_whole_turn_is_in_the_log() {
    let folder = Folder::new();

    folder.run(&["Say hello"], "y\n");

    let step = [
        "assistant/message",
        "tool/call",
        "tool/result",
        "step/end",
        "step/start",
        "assistant/message",
        "step/end",
    ];
    let expected =
        [&["turn/start", "step/start", "user/message", "request/header"][..], &step, &["turn/end"]]
            .concat();
    assert_eq!(kinds(&folder.log()), expected);
}
