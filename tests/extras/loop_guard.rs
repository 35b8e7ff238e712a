//! Loop guard: a model that repeats itself reads so, and at last its turn is ended.

use std::rc::Rc;

use nano_cordis::harness::{
    approval::Answer,
    session::{
        Session,
        event::{EventBody, Reason},
    },
};
use serde_json::{Value, json};

use crate::hooks::rig::agent;

/// An agent whose model makes these calls.
fn list(calls: &[Value], guard: &Value, more: &str) -> String {
    let end = json!({ "content": "Done." });
    let script: Vec<_> = calls.iter().chain([&end]).collect();
    format!(
        "
- {{id: session, name: session}}
- {{id: prompt, name: prompt}}
- {{id: tools, name: tools}}
- {{id: echo, name: echo}}
- {{id: llm, name: llm-fake, config: {{script: {}}}}}
- {{id: loop, name: agent-loop}}
- {{id: guard, name: loop-guard, config: {guard}}}
{more}",
        json!(script)
    )
}

fn echo(text: &str) -> Value {
    json!({ "tool": "echo", "args": { "text": text } })
}

/// What the model read, call by call.
fn results(session: &Rc<Session>) -> Vec<String> {
    let text = |body: &EventBody| match body {
        EventBody::ToolResult { message, .. } => Some(message.text().to_owned()),
        _ => None,
    };
    session.events().iter().filter_map(|it| text(&it.body)).collect()
}

const ADVICE: &str = "[loop guard] This was the same call 3 times in a row.";

#[test]
fn from_the_third_identical_call_on_the_model_reads_that_it_repeats_itself() {
    let calls = [echo("a"), echo("a"), echo("a"), echo("a")];
    agent(&list(&calls, &json!({}), ""), async |rig| {
        let session = rig.session();

        let outcome = rig.turn(&session).await;

        let results = results(&session);
        assert_eq!(results[..2], ["a", "a"]);
        assert!(results[2].starts_with(&format!("a\n\n{ADVICE}")), "{results:?}");
        assert!(results[2].ends_with("after 8 the turn is ended."), "{results:?}");
        assert!(results[3].contains("4 times in a row"), "{results:?}");
        assert_eq!(outcome.reason, Reason::Completed);
    });
}

#[test]
fn at_the_eighth_the_turn_is_ended_and_the_user_is_told_why() {
    let calls = vec![echo("a"); 12];
    agent(&list(&calls, &json!({}), ""), async |rig| {
        let session = rig.session();

        let outcome = rig.turn(&session).await;
        let error = outcome.error.unwrap();

        assert_eq!((outcome.reason, outcome.tool_calls, rig.runs.get()), (Reason::Error, 8, 8));
        assert_eq!(error.code.as_deref(), Some("ended"));
        let said = "loop-guard: `echo` was called 8 times in a row with the same arguments";
        assert_eq!(error.message, said);
        assert!(!session.is_mid_turn());
    });
}

#[test]
fn another_call_between_two_identical_ones_begins_the_count_anew() {
    let calls = [echo("a"), echo("a"), echo("b"), echo("a"), echo("a")];
    agent(&list(&calls, &json!({}), ""), async |rig| {
        let session = rig.session();

        rig.turn(&session).await;

        assert_eq!(results(&session), ["a", "a", "b", "a", "a"]);
    });
}

#[test]
fn a_turn_of_the_user_begins_the_count_anew() {
    agent(&list(&[echo("a"), echo("a")], &json!({}), ""), async |rig| {
        let session = rig.session();

        rig.turn(&session).await;
        rig.turn(&session).await;

        assert_eq!(results(&session), ["a", "a", "a", "a"]);
    });
}

#[test]
fn the_order_of_arguments_and_blanks_make_no_other_call() {
    let deep = |text: &str| json!({ "tool": "echo", "args": text });
    let calls = [
        deep(r#"{"text":"a","more":{"x":1,"y":[{"p":1,"q":2}]}}"#),
        deep(r#"{ "more": {"y": [{"q":2,"p":1}], "x": 1}, "text": "a" }"#),
        deep(r#"{"more":{"x":1,"y":[{"p":1,"q":2}]},"text":"a"}"#),
    ];
    agent(&list(&calls, &json!({}), ""), async |rig| {
        let session = rig.session();

        rig.turn(&session).await;

        assert!(results(&session)[2].contains(ADVICE), "{:?}", results(&session));
    });
}

#[test]
fn calls_that_were_refused_or_cannot_run_count_too() {
    let approval = "- {id: approval, name: approval, config: {tools: [echo]}}\n";
    let refused = vec![echo("a"); 3];
    agent(&list(&refused, &json!({}), approval), async |rig| {
        rig.answers(Answer::No);
        let session = rig.session();
        rig.turn(&session).await;
        assert!(results(&session)[2].contains(ADVICE), "{:?}", results(&session));
        assert_eq!(rig.runs.get(), 0);
    });

    let hooks = "- {id: hooks, name: hooks, config: {PreToolUse: [{command: exit 2}]}}\n";
    agent(&format!("{hooks}{}", list(&refused, &json!({}), "")), async |rig| {
        let session = rig.session();
        rig.turn(&session).await;
        assert!(results(&session)[2].contains(ADVICE), "{:?}", results(&session));
        assert_eq!(rig.runs.get(), 0);
    });

    let unknown = vec![json!({ "tool": "nothing", "args": {} }); 3];
    agent(&list(&unknown, &json!({}), ""), async |rig| {
        let session = rig.session();
        rig.turn(&session).await;
        assert!(results(&session)[2].contains(ADVICE), "{:?}", results(&session));
    });
}

#[test]
fn both_numbers_can_be_others_and_none_of_them_zero() {
    let numbers = json!({ "adviseAt": 2, "endAt": 4 });
    agent(&list(&vec![echo("a"); 6], &numbers, ""), async |rig| {
        let session = rig.session();
        let outcome = rig.turn(&session).await;
        assert!(results(&session)[1].contains("2 times in a row"));
        assert_eq!(outcome.tool_calls, 4);

        let refused = rig.save(&list(&[], &json!({ "endAt": 0 }), "")).await.unwrap_err();
        assert!(refused.contains("config.endAt: must be at least 1"), "{refused}");
    });
}

#[test]
fn calls_of_one_reply_beyond_the_last_are_not_run() {
    let one = |id| json!({ "id": format!("call_{id}"), "function": { "name": "echo", "arguments": "{\"text\":\"a\"}" } });
    let many = json!({ "tool_calls": (0..6).map(one).collect::<Vec<_>>() });
    agent(&list(&[many], &json!({ "endAt": 4 }), ""), async |rig| {
        let session = rig.session();

        let outcome = rig.turn(&session).await;

        assert_eq!((rig.runs.get(), outcome.denied), (4, 2));
        assert_eq!(outcome.reason, Reason::Error);
    });
}

#[test]
fn without_its_entry_nobody_counts() {
    let calls = vec![echo("a"); 12];
    let list = list(&calls, &json!({}), "");
    let lines: Vec<_> = list.lines().filter(|it| !it.contains("loop-guard")).collect();
    agent(&lines.join("\n"), async |rig| {
        let session = rig.session();

        let outcome = rig.turn(&session).await;

        assert_eq!((outcome.reason, rig.runs.get()), (Reason::Completed, 12));
    });
}
