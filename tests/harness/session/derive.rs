//! What the model is shown of a log, and when two headers are the same.

use nano_cordis::harness::session::{
    event::{Event, EventBody},
    message::{AssistantMessage, Header, Message, ToolCallRequest, ToolSchema},
};
use serde_json::{Map, json};

use super::session;
use crate::support::{answered, run, talk, turn_of};

fn calls(ids: &[&str]) -> AssistantMessage {
    let tool_calls = ids.iter().map(|id| ToolCallRequest::new(*id, "bash", "{}")).collect();
    AssistantMessage { tool_calls, ..Default::default() }
}

fn result(call_id: &str, text: &str) -> EventBody {
    let (message, call_id, name) = (Message::tool(call_id, text), call_id.into(), "bash".into());
    EventBody::ToolResult { turn: 1, step: 1, call_id, name, is_error: false, message }
}

#[test]
fn h_014_messages_come_in_log_order_and_other_events_say_nothing() {
    run(async |app| {
        let session = session(app).await;

        talk(&session, "one", "two");
        talk(&session, "three", "four");

        let messages = serde_json::to_value(session.messages()).unwrap();
        let expected = json!([
            { "role": "user", "content": "one" },
            { "role": "assistant", "content": "two" },
            { "role": "user", "content": "three" },
            { "role": "assistant", "content": "four" },
        ]);
        assert_eq!(messages, expected);
    });
}

#[test]
fn h_015_a_list_that_is_derived_again_is_the_same() {
    run(async |app| {
        let session = session(app).await;
        talk(&session, "one", "two");

        let (first, second) = (session.messages(), session.messages());

        assert_eq!(first.len(), 2);
        assert_eq!(first, second);
    });
}

#[test]
fn h_016_a_derived_list_that_somebody_holds_does_not_grow() {
    run(async |app| {
        let session = session(app).await;
        talk(&session, "one", "two");
        let held = session.messages();
        let before = held.clone();

        talk(&session, "three", "four");

        assert_eq!(held, before);
        assert_eq!((held.len(), session.messages().len()), (2, 4));
    });
}

#[test]
fn h_017_each_result_follows_its_call_with_the_same_id() {
    run(async |app| {
        let session = session(app).await;

        turn_of(
            &session,
            "go",
            vec![answered(1, 1, calls(&["c1", "c2"])), result("c1", "a"), result("c2", "b")],
        );

        let messages = session.messages();
        let Message::Assistant(asked) = &messages[1] else { panic!("{messages:?}") };
        let asked: Vec<_> = asked.tool_calls.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(asked, ["c1", "c2"]);
        assert_eq!(messages[2..], [Message::tool("c1", "a"), Message::tool("c2", "b")]);
    });
}

#[test]
fn h_018_an_answer_without_text_calls_and_reasoning_is_no_message() {
    run(async |app| {
        let session = session(app).await;
        let empty = AssistantMessage { content: Some(String::new()), ..Default::default() };
        let thought =
            AssistantMessage { reasoning_content: Some("hm".into()), ..Default::default() };

        let answers =
            [AssistantMessage::default(), empty, thought.clone()].map(|it| answered(1, 1, it));
        turn_of(&session, "go", answers.into());

        assert_eq!(session.messages(), [Message::user("go"), Message::Assistant(thought.into())]);
    });
}

#[test]
fn h_019_reasoning_and_unknown_fields_of_an_answer_are_kept_byte_for_byte() {
    run(async |app| {
        let session = session(app).await;
        let reasoning = "R1 \u{1f600}\t\"\\ \u{7f}\u{2028}";
        let raw = json!({ "role": "assistant", "content": null, "reasoning_content": reasoning, "x_new": { "a": [1, null] } });
        let message: AssistantMessage = serde_json::from_value(raw.clone()).unwrap();

        turn_of(&session, "go", vec![answered(1, 1, message)]);

        let logged = Event::parse(&session.events()[3].to_line()).unwrap();
        let derived = serde_json::to_value(logged.body.message().unwrap()).unwrap();
        assert_eq!(derived, raw);
        assert_eq!(derived["reasoning_content"].as_str(), Some(reasoning));
    });
}

#[test]
fn what_services_leave_out_or_call_null_is_read_as_none() {
    let raw = json!({
        "content": "", "tool_calls": [
            { "id": null, "function": { "name": "a", "arguments": null } },
            { "id": "c2", "type": "function", "extra": 1, "function": { "name": "b", "arguments": { "x": 1 } } },
        ],
    });

    let message: AssistantMessage = serde_json::from_value(raw).unwrap();
    let none: AssistantMessage = serde_json::from_value(json!({ "tool_calls": null })).unwrap();

    let mut second = ToolCallRequest::new("c2", "b", r#"{"x":1}"#);
    second.other = Map::from_iter([("extra".to_string(), json!(1))]);
    assert_eq!(message.tool_calls, [ToolCallRequest::new("", "a", ""), second]);
    assert_eq!(none, AssistantMessage::default());
}

#[test]
fn h_029_an_empty_system_prompt_and_an_empty_list_of_tools_are_absent() {
    let header = Header::new("fake", "", vec![]);

    assert_eq!(serde_json::to_value(&header).unwrap(), json!({ "model": "fake" }));
}

#[test]
fn h_030_headers_are_equal_whatever_the_order_of_tools_and_keys() {
    let bash = || ToolSchema::new("bash", "runs", json!({ "type": "object", "properties": {} }));
    let date = || ToolSchema::new("date", "tells", json!({ "properties": {}, "type": "object" }));
    let turned = ToolSchema::new("bash", "runs", json!({ "properties": {}, "type": "object" }));

    let one = Header::new("m", "s", vec![date(), bash()]);
    let two = Header::new("m", "s", vec![turned, date()]);
    let other = Header::new("m", "s", vec![bash()]);

    assert_eq!(one, two);
    assert_ne!(one, other);
    assert_eq!(one.tools[0].function.name, "bash");
}
