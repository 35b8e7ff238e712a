//! `stream-json`: a line for the session, the log as it is written, what is live, and a result.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::{Ended, Folder, Running, id_of, list, script, scripted};

const STREAM: [&str; 2] = ["--output-format", "stream-json"];

fn lines(ended: &Ended) -> Vec<Value> {
    ended.out.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

fn kinds(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|it| it["type"].as_str().unwrap()).collect()
}

/// The last line, which has to be the result with the exit status of the process.
fn result(ended: &Ended) -> Value {
    let last = lines(ended).pop().unwrap();
    assert_eq!((&last["type"], &last["schema"]), (&json!("result"), &json!(1)), "{ended:?}");
    assert_eq!(last["exitCode"], ended.code(), "{ended:?}");
    last
}

#[test]
fn h_156_a_stream_is_the_session_the_log_byte_for_byte_and_the_result() {
    let folder = Folder::new();

    let ended = folder.run(&[&STREAM[..], &["Say hello"]].concat(), "y\n");

    let log = &folder.sessions()[0];
    let (first, rest) = ended.out.split_once('\n').unwrap();
    let rest = rest.strip_prefix(&fs::read_to_string(log).unwrap()).unwrap();
    let cwd = folder.path().canonicalize().unwrap();
    let session = json!({ "type": "session", "schema": 1, "session": id_of(log), "cwd": cwd });
    assert_eq!(serde_json::from_str::<Value>(first).unwrap(), session);
    assert_eq!((rest.lines().count(), result(&ended)["reason"].as_str()), (1, Some("completed")));
}

#[test]
fn h_156_what_is_live_has_no_number_and_comes_before_what_is_logged() {
    let folder = Folder::with(&scripted("{pieces: [Hel], retry: it broke, content: Hello}"));

    let ended = folder.run(&[&STREAM[..], &["hi"]].concat(), "");

    let all = lines(&ended);
    let live: Vec<_> = all.iter().filter(|it| it["seq"].is_null()).skip(1).collect();
    let piece = json!({ "type": "assistant/delta", "data": { "text": "Hel" } });
    let retry = json!({ "why": "it broke", "afterMs": 0, "attempt": 1, "of": 1 });
    assert_eq!(live[..2], [&piece, &json!({ "type": "assistant/retry", "data": retry })]);
    assert_eq!(kinds(&all)[5..8], ["assistant/delta", "assistant/retry", "assistant/message"]);
}

#[test]
fn h_156_a_history_that_is_gone_on_with_is_not_told_again() {
    let folder = Folder::with(&scripted("{content: Hello}"));
    folder.run(&["first"], "");

    let ended = folder.run(&[&STREAM[..], &["-c", "second"]].concat(), "");

    let all = lines(&ended);
    assert_eq!(kinds(&all)[..2], ["session", "turn/start"]);
    assert_eq!((all[1]["data"]["turn"].as_u64(), ended.out.contains("first")), (Some(2), false));
}

#[test]
fn h_156_control_characters_of_the_log_are_escaped_and_mean_the_same() {
    let folder = Folder::with(&scripted(r#"{content: "a\u009b\u007f"}"#));

    let ended = folder.run(&[&STREAM[..], &["a\u{85}"]].concat(), "");

    assert!(!ended.out.contains(|it: char| it.is_control() && it != '\n'), "{:?}", ended.out);
    let log = fs::read_to_string(&folder.sessions()[0]).unwrap();
    let logged: Vec<Value> = log.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(lines(&ended)[1..=logged.len()], logged);
}

#[test]
fn h_156_whatever_ends_a_turn_the_last_line_is_its_result() {
    let silent =
        list(&[("llm", "name: llm-fake, config: {delayMs: 60000, script: [{pieces: [Hel]}]}")]);
    for (signal, status) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        let folder = Folder::with(&silent);
        let running = Running::start(folder.command(&[&STREAM[..], &["hi"]].concat()));

        running.wait_for_output("assistant/delta");
        running.signal(signal);
        let ended = running.ended_with_input_open();

        assert_eq!((result(&ended)["reason"].as_str(), ended.code()), (Some("aborted"), status));
    }
}

#[test]
fn h_156_without_a_turn_the_last_line_is_a_result_too() {
    let folder = Folder::with(&scripted("{content: Hello}"));
    let wrong = Folder::with(&list(&[("loop", "name: agent-loop, config: {maxSteps: many}")]));

    let empty = folder.run(&STREAM, "");
    let mut running = Running::start(folder.command(&STREAM));
    running.wait_for_error("[nano-cordis] session ");
    running.signal(Signal::SIGTERM);
    running.end_of_input();
    let refused = wrong.run(&STREAM, "hi\n");
    let misused = folder.run(&[&STREAM[..], &["--resum"]].concat(), "");

    for (ended, reason, status) in [
        (empty, "completed", 0),
        (running.ended(), "aborted", 143),
        (refused, "error", 2),
        (misused, "error", 2),
    ] {
        let result = result(&ended);
        assert_eq!((result["reason"].as_str(), ended.code()), (Some(reason), status), "{ended:?}");
        assert_eq!(result["session"], json!(null));
    }
}

#[test]
fn h_156_a_piped_conversation_streams_turn_after_turn_each_with_its_result() {
    let folder = Folder::with(&list(&[("llm", &script("{content: Hello}"))]));

    let ended = folder.run(&STREAM, "one\ntwo\n");

    let all = lines(&ended);
    let turn = [
        "turn/start",
        "step/start",
        "user/message",
        "request/header",
        "assistant/message",
        "step/end",
        "turn/end",
        "result",
    ];
    let again: Vec<_> = turn.iter().copied().filter(|it| *it != "request/header").collect();
    assert_eq!(kinds(&all), [&["session"][..], &turn, &again].concat());
}
