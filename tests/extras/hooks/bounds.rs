//! Hooks that do not behave.

use std::time::{Duration, Instant};

use nano_cordis::harness::tools::ToolResult;
use serde_json::{Value, json};

use super::before::assert_refused;
use super::rig::{before, hooks};

fn limited(command: &str) -> Value {
    json!({ "PreToolUse": [{ "command": command, "timeoutMs": 300 }] })
}

#[test]
fn d_65_a_hook_that_does_not_end_blocks_and_its_whole_group_is_stopped() {
    let ignoring =
        "trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > $DIR/pid; while :; do sleep 60; done'";
    for command in ["echo $$ > $DIR/pid; exec sleep 60", ignoring] {
        hooks(&limited(command), async |it| {
            assert_refused(it, "it did not end within 300 ms").await;

            it.gone(&it.line("pid").await).await;
            assert_eq!(it.take_notices().len(), 1);
        });
    }
}

#[test]
fn d_65_a_hook_that_ends_with_0_when_its_time_is_over_is_late() {
    hooks(&limited("trap 'exit 0' TERM; while :; do sleep 0.05; done"), async |it| {
        assert_refused(it, "it did not end within 300 ms").await;
    });
}

#[test]
fn a_child_that_keeps_the_pipes_open_does_not_hold_the_call() {
    hooks(&before("sleep 60 & echo $! > $DIR/pid"), async |it| {
        let begun = Instant::now();

        let result = it.echo("hi").await;

        assert_eq!(result, ToolResult::text("hi"));
        assert!(begun.elapsed() < Duration::from_secs(30));
        let pid = it.line("pid").await;
        it.save(&super::rig::list(&json!({}))).await.unwrap_err();
        it.root.shutdown(Duration::from_secs(30)).await;
        it.gone(&pid).await;
    });
}

#[test]
fn endless_output_is_read_and_only_its_ends_are_kept() {
    let much = "head -c 100000000 /dev/zero | tr '\\0' x";
    hooks(&before(much), async |it| assert_eq!(it.echo("hi").await, ToolResult::text("hi")));
    hooks(&before(&format!("({much}; echo; echo end) >&2; exit 2")), async |it| {
        let result = it.echo("hi").await;

        assert!(result.denied && result.content.ends_with("\nend"), "{}", result.content.len());
        assert!(result.content.contains("… 99970005 bytes left out …"), "{}", result.content.len());
        assert!(result.content.len() < 31_000);
    });
}

#[test]
fn an_answer_that_is_too_long_to_be_read_may_have_meant_no() {
    let long = r#"printf '{"reason":"'; head -c 50000 /dev/zero | tr '\0' x; printf '","decision":"block"}'"#;
    hooks(&before(long), async |it| {
        assert_refused(it, "it gave an answer that is too long").await;
    });
}

#[test]
fn large_input_reaches_a_hook_whole() {
    hooks(&before("wc -c > $DIR/size"), async |it| {
        it.echo(&"x".repeat(5_000_000)).await;

        assert!(it.line("size").await.parse::<u64>().unwrap() > 5_000_000);
        assert_eq!(it.runs.get(), 1);
    });
}

#[test]
fn a_hook_need_not_read_its_input() {
    let text = "x".repeat(5_000_000);
    for command in ["exec true", "head -c 10 > /dev/null", "exec <&-; sleep 0.1", "sleep 0.1"] {
        hooks(&before(command), async |it| {
            assert_eq!(it.echo(&text).await.content.len(), text.len(), "{command}");
            assert_eq!(it.take_notices(), [""; 0]);
        });
    }
    hooks(&before("echo no >&2; exit 2"), async |it| {
        assert!(it.echo(&text).await.denied);
    });
}

#[test]
fn stopping_the_turn_stops_the_hook_and_says_nothing_of_it() {
    hooks(&before("echo $$ > $DIR/pid; exec sleep 60"), async |it| {
        let stopping = async {
            let pid = it.line("pid").await;
            it.cancel.cancel();
            pid
        };

        let (result, pid) = tokio::join!(it.echo("hi"), stopping);

        assert_eq!((result, it.runs.get()), (ToolResult::aborted(), 0));
        it.gone(&pid).await;
        assert_eq!(it.take_notices(), [""; 0]);
    });
}

#[test]
fn a_hook_gets_no_terminal_and_runs_in_a_session_of_its_own() {
    let look =
        "[ \"$(ps -o sid= -p $$ | tr -d ' ')\" = $$ ] && ! (: < /dev/tty) 2> /dev/null || exit 2";
    hooks(&before(look), async |it| {
        assert_eq!(it.echo("hi").await, ToolResult::text("hi"));
    });
}
