//! A31: whatever is going on, Ctrl-C, signals and the end of the terminal do what is documented, and afterwards the
//! terminal is as it was, the log is closed, and no command is left.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::interrupts::{command_of, is_alive};
use crate::support::{Folder, Running, events, list, reason, said, until};
use crate::terminal::{CTRL_C, CTRL_D, HANGS_UP, Terminal};

/// What is going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    TextAtPrompt,
    ModelSilent,
    Streaming,
    WaitingToRetry,
    Running,
    Asking,
}

const ALL: [State; 7] = [
    State::Idle,
    State::TextAtPrompt,
    State::ModelSilent,
    State::Streaming,
    State::WaitingToRetry,
    State::Running,
    State::Asking,
];

impl State {
    fn is_turn(self) -> bool {
        !matches!(self, State::Idle | State::TextAtPrompt)
    }

    /// A model that brings this about with its first reply; the second is plain.
    fn folder(self) -> Folder {
        let first = match self {
            State::Idle | State::TextAtPrompt => "{content: unused}",
            State::ModelSilent => "{content: late, delayMs: 60000}",
            State::Streaming => "{pieces: [Half a sent], delayMs: 60000}",
            State::WaitingToRetry => "{pieces: [Half a sent], retry: it broke, delayMs: 60000}",
            State::Running => "{tool: bash, args: {command: 'echo $$ > started; sleep 60'}}",
            State::Asking => "{tool: bash, args: {command: 'touch ran'}}",
        };
        let llm = format!(
            "name: llm-fake, config: {{repeat: error, script: [{first}, {{content: Fine}}]}}"
        );
        let asks = if self == State::Asking { "[bash]" } else { "[]" };
        let approval = format!("name: approval, config: {{tools: {asks}}}");
        Folder::with(&list(&[("llm", &llm), ("approval", &approval)]))
    }

    /// Goes there from the prompt.
    fn reach(self, folder: &Folder, terminal: &mut Terminal) {
        terminal.wait_for("you> ");
        match self {
            State::Idle => return,
            State::TextAtPrompt => terminal.type_keys("half a line"),
            _ => terminal.type_keys("one\r"),
        }
        match self {
            State::Idle => {}
            State::TextAtPrompt => terminal.wait_for("half a line"),
            State::ModelSilent => until("the request", || {
                let log = folder.sessions().first().map(|it| events(it)).unwrap_or_default();
                log.iter().any(|it| it["type"] == "request/header")
            }),
            State::Streaming => terminal.wait_for("assistant> Half a sent"),
            State::WaitingToRetry => {
                terminal.wait_for("[nano-cordis] it broke; retry 1 of 1 in 60 s");
            }
            State::Running => drop(command_of(folder)),
            State::Asking => terminal.wait_for("[y/N] "),
        }
    }

    /// The log of the turn is closed, and what it ran has ended; without a turn there is no log.
    fn assert_left_in_order(self, folder: &Folder) {
        assert!(!folder.has("ran"), "{self:?}");
        match folder.sessions().first() {
            Some(log) => assert_eq!(reason(&events(log)), "aborted", "{self:?}"),
            None => assert!(!self.is_turn(), "{self:?}"),
        }
        if self == State::Running {
            assert!(!is_alive(command_of(folder)));
        }
    }
}

#[test]
fn a_31_ctrl_c_in_a_turn_brings_the_prompt_back_and_the_next_turn_works() {
    for state in ALL.into_iter().filter(|it| it.is_turn()) {
        let folder = state.folder();
        let mut terminal = Terminal::start(folder.command(&[]));
        state.reach(&folder, &mut terminal);

        terminal.type_keys(CTRL_C);
        terminal.wait_for("[nano-cordis] cancelled");
        terminal.wait_for("you> ");
        state.assert_left_in_order(&folder);
        terminal.type_keys("two\r");
        terminal.wait_for("assistant> Fine");
        terminal.type_keys(CTRL_D);
        let (before, after) = (terminal.modes_at_first.clone(), terminal.modes_at_the_end());
        let (shown, status) = terminal.ended();

        assert_eq!((after, status), (before, 0), "{state:?}: {shown}");
        assert_eq!(said(&folder.log()), ["one", "two"], "{state:?}");
    }
}

#[test]
fn a_31_ctrl_c_at_the_prompt_clears_the_line_and_only_a_second_one_ends_the_program() {
    for state in [State::Idle, State::TextAtPrompt] {
        let folder = state.folder();
        let mut terminal = Terminal::start(folder.command(&[]));
        state.reach(&folder, &mut terminal);

        terminal.type_keys(CTRL_C);
        terminal.wait_for("Ctrl-C once more within 2 s");
        terminal.wait_for("you> ");
        terminal.type_keys("two\r");
        terminal.wait_for("assistant> unused");
        terminal.wait_for("you> ");
        terminal.type_keys(CTRL_C);
        terminal.wait_for("Ctrl-C once more within 2 s");
        terminal.wait_for("you> ");
        terminal.type_keys(CTRL_C);
        let (before, after) = (terminal.modes_at_first.clone(), terminal.modes_at_the_end());

        assert_eq!((after, terminal.ended().1), (before, 130), "{state:?}");
        assert_eq!(said(&folder.log()), ["two"], "{state:?}");
    }
}

#[test]
fn a_31_a_signal_ends_the_program_in_order_from_every_state() {
    for (signal, expected) in
        [(Signal::SIGTERM, 143), (Signal::SIGHUP, 129), (Signal::SIGQUIT, 131)]
    {
        for state in ALL {
            let folder = state.folder();
            let mut terminal = Terminal::start(folder.command(&[]));
            state.reach(&folder, &mut terminal);

            kill(Pid::from_raw(terminal.process_id()), signal).unwrap();
            let (before, after) = (terminal.modes_at_first.clone(), terminal.modes_at_the_end());
            let (shown, status) = terminal.ended();

            assert_eq!((after, status), (before, expected), "{state:?}: {shown}");
            assert!(shown.ends_with('\n'), "{state:?}: {shown:?}");
            state.assert_left_in_order(&folder);
        }
    }
}

#[test]
fn a_31_a_terminal_that_is_closed_ends_the_program_in_order_from_every_state() {
    for state in ALL {
        let folder = state.folder();
        let line = format!("{HANGS_UP} nano-cordis");
        let mut terminal = Terminal::start(folder.shell_command(&line));
        state.reach(&folder, &mut terminal);

        let status = terminal.hang_up();

        assert_eq!(status, 129, "{state:?}");
        state.assert_left_in_order(&folder);
    }
}

#[test]
fn a_31_ctrl_d_at_the_empty_prompt_ends_with_0_and_the_log_closed() {
    let folder = State::Streaming.folder();
    let mut terminal = Terminal::start(folder.command(&[]));

    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_D);
    let (before, after) = (terminal.modes_at_first.clone(), terminal.modes_at_the_end());

    assert_eq!((after, terminal.ended().1), (before, 0));
}

#[test]
fn a_31_ctrl_d_at_a_question_refuses_and_the_conversation_goes_on() {
    let folder = State::Asking.folder();
    let mut terminal = Terminal::start(folder.command(&[]));
    State::Asking.reach(&folder, &mut terminal);

    terminal.type_keys(CTRL_D);
    terminal.wait_for("refused: nobody can answer (end of input)");
    terminal.wait_for("assistant> Fine");
    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_D);

    assert_eq!((terminal.ended().1, folder.has("ran")), (0, false));
}

#[test]
fn a_31_at_whatever_moment_a_signal_comes_log_output_and_status_agree() {
    for (signal, status) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        for events_before in 1..=12 {
            let folder = Folder::new();
            let mut running = Running::start(folder.command(&["--json", "Say hello"]));
            running.write("y\n");
            until("the moment", || {
                let log = folder.sessions().first().map(|it| std::fs::read_to_string(it).unwrap());
                log.is_some_and(|it| it.matches('\n').count() >= events_before)
            });

            running.signal(signal);
            let ended = running.ended_with_input_open();

            let result: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
            let at = format!("{signal} after {events_before} events: {ended:?}");
            assert_eq!(result["exitCode"], ended.code(), "{at}");
            assert_eq!(result["reason"], reason(&folder.log()), "{at}");
            // The last moments of a turn are too late for it, and the program ends by the signal or by itself.
            let is_late = ended.code() == 0 && result["reason"] == "completed";
            assert!(ended.code() == status || is_late, "{at}");
        }
    }
}
