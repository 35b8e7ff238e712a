//! Output for programs: whatever happens, stdout holds what the contract in the README says and nothing else.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::{Ended, Folder, Running, id_of, list, reason, said, script, scripted};
use crate::terminal::{CTRL_D, Terminal};

mod stream;

/// The fields of a result, in their order.
const FIELDS: [&str; 11] = [
    "schema",
    "session",
    "reason",
    "text",
    "error",
    "steps",
    "toolCalls",
    "denied",
    "usage",
    "durationMs",
    "exitCode",
];

/// The one object that is all of stdout, with the fields of the schema and no other.
fn result(ended: &Ended) -> Value {
    let [only] = &results(ended)[..] else { panic!("not one object: {ended:?}") };
    assert_eq!(only["exitCode"], ended.code(), "{ended:?}");
    only.clone()
}

fn results(ended: &Ended) -> Vec<Value> {
    let lines = ended.out.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
    let all: Vec<_> = lines.collect();
    for one in &all {
        let fields: Vec<_> = one.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, FIELDS, "{one}");
        assert!(one["durationMs"].is_u64() && one["schema"] == 1, "{one}");
    }
    all
}

/// What a run that ended before a turn comes to.
fn assert_no_turn(ended: &Ended, code: &str, message: &str) {
    let result = result(ended);
    let told = result["error"]["message"].as_str().unwrap();

    assert_eq!((&result["session"], &result["reason"]), (&json!(null), &json!("error")));
    assert_eq!((&result["error"]["code"], ended.code()), (&json!(code), 2), "{ended:?}");
    assert!(told.contains(message) && ended.err.contains(message), "{ended:?}");
}

#[test]
fn h_156_a_turn_is_one_object_and_nothing_else_is_on_stdout() {
    let folder = Folder::new();

    let ended = folder.run(&["--json", "Say hello"], "y\n");

    let mut result = result(&ended);
    result["durationMs"] = json!(0);
    let expected = json!({
        "schema": 1, "session": id_of(&folder.sessions()[0]), "reason": "completed",
        "text": "The command ran; that is all for this scripted reply.", "error": null, "steps": 2,
        "toolCalls": 1, "denied": 0, "usage": null, "durationMs": 0, "exitCode": 0,
    });
    assert_eq!(result, expected);
    assert_eq!(ended.err, "Allow bash {\"command\":\"echo hello from nano\"}? [y/N] \n");
    assert_eq!(ended.code(), 0);
}

#[test]
fn h_156_the_long_form_of_the_option_means_the_same() {
    let folder = Folder::with(&scripted("{content: Hello}"));

    let ended = folder.run(&["--output-format", "json", "hi"], "");

    assert_eq!(result(&ended)["text"], "Hello");
}

#[test]
fn h_156_a_failed_turn_says_what_failed() {
    let folder = Folder::with(&scripted("{error: the model is on fire}"));

    let ended = folder.run(&["--json", "hi"], "");

    let result = result(&ended);
    let error = json!({ "message": "the model is on fire", "code": "scripted", "status": null });
    assert_eq!((&result["error"], &result["reason"]), (&error, &json!("error")));
    assert_eq!((result["session"].is_string(), ended.code()), (true, 1));
}

#[test]
fn h_156_a_denied_call_is_counted_and_no_failure() {
    let folder = Folder::new();

    for (input, err) in [("n\n", ""), ("", "nobody can answer (end of input)")] {
        let ended = folder.run(&["--json", "Say hello"], input);

        let result = result(&ended);
        assert_eq!([&result["toolCalls"], &result["denied"]], [&json!(1), &json!(1)]);
        assert_eq!((&result["reason"], ended.code()), (&json!("completed"), 0));
        assert!(ended.err.contains(err), "{}", ended.err);
    }
}

#[test]
fn h_156_a_limit_is_a_reason_of_its_own() {
    let call = "{tool: bash, args: {command: 'true'}}";
    let loops = "name: agent-loop, config: {maxSteps: 2}";
    let steps = list(&[("llm", &script(call)), ("approval", ""), ("loop", loops)]);
    let tokens = scripted("{content: Hel, finish_reason: length}");

    for (list, reason, number) in [(steps, "max-steps", 2), (tokens, "max-tokens", 1)] {
        let ended = Folder::with(&list).run(&["--json", "hi"], "");

        let result = result(&ended);
        assert_eq!((&result["reason"], &result["steps"]), (&json!(reason), &json!(number)));
        assert_eq!((&result["error"], ended.code()), (&json!(null), 3));
    }
}

#[test]
fn h_156_a_turn_that_a_signal_ends_has_its_object_and_the_status_of_the_signal() {
    for signal in [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
        Signal::SIGXCPU,
    ] {
        let status = 128 + signal as i32;
        let folder = Folder::new();
        let running = Running::start(folder.command(&["--json", "Say hello"]));

        running.wait_for_error("[y/N] ");
        running.signal(signal);
        let ended = running.ended_with_input_open();

        let result = result(&ended);
        assert_eq!((&result["reason"], ended.code()), (&json!("aborted"), status));
        assert_eq!((result["session"].is_string(), reason(&folder.log())), (true, "aborted"));
    }
}

#[test]
fn h_156_a_process_that_the_system_gives_nothing_has_its_object() {
    for few in 4..24 {
        let folder = Folder::new();
        let line = format!("ulimit -n {few}; exec nano-cordis --json hi");

        let ended = Running::start(folder.shell_command(&line)).ended();

        // So few that not even the loader of programs can do its work are no matter of ours.
        if !ended.err.contains("error while loading shared libraries") {
            assert!(ended.code() < 3, "{few}: {ended:?}");
            result(&ended);
        }
    }
}

#[test]
fn h_156_a_configuration_that_does_not_fit_is_an_object_without_a_session() {
    let wrong = list(&[("loop", "name: agent-loop, config: {maxSteps: many}")]);
    let waiting = list(&[("llm", "")]);

    assert_no_turn(&Folder::with(&wrong).run(&["--json", "hi"], ""), "configuration", "maxSteps");
    assert_no_turn(&Folder::with(&waiting).run(&["--json", "hi"], ""), "configuration", "llm");
    assert_no_turn(&Folder::with(&wrong).run(&["--json"], "hi\n"), "configuration", "maxSteps");
}

#[test]
fn h_156_a_run_that_cannot_begin_is_an_object_without_a_session() {
    let folder = Folder::with(&scripted("{content: Hello}"));

    assert_no_turn(&folder.run(&["--json", "-r", "nobody", "hi"], ""), "usage", "nobody");
    assert_no_turn(&folder.run(&["--json", " "], ""), "usage", "the text is empty");
    let line = folder.shell_command("nano-cordis --json - < .");
    assert_no_turn(&Running::start(line).ended(), "usage", "standard input cannot be read");
    let line = folder.shell_command("nano-cordis --json < .");
    assert_no_turn(&Running::start(line).ended(), "usage", "standard input cannot be read");
}

#[test]
fn h_156_a_command_line_that_cannot_be_read_is_an_object_too_if_it_asks_for_json() {
    for line in [
        &["--json", "--resum", "x"][..],
        &["--resum", "x", "--output-format", "json"],
        &["--output-format=json", "--json"],
        &["--json", "--sessions"],
    ] {
        assert_no_turn(&Folder::new().run(line, ""), "usage", "--");
    }
    assert_eq!(Folder::new().run(&["--resum", "--", "--json"], "").out, "");
}

#[test]
fn h_156_a_piped_conversation_has_one_object_a_turn() {
    let lines = "name: llm-fake, config: {repeat: error, script: [{content: one}, {error: broken}, {content: three}]}";
    let folder = Folder::with(&list(&[("llm", lines)]));

    let ended = folder.run(&["--json"], "a\nb\nc\n");

    let told: Vec<_> =
        results(&ended).iter().map(|it| (it["text"].clone(), it["exitCode"].clone())).collect();
    assert_eq!(told, [(json!("one"), json!(0)), (json!(""), json!(1)), (json!("three"), json!(0))]);
    assert_eq!((ended.code(), said(&folder.log())), (1, vec!["a", "b", "c"]));
    assert!(results(&ended).iter().all(|it| it["session"] == id_of(&folder.sessions()[0])));
}

#[test]
fn h_156_a_conversation_without_a_turn_has_no_object() {
    let ended = Folder::with(&scripted("{content: Hello}")).run(&["--json"], "");

    assert_eq!((ended.out.as_str(), ended.code()), ("", 0));
}

#[test]
fn h_156_a_reader_that_has_gone_ends_the_program_quietly() {
    for format in ["json", "stream-json"] {
        let folder = Folder::with(&scripted("{content: Hello}"));

        let ended =
            Running::start_unread(folder.command(&["--output-format", format, "hi"])).ended();

        assert_eq!((ended.err.as_str(), ended.code()), ("", 141), "{format}");
        for log in folder.sessions() {
            reason(&crate::support::events(&log));
        }
    }
}

#[test]
fn h_156_what_a_turn_cost_is_summed_and_what_is_unknown_is_null() {
    let call = "tool: bash, args: {command: 'true'}, usage: {prompt_tokens: 10, completion_tokens: 2, prompt_tokens_details: {cached_tokens: 4}}";
    let end = "content: done, usage: {prompt_tokens: 20, completion_tokens: 3}";
    let folder = Folder::with(&list(&[
        ("llm", &script(&format!("{{{call}}}, {{{end}}}"))),
        ("approval", ""),
    ]));

    let ended = folder.run(&["--json"], "one\ntwo\n");

    let usage = json!({ "input": 30, "cached": null, "output": 5 });
    assert!(results(&ended).iter().all(|it| it["usage"] == usage), "{}", ended.out);
}

#[test]
fn h_156_control_characters_are_escaped_and_mean_the_same() {
    let folder = Folder::with(&scripted(r#"{content: "a\u001b\u007f\u0085\u009bb\n漢"}"#));

    let ended = folder.run(&["--json", "hi"], "");

    assert_eq!(result(&ended)["text"], "a\u{1b}\u{7f}\u{85}\u{9b}b\n漢");
    assert!(!ended.out.trim_end().contains(char::is_control), "{:?}", ended.out);
}

#[test]
fn h_156_at_a_terminal_questions_and_prompts_are_not_on_stdout() {
    let folder = Folder::new();
    let mut terminal = Terminal::start(folder.shell_command("nano-cordis --json > out.txt"));

    terminal.wait_for("you> ");
    terminal.type_keys("Say hello\r");
    terminal.wait_for("[y/N] ");
    terminal.type_keys("y\r");
    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_D);
    let (_, status) = terminal.ended();

    let written = std::fs::read_to_string(folder.path().join("out.txt")).unwrap();
    let result: Value = serde_json::from_str(&written).unwrap();
    assert_eq!((&result["denied"], &result["toolCalls"], status), (&json!(0), &json!(1), 0));
}
