//! Cost: what a turn took is told after it, and what is not known is not made up.

use nano_cordis::harness::session::event::Reason;
use serde_json::{Value, json};

use crate::hooks::rig::agent;

fn list(script: &Value, config: &Value) -> String {
    format!(
        "
- {{id: session, name: session}}
- {{id: prompt, name: prompt}}
- {{id: tools, name: tools}}
- {{id: echo, name: echo}}
- {{id: llm, name: llm-fake, config: {{script: {script}}}}}
- {{id: loop, name: agent-loop}}
- {{id: cost, name: cost, config: {config}}}
"
    )
}

fn usage(input: u64, cached: u64, output: u64) -> Value {
    json!({ "prompt_tokens": input, "completion_tokens": output,
        "prompt_tokens_details": { "cached_tokens": cached } })
}

/// The line after one turn of this script. The time, which is not ours to say, is left out.
fn line(script: &Value, config: &Value) -> String {
    let mut line = String::new();
    agent(&list(script, config), async |rig| {
        let session = rig.session();
        rig.turn(&session).await;
        let said = rig.take_notices();
        assert_eq!(said.len(), 1, "{said:?}");
        let is_time = |it: &&str| !it.ends_with(" s");
        line = said[0].split(", ").filter(is_time).collect::<Vec<_>>().join(", ");
        assert_ne!(line, said[0], "no time is told");
    });
    line
}

fn prices(model: &str) -> Value {
    json!({ "prices": [{ "model": model, "input": 2.0, "cached": 0.5, "output": 10.0 }] })
}

#[test]
fn the_tokens_of_all_steps_of_a_turn_are_told_after_it() {
    let script = json!([
        { "tool": "echo", "args": { "text": "a" }, "usage": usage(10_000, 9_000, 500) },
        { "content": "Done.", "usage": usage(10_600, 10_000, 312) },
    ]);

    assert_eq!(line(&script, &json!({})), "in 20.6k (92 % cached), out 812");
}

#[test]
fn what_the_service_does_not_tell_is_unknown_and_not_nothing() {
    let nothing = json!([{ "content": "Done." }]);
    let no_cached =
        json!([{ "content": "Done.", "usage": { "prompt_tokens": 7, "completion_tokens": 0 } }]);
    let one_of_two = json!([
        { "tool": "echo", "args": { "text": "a" }, "usage": usage(10, 9, 5) },
        { "content": "Done." },
    ]);

    assert_eq!(line(&nothing, &json!({})), "in ?, out ?");
    assert_eq!(line(&no_cached, &json!({})), "in 7 (? cached), out 0");
    assert_eq!(line(&one_of_two, &json!({})), "in ?, out ?");
}

#[test]
fn a_request_that_failed_makes_the_sum_unknown() {
    let script = json!([
        { "tool": "echo", "args": { "text": "a" }, "usage": usage(10, 9, 5) },
        { "error": "the service is away" },
    ]);
    agent(&list(&script, &json!({})), async |rig| {
        let session = rig.session();

        let outcome = rig.turn(&session).await;

        assert_eq!(outcome.reason, Reason::Error);
        assert!(rig.take_notices()[0].starts_with("in ?, out ?, "));
    });
}

#[test]
fn money_comes_from_the_first_price_whose_model_fits() {
    let script = json!([{ "content": "Done.", "usage": usage(1_000_000, 400_000, 100_000) }]);

    let known = line(&script, &prices("fake*"));
    let unknown = line(&script, &prices("another"));
    let mut words = prices("*");
    words["currency"] = "CNY".into();

    // 600,000 at 2, 400,000 at 0.5, 100,000 at 10, each for a million.
    assert_eq!(known, "in 1.0M (40 % cached), out 100.0k, $2.40");
    assert_eq!(unknown, "in 1.0M (40 % cached), out 100.0k, $?");
    assert!(line(&script, &words).ends_with(", CNY 2.40"));
}

#[test]
fn without_a_count_of_cached_tokens_the_price_is_the_most_that_it_can_be() {
    let usage = json!({ "prompt_tokens": 1_000, "completion_tokens": 100 });
    let script = json!([{ "content": "Done.", "usage": usage }]);

    assert_eq!(line(&script, &prices("*")), "in 1.0k (? cached), out 100, ≤ $0.0030");
}

#[test]
fn a_price_that_is_none_is_refused() {
    let script = json!([{ "content": "Done." }]);
    agent(&list(&script, &json!({})), async |rig| {
        let wrong = json!({ "prices": [{ "model": "*", "input": -1, "output": 1 }] });

        let refused = rig.save(&list(&script, &wrong)).await.unwrap_err();

        assert!(refused.contains("config.prices.0.input: must be at least 0"), "{refused}");
    });
}
