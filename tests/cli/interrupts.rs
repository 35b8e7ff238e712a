//! Ctrl-C, signals, and the end of the terminal.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{
    Folder, Running, SCRIPTED_END, WAIT_FOR_GO, kinds, list, reason, said, script, scripted, until,
};
use crate::terminal::{CTRL_C, CTRL_D, HANGS_UP, Terminal};

/// A model that has a command run that would take a minute, then answers; nothing is asked.
fn sleeper() -> String {
    let lines =
        script("{tool: bash, args: {command: 'echo $$ > started; sleep 60'}}, {content: done}");
    list(&[
        ("llm", &lines),
        ("approval", ""),
        ("shell", "name: shell-local, config: {graceMs: 200}"),
    ])
}

/// Waits until the command has begun, and gives its process.
pub(crate) fn command_of(folder: &Folder) -> Pid {
    let written = || std::fs::read_to_string(folder.path().join("started")).unwrap_or_default();
    until("the command", || written().ends_with('\n'));
    Pid::from_raw(written().trim().parse().unwrap())
}

pub(crate) fn is_alive(process: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !status.is_empty() && !status.contains(") Z ")
}

#[test]
fn h_155_ctrl_c_in_a_one_shot_stops_the_command_and_closes_the_log() {
    let folder = Folder::with(&sleeper());
    let mut terminal = Terminal::start(folder.command(&["go"]));

    terminal.wait_for("[tool] bash");
    let command = command_of(&folder);
    terminal.type_keys(CTRL_C);
    let (shown, status) = terminal.ended();

    assert_eq!((reason(&folder.log()), status), ("aborted", 130));
    assert!(shown.contains("[nano-cordis] session ") && shown.contains("^C\n[result] "), "{shown}");
    assert!(!is_alive(command));
}

#[test]
fn ctrl_c_in_a_conversation_cancels_the_turn_and_the_next_one_works() {
    let folder = Folder::with(&sleeper());
    let mut terminal = Terminal::start(folder.command(&[]));

    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    let command = command_of(&folder);
    terminal.type_keys(CTRL_C);
    terminal.wait_for("[nano-cordis] cancelled");
    terminal.wait_for("you> ");
    assert_eq!((reason(&folder.log()), is_alive(command)), ("aborted", false));
    std::fs::remove_file(folder.path().join("started")).unwrap();
    terminal.type_keys("two\r");
    command_of(&folder);
    terminal.type_keys(CTRL_C);
    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_D);

    assert_eq!((terminal.ended().1, said(&folder.log())), (0, vec!["one", "two"]));
}

#[test]
fn ctrl_c_while_the_model_is_silent_brings_the_prompt_back() {
    let folder = Folder::with(&list(&[("llm", "name: llm-fake, config: {delayMs: 60000}")]));
    let mut terminal = Terminal::start(folder.command(&[]));

    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    until("the request", || {
        !folder.sessions().is_empty() && kinds(&folder.log()).contains(&"request/header")
    });
    terminal.type_keys(CTRL_C);
    terminal.wait_for("^C\r\n[nano-cordis] cancelled");
    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_D);

    assert_eq!((terminal.ended().1, reason(&folder.log())), (0, "aborted"));
}

#[test]
fn ctrl_c_at_a_question_refuses_and_cancels() {
    let folder = Folder::new();
    let mut terminal = Terminal::start(folder.command(&[]));

    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    terminal.wait_for("[y/N] ");
    terminal.type_keys(CTRL_C);
    terminal.wait_for("you> ");
    terminal.type_keys("two\r");
    terminal.wait_for("[y/N] ");
    terminal.type_keys("y\r");
    terminal.wait_for(&SCRIPTED_END.replace('\n', "\r\n"));
    terminal.type_keys(CTRL_D);
    let (shown, status) = terminal.ended();

    assert_eq!((shown.matches("[result] hello from nano").count(), status), (1, 0));
}

#[test]
fn ctrl_c_at_the_prompt_clears_the_line_and_a_second_one_ends_with_130() {
    let folder = Folder::with(&scripted("{content: Hello}"));
    let mut terminal = Terminal::start(folder.command(&[]));

    terminal.wait_for("you> ");
    terminal.type_keys("half a line");
    terminal.wait_for("half a line");
    terminal.type_keys(CTRL_C);
    terminal.wait_for("Ctrl-C once more");
    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_C);

    assert_eq!((terminal.ended().1, folder.sessions().len()), (130, 0));
}

#[test]
fn without_an_editor_ctrl_c_at_the_prompt_does_the_same() {
    let folder = Folder::with(&scripted("{content: Hello}"));
    let mut terminal = Terminal::start_as_it_is(&folder.command(&[]));

    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_C);
    terminal.wait_for("Ctrl-C once more");
    terminal.type_keys(CTRL_C);

    assert_eq!(terminal.ended().1, 130);
}

#[test]
fn an_interrupt_in_the_same_instant_as_the_end_of_input_is_not_lost() {
    for _ in 0..20 {
        let folder = Folder::new();
        let mut running = Running::start(folder.command(&["Say hello"]));

        running.wait_for_output("[y/N] ");
        running.signal(Signal::SIGINT);
        running.end_of_input();
        let ended = running.ended();

        assert_eq!((ended.code(), reason(&folder.log())), (130, "aborted"), "{ended:?}");
    }
}

#[test]
fn whenever_a_signal_comes_no_question_is_shown_after_its_result() {
    for _ in 0..20 {
        let folder = Folder::new();
        let running = Running::start(folder.command(&["Say hello"]));

        until("the call", || {
            let text = folder.sessions().first().map(|it| std::fs::read_to_string(it).unwrap());
            text.is_some_and(|it| it.contains("tool/call"))
        });
        running.signal(Signal::SIGINT);
        let ended = running.ended_with_input_open();

        let at = |text: &str| ended.out.find(text);
        assert!(at("Allow bash").is_none_or(|it| Some(it) < at("[result]")), "{}", ended.out);
        assert!(ended.out.ends_with("\n[result] Error: aborted: the turn was stopped\n"));
        assert_eq!((ended.code(), reason(&folder.log())), (130, "aborted"));
    }
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_a_command_that_ignores_the_first() {
    let stubborn = script(
        "{tool: bash, args: {command: \"trap '' TERM; echo $$ > started; while true; do sleep 0.1; done\"}}",
    );
    let folder = Folder::with(&list(&[("llm", &stubborn), ("approval", "")]));
    let mut terminal = Terminal::start(folder.command(&["go"]));

    let command = command_of(&folder);
    terminal.type_keys(CTRL_C);
    terminal.wait_for("[nano-cordis] session ");
    let begun = Instant::now();
    terminal.type_keys(CTRL_C);
    let (_, status) = terminal.ended();

    assert!(begun.elapsed() < Duration::from_secs(2), "the grace is 3 s");
    assert_eq!((status, reason(&folder.log()), is_alive(command)), (130, "aborted", false));
}

#[test]
fn term_in_a_turn_stops_in_order() {
    let folder = Folder::with(&sleeper());
    let running = Running::start(folder.command(&["go"]));

    let command = command_of(&folder);
    running.signal(Signal::SIGTERM);
    let ended = running.ended_with_input_open();

    assert_eq!((ended.code(), reason(&folder.log())), (143, "aborted"));
    assert!(!is_alive(command));
}

#[test]
fn term_at_the_prompt_leaves_the_terminal_as_it_was() {
    let folder = Folder::with(&scripted("{content: Hello}"));
    let mut terminal = Terminal::start(folder.command(&[]));

    terminal.wait_for("you> ");
    kill(Pid::from_raw(terminal.process_id()), Signal::SIGTERM).unwrap();
    let (before, after) = (terminal.modes_at_first.clone(), terminal.modes_at_the_end());
    let (shown, status) = terminal.ended();

    assert_eq!((after, status), (before, 143));
    assert!(shown.ends_with("\x1b[?2004l\n"), "{shown:?}");
}

#[test]
fn a_terminal_that_goes_away_ends_the_program_in_order() {
    let folder = Folder::with(&sleeper());
    let mut terminal = Terminal::start(folder.shell_command(&format!("{HANGS_UP} nano-cordis")));

    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    let command = command_of(&folder);
    let begun = Instant::now();
    let status = terminal.hang_up();

    assert!(begun.elapsed() < Duration::from_secs(3));
    assert_eq!((status, reason(&folder.log())), (129, "aborted"));
    assert!(!is_alive(command));
}

#[test]
fn a_terminal_that_goes_away_at_the_prompt_is_no_plain_end_of_input() {
    for term in ["xterm", "dumb"] {
        let folder = Folder::with(&scripted("{content: Hello}"));
        let mut command = folder.shell_command(&format!("{HANGS_UP} nano-cordis"));
        command.env("TERM", term);
        let mut terminal = Terminal::start_as_it_is(&command);

        terminal.wait_for("you> ");

        assert_eq!(terminal.hang_up(), 129);
    }
}

#[test]
fn a_hangup_that_the_program_was_started_to_ignore_does_not_stop_it() {
    let folder = Folder::with(&list(&[
        ("llm", &script(&format!("{WAIT_FOR_GO}, {{content: done}}"))),
        ("approval", ""),
    ]));
    let line = "trap '' HUP; exec nano-cordis go";
    let running = Running::start(folder.shell_command(line));

    until("the call", || {
        folder.sessions().len() == 1 && kinds(&folder.log()).contains(&"tool/call")
    });
    running.signal(Signal::SIGHUP);
    folder.write("go", "");
    let ended = running.ended_with_input_open();

    assert_eq!((ended.code(), reason(&folder.log())), (0, "completed"));
}

#[test]
fn h_157_a_reader_that_goes_away_in_the_middle_ends_the_program_in_order() {
    for format in ["text", "stream-json"] {
        let lines = script(&format!("{WAIT_FOR_GO}, {{content: done}}"));
        let folder = Folder::with(&list(&[("llm", &lines), ("approval", "")]));
        let running = Running::start_and_leave(folder.command(&["--output-format", format, "hi"]));

        running.wait_until_left();
        folder.write("go", "");
        let ended = running.ended_with_input_open();

        assert_eq!((ended.err.as_str(), ended.code()), ("", 141), "{format}");
        assert_eq!(reason(&folder.log()), "aborted", "{format}");
    }
}

#[test]
fn h_176_after_the_end_nothing_is_left() {
    let lines = script(
        "{tool: bash, args: {command: 'sleep 60 & echo $! > started; echo ok'}}, {content: done}",
    );
    let folder = Folder::with(&list(&[("llm", &lines), ("approval", "")]));

    let ended = folder.run(&["go"], "");

    assert_eq!(ended.code(), 0, "{}", ended.err);
    assert!(!is_alive(command_of(&folder)));
    assert_eq!(folder.run(&["-c", "again"], "").code(), 0);
}
