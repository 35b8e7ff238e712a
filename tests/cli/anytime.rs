//! A save at any moment: while the model is silent, while a question is open, between and during turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{Folder, Running, events, list, reason, said, script, scripted, texts};
use crate::terminal::{CTRL_C, CTRL_D, Terminal};

const HELD: &str = "cordis.yml changed; applied when this turn ends";

#[test]
fn a_save_while_the_model_is_silent_is_applied_when_the_turn_is_cancelled() {
    let silent = "name: llm-fake, config: {script: [{content: Late}], delayMs: 600000}";
    let folder = Folder::with(&list(&[("llm", silent)]));
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    terminal.wait_for("one\x1b[?2004l");

    folder.save(&scripted("{content: Hello}"));
    terminal.wait_for(HELD);
    terminal.type_keys(CTRL_C);
    terminal.wait_for("[nano-cordis] applied cordis.yml");
    terminal.wait_for("you> ");
    terminal.type_keys("two\r");
    terminal.wait_for("assistant> Hello");
    terminal.type_keys(CTRL_D);
    terminal.ended();

    let [first, second] = &folder.sessions()[..] else { panic!("{:?}", folder.sessions()) };
    let mut turns = [first, second].map(|it| {
        let log = events(it);
        (said(&log).concat(), reason(&log).to_owned())
    });
    turns.sort();
    assert_eq!(turns, [("one".into(), "aborted".into()), ("two".into(), "completed".into())]);
}

#[test]
fn a_save_while_a_question_is_open_leaves_the_question_open_and_is_applied_after_the_turn() {
    let folder = Folder::with(&list(&[]));
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    terminal.wait_for("Allow bash {\"command\":\"echo hello from nano\"}? [y/N] ");

    folder.save(&list(&[("prompt", "name: prompt, config: {persona: another}")]));
    terminal.wait_for(HELD);
    terminal.type_keys("y\r");
    terminal.wait_for("[result] hello from nano");
    terminal.wait_for("assistant> ");
    terminal.wait_for("[nano-cordis] applied cordis.yml");
    terminal.wait_for("session 2");
    terminal.type_keys(CTRL_D);
    terminal.ended();

    assert_eq!(reason(&folder.log()), "completed");
}

#[test]
fn a_save_that_unguards_while_a_question_is_open_does_not_answer_it() {
    let folder = Folder::with(&list(&[]));
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    terminal.wait_for("[y/N] ");

    folder.save(&list(&[("approval", "")]));
    terminal.wait_for(HELD);
    terminal.type_keys("n\r");
    terminal.wait_for("[result] Error: the user refused");
    terminal.wait_for("`approval` would guard nothing. Apply? [y/N] ");
    terminal.type_keys("n\r");
    terminal.wait_for("you> ");
    terminal.type_keys("two\r");
    terminal.wait_for("Allow bash");
    terminal.type_keys(CTRL_C);
    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_D);
    terminal.ended();

    assert!(texts(&folder.log(), "tool/result").iter().all(|it| it.starts_with("Error: ")));
}

/// The agent, whose every turn asks for a command, in one of many versions.
fn version(number: usize) -> String {
    let model =
        script(&format!("{{tool: bash, args: {{command: echo {number}}}}}, {{content: Done}}"));
    list(&[
        ("prompt", &format!("name: prompt, config: {{persona: version {number}}}")),
        ("llm", &model),
    ])
}

#[test]
fn two_hundred_saves_among_thirty_turns_lose_no_turn_and_run_no_command_unasked() {
    let folder = Arc::new(Folder::with(&version(0)));
    let mut running = Running::start(folder.command(&[]));
    running.wait_for_error("continue later");
    let is_over = Arc::new(AtomicBool::new(false));
    let (saved, stop) = (folder.clone(), is_over.clone());
    let editor = thread::spawn(move || {
        let mut number = 0;
        while number < 200 || !stop.load(Ordering::SeqCst) {
            number += 1;
            saved.save(&version(number));
            thread::park_timeout(Duration::from_millis(30));
        }
    });

    for turn in 1..=30 {
        running.write(&format!("turn {turn}\n"));
        running.write(if turn % 3 == 0 { "y\n" } else { "n\n" });
        running.wait_for_outputs("assistant> Done\n", turn);
    }
    is_over.store(true, Ordering::SeqCst);
    editor.join().unwrap();
    running.end_of_input();
    let ended = running.ended();

    let logs: Vec<_> = folder.sessions().iter().map(|it| events(it)).collect();
    let mut turns: Vec<_> = logs.iter().flat_map(|it| said(it)).collect();
    turns.sort_by_key(|it| it.trim_start_matches("turn ").parse::<usize>().unwrap());
    let expected: Vec<_> = (1..=30).map(|it| format!("turn {it}")).collect();
    assert_eq!(turns, expected);
    assert!(logs.iter().all(|it| reason(it) == "completed"));
    let refused = |it: &&str| it.starts_with("Error: the user refused");
    let results: Vec<_> = logs.iter().flat_map(|it| texts(it, "tool/result")).collect();
    assert_eq!((results.len(), results.iter().filter(|it| refused(it)).count()), (30, 20));
    assert_eq!((ended.out.matches("Allow bash ").count(), ended.code()), (30, 0));
}
