//! Hooks as an entry of the list: a guard that is checked, and what a reload does.

use nano_cordis::harness::{
    approval::Answer, session::event::Reason, tools::ToolResult, trust::ConfirmChange,
};
use serde_json::{Value, json};

use super::rig::{agent, before, hooks, list};

#[test]
fn d_17_unknown_keys_are_refused() {
    for (config, told) in [
        (json!({ "PreTooluse": [] }), "config.PreTooluse: unknown key; did you mean `PreToolUse`?"),
        (json!({ "PreToolUse": [{ "comand": "x" }] }), "config.PreToolUse.0.comand: unknown key"),
        (
            json!({ "Stop": [{ "command": "x", "matcher": "y" }] }),
            "config.Stop.0.matcher: unknown key",
        ),
        (json!({ "PostToolUse": [{ "command": "x", "timeout": 5 }] }), "timeout: unknown key"),
        (
            json!({ "PreToolUse": [{ "command": "x", "timeoutMs": 0 }] }),
            "config.PreToolUse.0.timeoutMs",
        ),
        (json!({ "PreToolUse": [{}] }), "config.PreToolUse.0.command"),
    ] {
        hooks(&json!({}), async |it| {
            let refused = it.save(&list(&config)).await.unwrap_err();

            assert!(refused.contains(told), "{refused}");
        });
    }
}

#[test]
fn d_20_hooks_cannot_be_optional() {
    hooks(&json!({}), async |it| {
        let optional = list(&json!({})).replace("name: hooks,", "name: hooks, optional: true,");

        let refused = it.save(&optional).await.unwrap_err();

        assert!(refused.contains("a guard cannot be optional"), "{refused}");
    });
}

#[test]
fn d_33_a_matcher_that_names_no_tool_is_a_warning_at_each_apply() {
    let config = json!({
        "PreToolUse": [
            { "matcher": "Bash|echo", "command": "true" },
            { "matcher": "Bash", "command": "false" },
            { "matcher": "mcp__*", "command": "true" },
        ],
    });
    hooks(&config, async |it| {
        let warning = "hooks: there is no tool named `Bash`, so its PreToolUse hook never runs";
        it.told(warning).await;
        assert_eq!(it.take_notices(), [warning]);

        it.save(&(list(&config) + "\n# again\n- {id: s, name: shell-local}\n")).await.unwrap();

        it.told(warning).await;
    });
}

#[test]
fn removing_the_entry_lets_the_call_run() {
    hooks(&before("exit 2"), async |it| {
        let refused = it.echo("hi").await;
        let with = list(&json!({}));
        let without: Vec<_> = with.lines().filter(|it| !it.contains("name: hooks")).collect();
        it.save(&without.join("\n")).await.unwrap();

        let result = it.echo("hi").await;

        assert!(refused.denied);
        assert_eq!(result, ToolResult::text("hi"));
    });
}

/// A turn that calls `echo` once.
fn calling(hooks: &Value) -> String {
    let script =
        json!({ "script": [{ "tool": "echo", "args": { "text": "hi" } }, { "content": "done" }] });
    list(hooks).replace("name: llm-fake", &format!("name: llm-fake, config: {script}"))
}

#[test]
fn a_reload_waits_until_the_turn_that_a_hook_is_part_of_has_ended() {
    let slow =
        "echo begun > $DIR/begun; while [ ! -e $DIR/go ]; do sleep 0.02; done; echo no >&2; exit 2";
    agent(&calling(&before(slow)), async |it| {
        let session = it.session();
        let saving = async {
            it.line("begun").await;
            let changed = calling(&json!({ "passEnv": ["X"] }));
            let save = it.save(&changed);
            let go = async {
                tokio::task::yield_now().await;
                std::fs::write(it.folder.path().join("go"), "").unwrap();
            };
            tokio::join!(save, go).0
        };

        let (outcome, saved) = tokio::join!(it.turn(&session), saving);

        assert_eq!((outcome.reason, outcome.denied, it.runs.get()), (Reason::Completed, 1, 0));
        let refused = saved.unwrap_err();
        assert!(refused.contains("`hooks` would run hooks"), "{refused}");
    });
}

#[test]
fn a_hook_that_is_unloaded_while_it_runs_blocks_and_is_stopped() {
    hooks(&before("echo $$ > $DIR/pid; exec sleep 60"), async |it| {
        let unloading = async {
            let pid = it.line("pid").await;
            it.root.answer::<ConfirmChange>(async |_, _| Ok(Some(Answer::Yes))).unwrap();
            it.save(&list(&json!({}))).await.unwrap();
            pid
        };

        let (result, pid) = tokio::join!(it.echo("hi"), unloading);

        let told =
            "Error: a PreToolUse hook refused this call: it was stopped: the hooks were unloaded";
        assert_eq!((result.content.as_str(), result.denied, it.runs.get()), (told, true, 0));
        it.gone(&pid).await;
    });
}

#[test]
fn d_22_what_a_hook_leaves_running_may_have_changed_the_list() {
    let leaving = "(echo $BASHPID > $DIR/pid; exec sleep 60) > /dev/null 2>&1 < /dev/null &";
    hooks(&before(leaving), async |it| {
        it.echo("hi").await;
        it.line("pid").await;

        let refused = it.save(&list(&json!({}))).await.unwrap_err();

        assert!(refused.contains("there is nobody at a terminal to say yes"), "{refused}");
        assert!(it.echo("hi").await.content == "hi", "the hook is still there");
    });
}
