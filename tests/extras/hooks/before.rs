//! Before a tool runs.

use nano_cordis::harness::{approval::Answer, tools::ToolResult};
use serde_json::{Value, json};

use super::rig::{Rig, before, hooks};

/// The call is refused with this reason, and nothing ran.
pub(super) async fn assert_refused(it: &Rig, reason: &str) {
    let result = it.echo("hi").await;

    let text = format!("Error: a PreToolUse hook refused this call: {reason}");
    assert_eq!((result.content, result.is_error, result.denied), (text, true, true));
    assert_eq!(it.runs.get(), 0);
}

/// The call runs, and nothing is said.
async fn assert_runs(it: &Rig) {
    let result = it.echo("hi").await;

    assert_eq!((result, it.runs.get()), (ToolResult::text("hi"), 1));
    assert_eq!(it.take_notices(), [""; 0]);
}

#[test]
fn a_hook_that_exits_with_0_lets_the_call_run_whatever_it_prints() {
    for command in [
        "true",
        "echo garbage; echo block >&2",
        "printf '\\377\\0\\n'",
        "echo '[\"decision\",\"block\"]'",
    ] {
        hooks(&before(command), async |it| assert_runs(it).await);
    }
}

#[test]
fn exit_2_refuses_the_call_with_what_is_on_stderr() {
    let command = "echo not this; echo 'no echo' >&2; echo today >&2; exit 2";
    hooks(&before(command), async |it| {
        assert_refused(it, "no echo\ntoday").await;
        assert_eq!(it.take_notices(), [""; 0]);
    });
}

#[test]
fn exit_2_refuses_whatever_stdout_allows() {
    let command = r#"echo '{"decision":"approve","hookSpecificOutput":{"permissionDecision":"allow"}}'; exit 2"#;
    hooks(&before(command), async |it| assert_refused(it, "no reason was given").await);
}

#[test]
fn a_reason_that_is_no_text_is_read_as_far_as_it_is() {
    hooks(&before("printf 'a\\377b' >&2; exit 2"), async |it| {
        assert_refused(it, "a\u{fffd}b").await;
    });
}

#[test]
fn another_exit_code_is_shown_once_and_does_not_block() {
    hooks(&before("echo first >&2; echo 'the last' >&2; exit 1"), async |it| {
        let result = it.echo("hi").await;

        assert_eq!((result, it.runs.get()), (ToolResult::text("hi"), 1));
        let expected = "the PreToolUse hook \"echo first >&2; echo 'the last' >&2; exit 1\" failed with exit code 1: \
                        the last";
        assert_eq!(it.take_notices(), [expected]);
    });
}

#[test]
fn d_65_a_hook_that_cannot_be_started_or_is_killed_blocks_and_is_shown() {
    for (command, why) in [
        ("no-such-command-here", "it could not be started (exit code 127): "),
        ("$DIR/absent.sh", "it could not be started (exit code 127): "),
        ("touch $DIR/x.sh; $DIR/x.sh", "it could not be started (exit code 126): "),
        ("kill -KILL $$", "it was killed by SIGKILL"),
        ("bash -c 'kill -SEGV $$'; exit $?", "it was killed by signal 11"),
        ("echo \0", "it could not be started: the command holds a NUL byte"),
    ] {
        hooks(&before(command), async |it| {
            let result = it.echo("hi").await;

            let begin = format!("Error: a PreToolUse hook refused this call: {why}");
            assert!(result.denied && result.content.starts_with(&begin), "{result:?}");
            assert_eq!((it.runs.get(), it.take_notices().len()), (0, 1));
        });
    }
}

#[test]
fn what_a_hook_reads_has_the_names_that_people_know() {
    hooks(&before("cat > $DIR/input"), async |it| {
        it.echo("é\n\"").await;

        let input: Value = serde_json::from_str(&it.read("input")).unwrap();
        let session = input["session_id"].as_str().unwrap();
        let cwd = std::env::current_dir().unwrap();
        let expected = json!({
            "session_id": session,
            "cwd": cwd,
            "hook_event_name": "PreToolUse",
            "tool_name": "echo",
            "tool_input": { "text": "é\n\"" },
            "tool_use_id": "call_1",
        });
        assert_eq!(input, expected);
        assert!(!session.is_empty());
    });
}

#[test]
fn hooks_run_in_the_order_of_the_list_until_one_blocks() {
    let config = json!({ "PreToolUse": [
        { "command": "echo 1 >> $DIR/ran; exit 1" },
        { "command": "echo 2 >> $DIR/ran" },
        { "command": "echo 3 >> $DIR/ran; echo three >&2; exit 2" },
        { "command": "echo 4 >> $DIR/ran" },
    ] });
    hooks(&config, async |it| {
        assert_refused(it, "three").await;

        assert_eq!(it.read("ran"), "1\n2\n3\n");
    });
}

#[test]
fn a_matcher_says_which_tools_a_hook_is_about() {
    for (matcher, blocks) in [
        ("echo", true),
        ("*", true),
        ("ec*", true),
        ("x|echo", true),
        ("", true),
        ("Echo", false),
        ("ech", false),
        ("x|y*", false),
        (".*", false),
    ] {
        let hook = json!({ "matcher": matcher, "command": "exit 2" });
        hooks(&json!({ "PreToolUse": [hook] }), async |it| {
            let result = it.echo("hi").await;

            assert_eq!(result.denied, blocks, "{matcher}");
        });
    }
}

#[test]
fn d_30_a_call_that_cannot_run_needs_no_hook() {
    hooks(&before("echo ran > $DIR/ran; exit 2"), async |it| {
        let unknown = it.call("nothing", "{}").await;
        let wrong = it.call("echo", r#"{"text":1}"#).await;

        assert!(unknown.content.starts_with("Error: unknown tool"), "{unknown:?}");
        assert!(wrong.content.starts_with("Error: invalid arguments"), "{wrong:?}");
        assert_eq!((it.read("ran").as_str(), unknown.denied, wrong.denied), ("", false, false));
    });
}

#[test]
fn what_a_hook_refuses_is_not_asked_about() {
    let list = super::rig::list(&before("exit 2"))
        + "- {id: a, name: approval, config: {tools: [echo]}}\n";
    super::rig::agent(&list, async |it| {
        let asked = it.answers(Answer::Yes);

        it.echo("hi").await;

        assert_eq!((asked.get(), it.runs.get()), (0, 0));
    });
}

#[test]
fn d_24_hooks_do_not_see_variables_whose_names_look_secret() {
    let look = "echo \"[$MY_TOKEN]\" > $DIR/seen";
    let mut passing = before(look);
    passing["passEnv"] = json!(["MY_TOKEN"]);
    for (config, seen) in [(before(look), "[]\n"), (passing, "[abcdef]\n")] {
        hooks(&config, async |it| {
            it.echo("hi").await;

            assert_eq!(it.read("seen"), seen);
        });
    }
}

#[test]
fn secrets_are_masked_in_reasons_and_in_what_is_shown() {
    let escaped = r#"printf '{"decision":"block","reason":"\\u0061bcdef"}'"#;
    for command in ["echo abcdef >&2; exit 2", escaped] {
        hooks(&before(command), async |it| {
            let _hidden = it.service::<nano_cordis::harness::env::Env>().hide("abcdef").unwrap();

            assert_refused(it, "***").await;
        });
    }
    hooks(&before("echo abcdef >&2; exit 7"), async |it| {
        let _hidden = it.service::<nano_cordis::harness::env::Env>().hide("abcdef").unwrap();

        it.echo("hi").await;

        let told = it.take_notices();
        assert!(told[0].ends_with("failed with exit code 7: ***"), "{told:?}");
    });
}
