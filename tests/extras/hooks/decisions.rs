//! What a hook that exits with 0 can decide by JSON on its stdout.

use nano_cordis::harness::{approval::Answer, tools::ToolResult};

use super::before::assert_refused;
use super::rig::{agent, before, hooks, list};

const APPROVAL: &str = "- {id: approval, name: approval, config: {tools: [echo]}}\n";
const ASK: &str = r#"echo '{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"odd"}}'"#;

#[test]
fn a_decision_to_block_refuses_the_call() {
    for answer in [
        r#"{"decision":"block","reason":"why"}"#,
        r#" {"decision":"deny","reason":" why "} "#,
        r#"{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"why"}}"#,
        r#"{"decision":"approve","hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"why"}}"#,
        r#"{"decision":"block","reason":"why","hookSpecificOutput":{"permissionDecision":"allow"}}"#,
        r#"{"continue":false,"stopReason":"why"}"#,
    ] {
        hooks(&before(&format!("echo '{answer}'")), async |it| assert_refused(it, "why").await);
    }
}

#[test]
fn an_answer_that_cannot_be_understood_may_have_meant_no() {
    for (answer, why) in [
        (r#"{"decision":"block","#, "gave an answer that is no JSON: "),
        ("{ok}", "gave an answer that is no JSON: "),
        (r#"{"decision":"blok"}"#, "gave a decision that is not known: \"blok\""),
        (r#"{"decision":true}"#, "gave a decision that is not known: true"),
        (
            r#"{"hookSpecificOutput":{"permissionDecision":"defer"}}"#,
            "gave a decision that is not known: ",
        ),
        (
            r#"{"hookSpecificOutput":{"updatedInput":{}}}"#,
            "wants to change the call, which is not possible",
        ),
    ] {
        hooks(&before(&format!("echo '{answer}'")), async |it| {
            let result = it.echo("hi").await;

            let begin = format!("Error: a PreToolUse hook refused this call: it {why}");
            assert!(result.denied && result.content.starts_with(&begin), "{result:?}");
            assert_eq!((it.runs.get(), it.take_notices().len()), (0, 1));
        });
    }
}

#[test]
fn an_answer_that_decides_nothing_lets_the_call_run() {
    for answer in ["{}", r#"{"decision":null}"#, r#"{"continue":true,"systemMessage":"hi"}"#] {
        hooks(&before(&format!("echo '{answer}'")), async |it| {
            assert_eq!(it.echo("hi").await, ToolResult::text("hi"));
        });
    }
}

#[test]
fn d_31_what_a_hook_allows_is_asked_about_all_the_same() {
    let allow =
        r#"echo '{"decision":"approve","hookSpecificOutput":{"permissionDecision":"allow"}}'"#;
    for (answer, runs) in [(Answer::Yes, 1), (Answer::No, 0)] {
        agent(&(list(&before(allow)) + APPROVAL), async |it| {
            let asked = it.answers(answer);

            it.echo("hi").await;

            assert_eq!((asked.get(), it.runs.get()), (1, runs));
        });
    }
}

#[test]
fn a_hook_can_have_a_person_asked_once() {
    for extra in ["", APPROVAL] {
        for (answer, runs) in [(Answer::Yes, 1), (Answer::No, 0)] {
            agent(&(list(&before(ASK)) + extra), async |it| {
                it.take_notices();
                let asked = it.answers(answer);

                let result = it.echo("hi").await;

                assert_eq!((asked.get(), it.runs.get()), (1, runs));
                assert_eq!(result.denied, runs == 0);
                assert_eq!(it.take_notices(), ["a PreToolUse hook wants you to be asked: odd"]);
            });
        }
    }
}

#[test]
fn nobody_there_to_be_asked_is_a_no() {
    hooks(&before(ASK), async |it| {
        let result = it.echo("hi").await;

        let expected = "Error: nobody was there to approve this call, so it was refused; a PreToolUse hook wants it \
                        to be asked about: odd";
        assert_eq!((result.content.as_str(), it.runs.get()), (expected, 0));
    });
}

#[test]
fn a_later_hook_can_still_refuse_what_an_earlier_one_would_ask_about() {
    let config = serde_json::json!({ "PreToolUse": [{ "command": ASK }, { "command": "echo no >&2; exit 2" }] });
    hooks(&config, async |it| {
        let asked = it.answers(Answer::Yes);

        assert_refused(it, "no").await;

        assert_eq!(asked.get(), 0);
    });
}
