//! The examples: each is run as its README says, and each is done live in a conversation.

mod live;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::mpsc,
    thread,
};

use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::{
    server::{Answer, Server},
    support::{Ended, Folder, Running},
};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// A copy of an example.
fn example(name: &str) -> Folder {
    let folder = Folder::new();
    for file in fs::read_dir(examples().join(name)).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    folder
}

/// Runs a command to its end, with this on standard input.
fn run(command: Command, input: &str) -> Ended {
    let mut running = Running::start(command);
    running.write(input);
    running.end_of_input();
    running.ended()
}

/// A model server on a thread of its own.
fn serve(answers: Vec<Answer>) -> Server {
    let (sender, server) = mpsc::channel();
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            sender.send(Server::start(answers).await).unwrap();
            std::future::pending::<()>().await;
        });
    });
    server.recv().unwrap()
}

/// The command with the variables of the examples.
fn asking(mut command: Command, server: &Server) -> Command {
    let url = server.url("/v1");
    let host = url.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    command.env("LLM_BASE_URL", url).env("LLM_HOST", host).env("LLM_API_KEY", "sk-of-the-test");
    command
}

fn streamed(delta: &Value, reason: &str) -> Answer {
    let first = json!({ "choices": [{ "delta": delta, "finish_reason": null }] }).to_string();
    let last = json!({ "choices": [{ "delta": {}, "finish_reason": reason }] }).to_string();
    Answer::stream(&[&first, &last, "[DONE]"])
}

fn says(text: &str) -> Answer {
    streamed(&json!({ "role": "assistant", "content": text }), "stop")
}

fn calls_echo(text: &str) -> Answer {
    let arguments = json!({ "text": text }).to_string();
    let function = json!({ "name": "echo", "arguments": arguments });
    let call = json!({ "index": 0, "id": "c1", "type": "function", "function": function });
    streamed(&json!({ "tool_calls": [call] }), "tool_calls")
}

/// The last header of a log.
fn header(log: &[Value]) -> &Value {
    &log.iter().rfind(|it| it["type"] == "request/header").unwrap()["data"]["header"]
}

#[test]
fn exercise_1_a_tool_in_typescript_is_in_the_header_and_can_be_called() {
    let folder = example("exercise-1-add-a-tool");

    let ended = folder.run(&["What day is it?"], "");

    assert!(ended.out.starts_with("[tool] date {\"days\":0}\n[result] 20"), "{ended:?}");
    assert!(ended.out.ends_with("assistant> That is the date.\n"), "{ended:?}");
    let log = folder.log();
    assert_eq!(header(&log)["tools"][0]["function"]["name"], "date");
}

#[test]
fn exercise_2_one_entry_changes_the_model() {
    let server = serve(vec![says("Hello from afar.")]);
    let folder = example("exercise-2-change-the-model");

    let ended = run(asking(folder.command(&["Say hello"]), &server), "");

    assert_eq!(ended.out, "assistant> Hello from afar.\n", "{ended:?}");
    let asked = server.only();
    assert_eq!(asked.header("authorization"), Some("Bearer sk-of-the-test"));
    assert_eq!(asked.json()["model"], "deepseek-chat");
}

#[test]
fn exercise_3_the_policy_refuses_before_anybody_is_asked() {
    let folder = example("exercise-3-write-a-policy");

    let ended = folder.run(&["Tidy up"], "y\n");

    assert!(ended.out.contains("`rm -rf` is not allowed here"), "{ended:?}");
    assert!(!ended.out.contains("Allow bash {\"command\":\"rm"), "{ended:?}");
    assert!(ended.out.contains("Allow bash {\"command\":\"ls\"}? [y/N] "), "{ended:?}");
    assert!(ended.out.contains("no-rm-rf.ts"), "the second command does not run: {ended:?}");
}

#[test]
fn exercise_5_the_read_only_shell_looks_and_does_not_touch() {
    let folder = example("exercise-5-read-only-shell");

    let ended = folder.run(&["Look around"], "y\ny\n");

    assert!(ended.out.contains("[result] looking\n"), "{ended:?}");
    assert!(ended.out.contains("`touch` is none of ls, cat, echo"), "{ended:?}");
    assert!(!folder.has("precious"));
}

#[test]
fn the_mini_harness_does_what_the_tutorial_shows() {
    let server = serve(vec![calls_echo("hello harness"), says("It said: echo: hello harness")]);
    let folder = example("mini-harness");

    let ended = run(asking(folder.command(&["Echo \"hello harness\", please."]), &server), "");

    assert_eq!(
        ended.out,
        "[tool] echo {\"text\":\"hello harness\"}\n[result] echo: hello harness\n\n\
         assistant> It said: echo: hello harness\n",
        "{ended:?}"
    );
    let [first, second] = &server.received()[..] else { panic!("{:?}", server.received()) };
    let tool = &first.json()["tools"][0]["function"];
    assert_eq!(
        (&tool["name"], &tool["parameters"]["required"]),
        (&json!("echo"), &json!(["text"]))
    );
    let messages = second.json()["messages"].as_array().unwrap().clone();
    let roles: Vec<_> = messages.iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
    assert_eq!(messages[3]["content"], "echo: hello harness");
    assert_eq!(messages[3]["tool_call_id"], "c1");
}

#[test]
fn the_mini_harness_stops_after_ten_rounds() {
    let server = serve((0..12).map(|round| calls_echo(&round.to_string())).collect());
    let folder = example("mini-harness");

    let ended = run(asking(folder.command(&["Go on for ever."]), &server), "");

    assert_eq!((server.received().len(), ended.code()), (10, 3), "{ended:?}");
    assert!(ended.err.contains("stopped after 10 steps"), "{ended:?}");
}

#[test]
fn a_model_adapter_in_typescript_leads_a_turn_with_a_tool_call() {
    let call = json!({ "id": "c1", "type": "function", "function": { "name": "bash", "arguments": "{\"command\":\"echo hi\"}" } });
    let calling = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
    let server = serve(vec![Answer::message(&calling, "tool_calls"), Answer::reply("Done.")]);
    let folder = example("llm-in-typescript");

    let ended = run(asking(folder.command(&["Say hi"]), &server), "y\n");

    assert!(ended.out.contains("[result] hi\n"), "{ended:?}");
    assert!(ended.out.ends_with("assistant> Done.\n"), "{ended:?}");
    let [first, second] = &server.received()[..] else { panic!("{:?}", server.received()) };
    assert_eq!(first.header("authorization"), Some("Bearer sk-of-the-test"));
    assert_eq!(first.json()["messages"][0]["role"], "system");
    assert_eq!(second.json()["messages"][3]["role"], "tool");
}

#[test]
fn a_model_adapter_in_typescript_gives_the_words_of_its_server_and_never_the_key() {
    let said = json!({ "error": "no such key: sk-of-the-test" });
    let server = serve(vec![Answer::json(401, &said)]);
    let folder = example("llm-in-typescript");

    let ended = run(asking(folder.command(&["Say hi"]), &server), "");

    assert!(ended.err.contains("401") && ended.err.contains("no such key"), "{ended:?}");
    assert!(!format!("{ended:?}").contains("sk-of-the-test"), "{ended:?}");
    assert_eq!(ended.code(), 1);
}

#[test]
fn a_model_adapter_in_typescript_reaches_no_host_that_is_not_allowed() {
    let server = serve(Vec::new());
    let folder = example("llm-in-typescript");
    let mut command = asking(folder.command(&["Say hi"]), &server);
    command.env("LLM_HOST", "example.org");

    let ended = run(command, "");

    assert!(ended.err.contains("not allowed") && ended.err.contains("allow:"), "{ended:?}");
    assert_eq!((server.received().len(), ended.code()), (0, 1));
}
