//! Tool calls that come in fragments.

use serde_json::{Value, json};

use super::stream::{DONE, STOP, read, reply};
use crate::server::Answer;

/// Name, arguments and id of each call that these deltas make.
fn calls(deltas: &[Value]) -> Vec<(String, String, String)> {
    let chunk = |it: &Value| json!({"choices": [{"delta": {"tool_calls": it}}]}).to_string();
    let chunks: Vec<_> = deltas.iter().map(chunk).collect();
    let mut events: Vec<_> = chunks.iter().map(String::as_str).collect();
    events.extend([STOP, DONE]);
    let calls = reply(&events).message.tool_calls.into_iter();
    calls.map(|it| (it.function.name, it.function.arguments, it.id)).collect()
}

fn call(name: &str, arguments: &str, id: &str) -> (String, String, String) {
    (name.into(), arguments.into(), id.into())
}

#[test]
fn h_114_fragments_of_two_calls_that_come_in_turn_make_two_calls() {
    let made = calls(&[
        json!([{"index": 0, "id": "a", "type": "function", "function": {"name": "bash", "arguments": ""}}]),
        json!([{"index": 1, "id": "b", "function": {"name": "echo", "arguments": null}}]),
        json!([{"index": 0, "function": {"arguments": "{\"x\""}}, {"index": 1, "id": "", "function": {"arguments": "{}"}}]),
        json!([{"index": 0, "id": null, "function": {"name": "bash", "arguments": ":1}"}}]),
        json!([{"index": 1}, {"index": 0, "function": {}}]),
    ]);

    assert_eq!(made, [call("bash", "{\"x\":1}", "a"), call("echo", "{}", "b")]);
}

#[test]
fn h_115_one_index_for_two_calls_with_ids_of_their_own_makes_two_calls() {
    let made = calls(&[
        json!([{"index": 0, "id": "a", "function": {"name": "bash", "arguments": "{\"x\""}}]),
        json!([{"index": 0, "function": {"arguments": ":1}"}}]),
        json!([{"index": 0, "id": "b", "function": {"name": "bash", "arguments": "{"}}]),
        json!([{"index": 0, "id": "b", "function": {"name": "bash", "arguments": "}"}}]),
        json!([{"index": 0, "function": {"name": "echo", "arguments": "[]"}}]),
    ]);

    assert_eq!(
        made,
        [call("bash", "{\"x\":1}", "a"), call("bash", "{}", "b"), call("echo", "[]", "")]
    );
}

#[test]
fn h_116_without_an_index_an_id_or_a_name_begins_a_call_and_the_rest_goes_on() {
    let made = calls(&[
        json!([{"id": "a", "function": {"name": "bash"}}]),
        json!([{"function": {"arguments": "{"}}]),
        json!({"function": {"arguments": "}"}}),
        json!([{"id": "a", "function": {"name": "bash", "arguments": "{\"y\":2}"}}]),
        json!([{"function": {"name": "echo", "arguments": {"z": 3}}}, {"function": {"name": "echo", "arguments": "{}"}}]),
        json!([{"index": null, "id": 7}, {"function": {"name": "last"}}]),
    ]);

    let wanted = [
        call("bash", "{}", "a"),
        call("bash", "{\"y\":2}", "a"),
        call("echo", "{\"z\":3}", ""),
        call("echo", "{}", ""),
        call("last", "", "7"),
    ];
    assert_eq!(made, wanted);
}

#[test]
fn h_105_what_else_a_fragment_says_is_kept_with_its_call() {
    let delta = json!([{"index": 0, "id": "a", "function": {"name": "x", "arguments": "{}"}, "extra_content": {"sig": "S"}}]);
    let chunk = json!({"choices": [{"delta": {"tool_calls": delta}}]}).to_string();

    let calls = reply(&[&chunk, STOP]).message.tool_calls;

    assert_eq!(calls[0].other, *json!({"extra_content": {"sig": "S"}}).as_object().unwrap());
}

#[test]
fn calls_that_are_no_objects_are_a_broken_reply() {
    for calls in ["7", "[7]", "\"x\"", "[null]"] {
        let chunk = format!(r#"{{"choices":[{{"delta":{{"tool_calls":{calls}}}}}]}}"#);

        let err = read(Answer::stream(&[&chunk, STOP])).0.unwrap_err();

        assert_eq!(err.code(), "broken-reply", "{err}");
    }
}
