//! Lines become turns: from a pipe, and at the prompt of a terminal.

use crate::support::{
    Folder, Running, SCRIPTED_END, WAIT_FOR_GO, id_of, list, reason, said, script, scripted, texts,
};
use crate::terminal::{CTRL_D, CTRL_U, Terminal};

const HELLO: &str = "{content: Hello}";

#[test]
fn h_158_at_a_terminal_the_session_is_named_and_the_prompt_is_shown() {
    let folder = Folder::with(&scripted(HELLO));
    let mut terminal = Terminal::start(folder.command(&[]));

    terminal.wait_for("session 2");
    terminal.wait_for("(continue later: nano-cordis --resume 2");
    terminal.wait_for("you> ");
    terminal.type_keys("hi\r");
    terminal.wait_for("assistant> Hello");
    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_D);
    let (shown, status) = terminal.ended();

    let id = id_of(&folder.sessions()[0]);
    let announced = "[nano-cordis] cordis.yml decides what runs here: asked about: bash; programs are started by shell-local\n";
    let named = format!("{announced}session {id} (continue later: nano-cordis --resume {id})\n");
    assert!(shown.starts_with(&named), "{shown}");
    assert_eq!((said(&folder.log()), status), (vec!["hi"], 0));
}

#[test]
fn h_159_two_lines_are_two_turns_of_one_session() {
    let folder = Folder::with(&scripted(HELLO));

    let ended = folder.run(&[], "one\ntwo\n");

    assert_eq!(said(&folder.log()), ["one", "two"]);
    assert_eq!(ended.out, "assistant> Hello\nassistant> Hello\n");
    assert!(ended.err.starts_with("[nano-cordis] session 2"), "{}", ended.err);
    assert_eq!(ended.code(), 0);
}

#[test]
fn h_161_at_the_end_of_input_the_program_ends_and_leaves_no_empty_session() {
    let folder = Folder::with(&scripted(HELLO));

    let ended = folder.run(&[], "");

    assert_eq!((ended.out.as_str(), ended.code(), folder.sessions().len()), ("", 0, 0));
}

#[test]
fn h_162_an_empty_line_is_not_sent() {
    let folder = Folder::with(&scripted(HELLO));

    folder.run(&[], "\n  \none\n\n");

    assert_eq!(said(&folder.log()), ["one"]);
}

#[test]
fn h_167_no_piped_line_is_lost_and_an_answer_is_not_also_a_turn() {
    let folder = Folder::new();

    let ended = folder.run(&[], "one\ny\ntwo\nno\nthree");

    assert_eq!(said(&folder.log()), ["one", "two", "three"]);
    assert_eq!(ended.out.matches("[result] hello from nano").count(), 1);
    assert_eq!(ended.out.matches("[result] Error: ").count(), 2);
}

#[test]
fn h_167_a_line_that_is_no_answer_refuses_and_stays_the_next_turn() {
    let folder = Folder::new();

    let ended = folder.run(&[], "one\ntwo\ny\n");

    assert_eq!(said(&folder.log()), ["one", "two"]);
    assert!(
        ended.err.contains("refused: \"two\" is no answer")
            && ended.err.contains("stays the next turn"),
        "{}",
        ended.err
    );
    assert_eq!(ended.out.matches("[result] hello from nano").count(), 1);
}

#[test]
fn h_168_multi_byte_input_reaches_the_log_byte_for_byte() {
    let folder = Folder::with(&scripted(HELLO));

    folder.run(&[], "你好世界 👩‍👩‍👧 é\u{301}\t!\r\nlast");

    assert_eq!(said(&folder.log()), ["你好世界 👩‍👩‍👧 é\u{301}\t!", "last"]);
}

#[test]
fn h_168_multi_byte_input_can_be_edited_in_a_terminal() {
    let folder = Folder::with(&scripted(HELLO));
    let mut terminal = Terminal::start(folder.command(&[]));

    terminal.wait_for("you> ");
    terminal.type_keys("你好世界\x1b[D\x1b[D们\x7f啊\r");
    terminal.wait_for("assistant> Hello");
    terminal.type_keys(CTRL_D);
    terminal.ended();

    assert_eq!(said(&folder.log()), ["你好啊世界"]);
}

#[test]
fn a_pasted_block_is_one_turn_with_its_newlines() {
    let folder = Folder::with(&scripted(HELLO));
    let mut terminal = Terminal::start(folder.command(&[]));

    terminal.wait_for("you> ");
    terminal.type_keys("\x1b[200~one\rtwo\rthree\x1b[201~");
    terminal.wait_for("three");
    terminal.type_keys("\r");
    terminal.wait_for("assistant> Hello");
    terminal.type_keys(CTRL_D);
    terminal.ended();

    assert_eq!(said(&folder.log()), ["one\ntwo\nthree"]);
}

#[test]
fn lines_pasted_without_marks_are_turns_and_none_is_lost() {
    let folder = Folder::with(&scripted(HELLO));
    let mut terminal = Terminal::start(folder.command(&[]));

    terminal.wait_for("you> ");
    terminal.type_keys("one\rtwo\rthree\r");
    for _ in 0..3 {
        terminal.wait_for("assistant> Hello");
    }
    terminal.type_keys(CTRL_D);
    terminal.ended();

    assert_eq!(said(&folder.log()), ["one", "two", "three"]);
}

#[test]
fn what_is_typed_during_a_turn_waits_for_the_prompt() {
    let folder = Folder::with(&scripted(&format!(
        "{WAIT_FOR_GO}, {{tool: bash, args: {{command: echo a}}}}, {{content: Hello}}"
    )));
    let mut terminal = Terminal::start(folder.command(&[]));

    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    terminal.wait_for("[y/N] ");
    terminal.type_keys("y\r");
    terminal.wait_for("\n");
    terminal.type_keys("two\rthr");
    terminal.wait_for("thr");
    folder.write("go", "");
    for answer in ["n\r", "y\r", "y\r"] {
        terminal.wait_for("[y/N] ");
        terminal.type_keys(answer);
    }
    terminal.wait_for("you> thr");
    terminal.type_keys("ee");
    terminal.wait_for("ee");
    terminal.type_keys(CTRL_U);
    terminal.type_keys(CTRL_D);
    let (shown, status) = terminal.ended();

    assert!(shown.contains("you> two\n") && status == 0, "{shown}");
    assert_eq!(said(&folder.log()), ["one", "two"]);
    assert_eq!(
        texts(&folder.log(), "tool/result").iter().filter(|it| it.starts_with("Error")).count(),
        1
    );
}

#[test]
fn a_terminal_that_cannot_edit_gets_plain_lines_and_no_escape_sequence() {
    for term in [Some("dumb"), None] {
        let folder = Folder::with(&scripted(HELLO));
        let mut command = folder.command(&[]);
        if let Some(term) = term {
            command.env("TERM", term);
        }
        let mut terminal = Terminal::start_as_it_is(&command);

        terminal.wait_for("you> ");
        terminal.type_keys("hi\r");
        terminal.wait_for("assistant> Hello\r\nyou> ");
        terminal.type_keys(CTRL_D);
        let (shown, status) = terminal.ended();

        assert!(!shown.contains('\x1b') && shown.ends_with("you> \n"), "{shown:?}");
        assert_eq!((said(&folder.log()), status), (vec!["hi"], 0));
    }
}

#[test]
fn a_piped_conversation_in_which_a_turn_failed_ends_with_1() {
    let folder = Folder::with(&list(&[(
        "llm",
        "name: llm-fake, config: {repeat: error, script: [{error: broken}, {content: ok}]}",
    )]));

    let ended = folder.run(&[], "one\ntwo\n");

    assert_eq!((ended.out.as_str(), ended.code()), ("assistant> ok\n", 1));
    assert!(ended.err.contains("broken"), "{}", ended.err);
}

#[test]
fn a_failed_turn_does_not_end_the_conversation() {
    let endless = script("{tool: bash, args: {command: 'true'}}");
    let folder = Folder::with(&list(&[
        ("llm", &endless),
        ("approval", ""),
        ("loop", "name: agent-loop, config: {maxSteps: 1}"),
    ]));

    let ended = folder.run(&[], "one\ntwo\n");

    assert_eq!(
        (said(&folder.log()), reason(&folder.log()), ended.code()),
        (vec!["one", "two"], "max-steps", 3)
    );
}

#[test]
fn h_150_in_a_piped_conversation_a_silent_pipe_refuses_too() {
    let folder = Folder::with(&list(&[("cli", "name: cli, config: {answerWaitMs: 200}")]));
    let mut running = Running::start(folder.command(&[]));

    running.write("one\n");
    running.wait_for_error("refused: nobody answered within 0.2 s");
    running.write("two\n");
    running.end_of_input();
    let ended = running.ended();

    assert_eq!(said(&folder.log()), ["one", "two"]);
    assert_eq!((ended.out.matches("[result] Error: ").count(), ended.code()), (2, 0));
}

#[test]
fn with_stdout_in_a_pipe_the_prompt_and_the_question_are_still_seen() {
    let folder = Folder::new();
    let mut terminal = Terminal::start(folder.shell_command("nano-cordis > out.txt"));

    terminal.wait_for("you> ");
    terminal.type_keys("Say hello\r");
    terminal.wait_for("[y/N] ");
    terminal.type_keys("y\r");
    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_D);
    let (shown, status) = terminal.ended();

    let written = std::fs::read_to_string(folder.path().join("out.txt")).unwrap();
    assert!(written.ends_with(SCRIPTED_END) && !written.contains("Allow"), "{written}");
    assert!(!shown.contains("[result]") && status == 0, "{shown}");
}

#[test]
fn with_the_prompt_from_a_pipe_the_terminal_answers() {
    let folder = Folder::new();
    let command = "echo Say hello | nano-cordis -";
    let mut terminal = Terminal::start(folder.shell_command(command));

    terminal.wait_for("[y/N] ");
    terminal.type_keys("y\r");
    let (shown, status) = terminal.ended();

    assert!(shown.contains("[result] hello from nano\n") && status == 0, "{shown}");
}

#[test]
fn ctrl_d_at_a_question_to_the_terminal_beside_a_pipe_refuses_and_the_turn_goes_on() {
    let folder = Folder::new();
    let mut terminal = Terminal::start(folder.shell_command("echo Say hello | nano-cordis -"));

    terminal.wait_for("[y/N] ");
    terminal.type_keys(CTRL_D);
    let (shown, status) = terminal.ended();

    assert!(shown.contains("refused: nobody can answer (end of input)"), "{shown}");
    assert_eq!((status, reason(&folder.log())), (0, "completed"));
}

#[test]
fn without_an_editor_the_prompt_is_shown_again_below_news() {
    let folder = Folder::with(&scripted(HELLO));
    let mut command = folder.command(&[]);
    command.env("TERM", "dumb");
    let mut terminal = Terminal::start_as_it_is(&command);
    terminal.wait_for("you> ");

    folder.save("- [\n");
    terminal.wait_for("[nano-cordis] cordis.yml not applied");
    terminal.wait_for("\r\nyou> ");
    folder.save(&scripted("{content: Changed}"));
    terminal.wait_for("[nano-cordis] applied cordis.yml\r\n");
    terminal.wait_for("\r\nsession 2");
    terminal.wait_for("\r\nyou> ");
    terminal.type_keys("hi\r");
    terminal.wait_for("assistant> Changed\r\nyou> ");
    terminal.type_keys(CTRL_D);

    assert_eq!(terminal.ended().1, 0);
}

#[test]
fn notices_go_to_stderr_even_while_a_line_is_being_typed() {
    let folder = Folder::with(&scripted(HELLO));
    let mut terminal = Terminal::start(folder.shell_command("nano-cordis 2> err.txt"));

    terminal.wait_for("you> ");
    folder.save(&scripted("{content: Changed}"));
    terminal.wait_for("session 2");
    terminal.type_keys(CTRL_D);
    let (shown, _) = terminal.ended();

    let written = std::fs::read_to_string(folder.path().join("err.txt")).unwrap();
    assert!(written.starts_with("[nano-cordis] applied cordis.yml\n"), "{written}");
    assert!(!shown.contains("applied"), "{shown}");
}
