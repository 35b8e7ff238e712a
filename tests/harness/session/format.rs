//! One event as a line: what is written, and what is read.

use nano_cordis::harness::session::{
    event::{Event, EventBody, FORMAT, Reason, TurnError},
    line::EventError,
    message::{AssistantMessage, Header, Message, ToolCallRequest, ToolSchema},
};
use proptest::{prelude::any, proptest};
use serde_json::{Value, json};

use crate::support::answered;

/// The flow of the sample run, one of each kind, and its lines.
const LINES: [&str; 11] = [
    r#"{"seq":0,"time":1796054400000,"type":"turn/start","data":{"turn":1,"format":1,"cwd":"/work"}}"#,
    r#"{"seq":1,"time":1796054400000,"type":"step/start","data":{"turn":1,"step":1}}"#,
    r#"{"seq":2,"time":1796054400000,"type":"user/message","data":{"turn":1,"step":1,"message":{"role":"user","content":"Say hello"}}}"#,
    r#"{"seq":3,"time":1796054400000,"type":"request/header","data":{"turn":1,"step":1,"header":{"model":"fake","system":"You are","tools":[{"type":"function","function":{"name":"bash","description":"runs","parameters":{"type":"object","required":["command"]}}}]}}}"#,
    r#"{"seq":4,"time":1796054400000,"type":"assistant/message","data":{"turn":1,"step":1,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"bash","arguments":"{\"command\":\"echo\"}"}}],"reasoning_content":"R"},"usage":{"total_tokens":3},"finishReason":"tool_calls","requestHash":"abc"}}"#,
    r#"{"seq":5,"time":1796054400000,"type":"tool/call","data":{"turn":1,"step":1,"callId":"call_1","name":"bash","arguments":"{\"command\":\"echo\"}"}}"#,
    r#"{"seq":6,"time":1796054400000,"type":"tool/result","data":{"turn":1,"step":1,"callId":"call_1","name":"bash","isError":false,"message":{"role":"tool","tool_call_id":"call_1","content":"\n[exit code: 0]"}}}"#,
    r#"{"seq":7,"time":1796054400000,"type":"step/end","data":{"turn":1,"step":1}}"#,
    r#"{"seq":8,"time":1796054400000,"type":"turn/end","data":{"turn":1,"reason":"max-steps"}}"#,
    r#"{"seq":9,"time":1796054400000,"type":"turn/end","data":{"turn":2,"reason":"error","error":{"message":"no","code":"http","status":402,"requestHash":"abc"}}}"#,
    r#"{"seq":10,"time":1796054400000,"type":"llm/retry","data":{"after":2},"ignorable":true}"#,
];

fn bodies() -> Vec<EventBody> {
    let (turn, step) = (1, 1);
    let arguments = r#"{"command":"echo"}"#;
    let tool =
        ToolSchema::new("bash", "runs", json!({ "type": "object", "required": ["command"] }));
    let asked = AssistantMessage {
        tool_calls: vec![ToolCallRequest::new("call_1", "bash", arguments)],
        reasoning_content: Some("R".into()),
        ..Default::default()
    };
    let mut answer = answered(turn, step, asked);
    if let EventBody::AssistantMessage { usage, finish_reason, request_hash, .. } = &mut answer {
        *usage = Some(json!({ "total_tokens": 3 }));
        (*finish_reason, *request_hash) = (Some("tool_calls".into()), Some("abc".into()));
    }
    let (call_id, name) = (|| "call_1".to_string(), || "bash".to_string());
    let result = Message::tool("call_1", "\n[exit code: 0]");
    let hash = Some("abc".into());
    let error = TurnError {
        message: "no".into(),
        code: Some("http".into()),
        status: Some(402),
        request_hash: hash,
    };
    vec![
        EventBody::TurnStart { turn, format: FORMAT, cwd: "/work".into() },
        EventBody::StepStart { turn, step },
        EventBody::UserMessage { turn, step, message: Message::user("Say hello") },
        EventBody::RequestHeader { turn, step, header: Header::new("fake", "You are", vec![tool]) },
        answer,
        EventBody::ToolCall {
            turn,
            step,
            call_id: call_id(),
            name: name(),
            arguments: arguments.into(),
        },
        EventBody::ToolResult {
            turn,
            step,
            call_id: call_id(),
            name: name(),
            is_error: false,
            message: result,
        },
        EventBody::StepEnd { turn, step },
        EventBody::TurnEnd { turn, reason: Reason::MaxSteps, error: None },
        EventBody::TurnEnd { turn: 2, reason: Reason::Error, error: Some(error) },
        EventBody::ignorable("llm/retry", &json!({ "after": 2 })).unwrap(),
    ]
}

#[test]
fn each_event_is_written_in_the_form_of_the_specification_and_read_back() {
    for ((seq, body), line) in (0..).zip(bodies()).zip(LINES) {
        let event = Event { seq, time: 1_796_054_400_000, body };

        assert_eq!(event.to_line(), line);
        assert_eq!(Event::parse(line).unwrap(), event);
    }
}

/// The body of a line that is written otherwise than ours.
fn read(line: &Value) -> EventBody {
    Event::parse(&line.to_string()).unwrap().body
}

#[test]
fn a_message_may_be_the_data_itself_and_data_may_be_absent() {
    let said = |turn, step| EventBody::UserMessage { turn, step, message: Message::user("hi") };

    let as_data = read(
        &json!({ "seq": 0, "type": "user/message", "data": { "role": "user", "content": "hi" } }),
    );
    let without_role =
        read(&json!({ "seq": 0, "type": "user/message", "data": { "content": "hi" } }));
    let flat =
        read(&json!({ "type": "user/message", "turn": 2, "step": 1, "content": "hi", "seq": 0 }));
    let result = json!({ "role": "tool", "tool_call_id": "c1", "content": "done" });
    let result = read(
        &json!({ "seq": 0, "type": "tool/result", "data": { "turn": 1, "step": 1, "message": result } }),
    );

    assert_eq!((&as_data, &without_role, &flat), (&said(0, 0), &said(0, 0), &said(2, 1)));
    let (call_id, name, message) = ("c1".into(), String::new(), Message::tool("c1", "done"));
    assert_eq!(
        result,
        EventBody::ToolResult { turn: 1, step: 1, call_id, name, is_error: false, message }
    );
}

#[test]
fn a_reason_may_be_an_object_and_brings_its_error() {
    let reason = json!({ "kind": "error", "error": { "message": "no balance", "extra": 1 } });

    let body =
        read(&json!({ "seq": 0, "type": "turn/end", "data": { "turn": 1, "reason": reason } }));

    let error = TurnError { message: "no balance".into(), ..Default::default() };
    assert_eq!(body, EventBody::TurnEnd { turn: 1, reason: Reason::Error, error: Some(error) });
}

#[test]
fn unknown_fields_are_overlooked_at_every_depth() {
    for line in LINES {
        let mut value: Value = serde_json::from_str(line).unwrap();
        let plain = read(&value);
        value["extra"] = json!({ "a": 1 });
        value["data"]["extra"] = json!([1]);

        let quick = read(&value);
        value["time"] = json!("yesterday");
        let slow = read(&value);

        assert_eq!(quick, slow);
        assert!(quick == plain || matches!(quick, EventBody::Ignorable { .. }), "{value}");
    }
}

#[test]
fn h_095_an_unknown_type_is_kept_if_it_says_that_it_may_be_ignored() {
    let marked = r#"{"seq":7,"type":"todo/changed","x":1,"ignorable":true}"#;
    let unmarked = r#"{"seq":7,"type":"todo/changed","x":1}"#;

    let kept = Event::parse(marked).unwrap().body;
    let refused = Event::parse(unmarked).unwrap_err();

    assert_eq!(kept, EventBody::Ignorable { kind: "todo/changed".into(), data: json!({ "x": 1 }) });
    assert!(refused.to_string().contains("`todo/changed`"));
    assert!(matches!(refused, EventError::Unknown(_)));
}

#[test]
fn a_line_that_is_no_event_is_refused_with_the_reason() {
    let refused = |line: &str| Event::parse(line).unwrap_err().to_string();

    assert_eq!(
        refused("[]"),
        "not a JSON object: invalid type: sequence, expected a map at column 0"
    );
    assert_eq!(refused(r#"{"type":"step/end"}"#), "not an event: no `seq`");
    assert_eq!(refused(r#"{"seq":1}"#), "not an event: no `type`");
    assert_eq!(
        refused(r#"{"seq":1,"type":"turn/end","data":{}}"#),
        "`turn/end`: missing field `reason`"
    );
    assert_eq!(
        refused(r#"{"seq":1,"type":"user/message","data":{"role":"system","content":"obey"}}"#),
        "`user/message`: the message has the role of another event"
    );
    assert_eq!(
        refused(r#"{"seq":1,"type":"turn/start","data":{"turn":1,"format":999,"cwd":{}}}"#),
        "format 999 is newer than this nano-cordis reads (1)"
    );
    assert!(
        refused(r#"{"seq":1,"type":"user/message","data":"\ud83d"}"#)
            .contains("unpaired \\u escape")
    );
}

proptest! {
    #[test]
    fn a_text_comes_back_from_the_log_as_it_was(text in any::<String>(), id in any::<String>()) {
        let bodies = [
            EventBody::UserMessage { turn: 1, step: 1, message: Message::user(&text) },
            answered(1, 1, AssistantMessage { content: Some(text.clone()), ..Default::default() }),
            EventBody::ToolCall { turn: 1, step: 1, call_id: id, name: text.clone(), arguments: text },
        ];
        for body in bodies {
            let event = Event { seq: 1, time: 2, body };
            let line = event.to_line();

            assert!(!line.contains(['\n', '\r']));
            assert_eq!(Event::parse(&line).unwrap(), event);
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>(), cut in 0..400_usize, byte in any::<u8>()) {
        drop(Event::parse(&text));
        for line in LINES {
            let mut bytes = line.as_bytes().to_vec();
            let at = cut % bytes.len();
            bytes[at] = byte;
            drop(Event::parse(&String::from_utf8_lossy(&bytes)));
            drop(Event::parse(&String::from_utf8_lossy(&bytes[..at])));
        }
    }
}
