//! After a tool ran.

use nano_cordis::harness::tools::ToolResult;
use serde_json::{Value, json};

use super::rig::{Rig, hooks};

fn after(command: &str) -> Value {
    json!({ "PostToolUse": [{ "matcher": "echo", "command": command }] })
}

#[test]
fn a_reason_is_added_to_the_result_for_the_model_to_read() {
    for command in
        ["echo 'format it' >&2; exit 2", r#"echo '{"decision":"block","reason":"format it"}'"#]
    {
        hooks(&after(command), async |it| {
            let result = it.echo("hi").await;

            assert_eq!(result, ToolResult::text("hi\n\n[PostToolUse hook] format it"));
        });
    }
}

#[test]
fn what_else_a_hook_does_leaves_the_result_alone() {
    for (command, notices) in [
        ("echo well done", 0),
        ("exit 1", 1),
        ("no-such-command-here", 1),
        ("kill -KILL $$", 1),
        ("echo '{'", 1),
        (r#"echo '{"hookSpecificOutput":{"permissionDecision":"ask"}}'"#, 0),
    ] {
        hooks(&after(command), async |it| {
            assert_eq!(it.echo("hi").await, ToolResult::text("hi"), "{command}");
            assert_eq!(it.take_notices().len(), notices, "{command}");
        });
    }
}

#[test]
fn it_reads_what_the_tool_said() {
    hooks(&after("cat > $DIR/input"), async |it| {
        it.echo("hi").await;

        let input: Value = serde_json::from_str(&it.read("input")).unwrap();
        assert_eq!(input["hook_event_name"], "PostToolUse");
        assert_eq!(input["tool_input"], json!({ "text": "hi" }));
        assert_eq!(input["tool_response"], json!({ "content": "hi", "is_error": false }));
    });
}

#[test]
fn a_call_that_did_not_run_has_no_result_to_look_at() {
    let mut config = after("echo ran > $DIR/ran");
    config["PreToolUse"] = json!([{ "command": "exit 2" }]);
    hooks(&config, async |it| {
        it.echo("hi").await;
        it.call("echo", "[]").await;
        it.call("nothing", "{}").await;

        assert_eq!(it.read("ran"), "");
    });
}

#[test]
fn a_result_is_kept_when_the_turn_ends_while_a_hook_looks_at_it() {
    hooks(&after("echo $$ > $DIR/pid; exec sleep 60"), async |it| {
        let (result, pid) = tokio::join!(it.echo("hi"), stop_when_it_runs(it));

        assert_eq!(result, ToolResult::text("hi"));
        it.gone(&pid).await;
        assert_eq!(it.take_notices(), [""; 0]);
    });
}

async fn stop_when_it_runs(it: &Rig) -> String {
    let pid = it.line("pid").await;
    it.cancel.cancel();
    pid
}
