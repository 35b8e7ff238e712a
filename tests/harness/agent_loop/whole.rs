//! The whole agent from one list in YAML, as a user starts it.

use std::rc::Rc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use nano_cordis::cordis::{BoxError, Context, Next, NoConfig, PluginDef, plugin};
use nano_cordis::harness::builtins;
use nano_cordis::harness::session::Session;
use nano_cordis::harness::session::event::Reason;
use nano_cordis::harness::shell::{Shell, ShellError, ShellRequest};
use nano_cordis::harness::tools::{Call, Order, PreExecute, Verdict};

use super::composed::{composed, composed_in_real_time};
use super::rig::{log, results};
use crate::server::{Answer, Server};

#[expect(unreachable_pub, reason = "it is public where it belongs, in a program of its own")]
#[path = "../../../examples/own-binary/src/shell_readonly.rs"]
mod shell_readonly;

const AGENT: &str = include_str!("../../fixtures/agent.cordis.yml");

#[test]
fn h_169_the_fixture_runs_a_command_and_logs_the_whole_turn() {
    composed_in_real_time(AGENT, builtins(), async |it| {
        let session = it.session();
        it.approve();

        let outcome = it.run(&session, "Say hello").await.unwrap();

        assert_eq!(outcome.text, "The command ran; that is all for this scripted reply.");
        assert_whole_turn(&session);
    });
}

#[test]
fn h_170_the_order_of_the_entries_does_not_matter() {
    let mut entries: Vec<_> = AGENT.split("\n\n").collect();
    entries.reverse();
    composed_in_real_time(&entries.join("\n\n"), builtins(), async |it| {
        let session = it.session();
        it.approve();

        it.run(&session, "Say hello").await.unwrap();

        assert_whole_turn(&session);
    });
}

#[test]
fn h_171_without_a_model_the_loop_waits_and_starts_when_there_is_one() {
    let without = AGENT.replace("- id: llm\n  name: llm-fake\n", "");
    composed_in_real_time(&without, builtins(), async |it| {
        let waits = "`loop` waits for `llm`, which no entry provides";
        assert_eq!(it.loader().problem().as_deref(), Some(waits));
        assert!(it.agent_loop().is_none());

        it.save(AGENT).await;
        it.approve();
        let session = it.session();
        it.run(&session, "Say hello").await.unwrap();

        assert_eq!(it.loader().problem(), None);
        assert_whole_turn(&session);
    });
}

#[test]
fn h_172_another_model_gets_the_messages_that_the_log_derives() {
    let server = async || {
        let call = json!({ "id": "a", "type": "function", "function": { "name": "bash", "arguments": "{\"command\":\"echo hi\"}" } });
        let calls = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
        Server::start([Answer::message(&calls, "tool_calls"), Answer::reply("done")]).await
    };
    composed_in_real_time(AGENT, builtins(), async |it| {
        let (server, session) = (server().await, it.session());
        let adapter =
            format!("name: llm-openai\n  config: {{baseUrl: '{}', model: m}}", server.url("/v1"));
        it.save(&AGENT.replace("name: llm-fake", &adapter)).await;
        it.approve();

        let outcome = it.run(&session, "Say hi").await.unwrap();

        assert_eq!((outcome.reason, outcome.text.as_str()), (Reason::Completed, "done"));
        let mut sent = server.received()[1].json()["messages"].as_array().unwrap().clone();
        assert_eq!(sent.remove(0)["content"], "You are an agent in a test.");
        let derived = serde_json::to_value(session.messages()).unwrap();
        let answered = derived.as_array().unwrap().split_last().unwrap().1.to_vec();
        assert_eq!(without_null_content(sent), without_null_content(answered));
    });
}

#[test]
fn h_173_a_policy_refuses_one_command_and_lets_the_others_run() {
    let script = "name: llm-fake
  config:
    script:
      - tool_calls:
          - {function: {name: bash, arguments: {command: 'rm -rf build'}}}
          - {function: {name: bash, arguments: {command: 'echo fine'}}}
      - content: done";
    let list =
        format!("{}\n- {{id: policy, name: no-rm}}", AGENT.replace("name: llm-fake", script));
    composed_in_real_time(&list, builtins().with("no-rm", no_rm()), async |it| {
        let session = it.session();
        it.approve();

        let outcome = it.run(&session, "Clean up").await.unwrap();

        assert_eq!((outcome.tool_calls, outcome.denied), (2, 1));
        let expected = ["Error: rm -rf is not allowed here", "fine\n\n[exit code: 0]"];
        assert_eq!(results(&session), expected);
    });
}

#[test]
fn a_20_a_read_only_shell_runs_what_looks_and_nothing_that_only_begins_so() {
    let refused = [
        "ls; touch ran",
        "ls\ntouch ran",
        "ls $(touch ran)",
        "cat <(touch ran)",
        "echo x > ran",
        "echo x >> ran",
        "lsof",
        "ls & touch ran",
        "ls && touch ran",
        "ls | tee ran",
        "ls `touch ran`",
        "ls\rtouch ran",
        "echo \"$(touch ran)\"",
        "./ls",
        "touch ran",
        "\\ls",
        "l\\s",
        "'ls'",
        "FOO=1 ls",
        "",
        " ",
        "ls\u{a0}-la",
        "cat < ran",
        "{ ls\n}",
        "!ls",
    ];
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display();
    let list = AGENT.replace("name: shell-local", "name: shell-readonly");
    let modules = builtins().with("shell-readonly", plugin(shell_readonly::apply));
    composed_in_real_time(&list, modules, async |it| {
        let shell = it.root.get::<dyn Shell>().unwrap();
        let run = async |command: String| {
            let spec = shell.resolve(&ShellRequest { command, ..ShellRequest::default() })?;
            shell.run(spec, CancellationToken::new()).await
        };

        for command in refused {
            let command = command.replace("ran", &format!("{place}/ran"));
            let outcome = run(command.clone()).await;
            assert!(matches!(outcome, Err(ShellError::Refused { .. })), "{command:?}: {outcome:?}");
        }
        let listed = run(format!("ls -la {place}")).await.unwrap();

        assert_eq!(listed.exit_code, Some(0));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    });
}

#[test]
fn h_175_the_names_of_the_original_mean_the_built_ins() {
    let list = AGENT.replace("name: ", "name: ./src/harness/");
    let list = list
        .lines()
        .map(|it| if it.contains("./src/") { format!("{it}.ts") } else { it.to_owned() })
        .collect::<Vec<_>>()
        .join("\n");
    composed(&list, builtins(), async |it| {
        assert_eq!(it.loader().problem(), None);
    });
}

/// The log of H-32, with one result of bash.
fn assert_whole_turn(session: &Session) {
    let expected = [
        "turn/start 1",
        "step/start 1",
        "user/message Say hello",
        "request/header",
        "assistant/message",
        "tool/call call_1",
        "tool/result call_1",
        "step/end",
        "step/start 2",
        "assistant/message",
        "step/end",
        "turn/end Completed",
    ];
    assert_eq!(log(session), expected);
    assert_eq!(results(session), ["hello from nano\n\n[exit code: 0]"]);
}

/// The third exercise: a guard-rail, not a boundary.
fn no_rm() -> PluginDef {
    plugin(|ctx: Context, _: NoConfig| async move {
        let judge = async |_: Context, call: Rc<Call>, next: Next<PreExecute>| {
            let command = call.arguments.get("command").and_then(Value::as_str);
            if command.is_some_and(|it| it.contains("rm -rf")) {
                return Ok(Verdict::Deny("rm -rf is not allowed here".to_owned()));
            }
            next.run().await
        };
        ctx.intercept_at::<PreExecute>(Order::DECIDING, judge)?;
        Ok::<(), BoxError>(())
    })
}

/// The adapter sends an empty text where the log has `null` beside calls; nothing else may differ.
fn without_null_content(messages: Vec<Value>) -> Vec<Value> {
    let plain = |mut message: Value| {
        if message["content"].is_null() {
            message["content"] = json!("");
        }
        message
    };
    messages.into_iter().map(plain).collect()
}
