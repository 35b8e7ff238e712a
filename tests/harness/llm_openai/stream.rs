//! Replies that come in pieces.

use std::time::Duration;

use nano_cordis::harness::{
    llm::{Delta, LlmError, Reply},
    session::message::Message,
};
use serde_json::{Value, json};

use super::{Bench, KEY, bench, paused};
use crate::server::Answer;

const HI: &str =
    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"hi"},"finish_reason":null}]}"#;
pub(super) const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
pub(super) const DONE: &str = "[DONE]";

/// The reply to an answer, and the text that was shown meanwhile.
pub(super) fn read(answer: Answer) -> (Result<Reply, LlmError>, String) {
    let mut result = (Err(LlmError::Cancelled), String::new());
    paused([answer], &Value::Null, async |it| {
        result = (it.ask(vec![Message::user("hi")]).await, it.shown());
    });
    result
}

pub(super) fn reply(events: &[&str]) -> Reply {
    read(Answer::stream(events)).0.unwrap()
}

#[test]
fn text_is_shown_as_it_comes_and_the_reply_is_whole() {
    let more = r#"{"choices":[{"delta":{"content":" there"}}]}"#;
    let pause = Duration::from_secs(30);
    let answer = Answer::open_stream()
        .events(&[HI])
        .pause(pause)
        .events(&[more])
        .pause(pause)
        .events(&[STOP, DONE]);
    paused([answer], &Value::Null, async |it| {
        let reply = it.ask(Vec::new()).await.unwrap();

        let told: Vec<_> =
            it.told.borrow().iter().map(|(at, it)| (at.as_secs(), it.clone())).collect();
        let text = |it: &str| Delta::Text(it.into());
        assert_eq!(told, [(0, text("hi")), (30, text(" there"))]);
        assert_eq!(reply.message.content.as_deref(), Some("hi there"));
        assert_eq!(reply.finish_reason.as_deref(), Some("stop"));
    });
}

#[test]
fn h_113_comments_line_ends_and_split_characters_leave_the_text_exact() {
    for end in ["\n", "\r", "\r\n"] {
        let events = ": keep-alive|||data: {\"choices\":[{\"delta\":{\"content\":\"é\u{1f600} \"}}]}||: keep-alive|data:{\"choices\":[{\"delta\":{\"content\":\"漢\\n\"}}]}||data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}||data: [DONE]||"
            .replace('|', end);
        let single = events
            .bytes()
            .fold(Answer::open_stream(), |it, byte| it.say([byte]).pause(Duration::from_millis(1)));

        let (reply, shown) = read(single);

        assert_eq!(reply.unwrap().message.content.as_deref(), Some("é\u{1f600} 漢\n"));
        assert_eq!(shown, "é\u{1f600} 漢\n");
    }
}

#[test]
fn a_01_signs_of_life_that_are_no_json_are_skipped() {
    let stream = ": busy\n\n:\nretry: 3000\n\ndata:\n\ndata: : ping\n\nevent: ping\ndata: {}\n\ndata: null\n\ndata: []\n\nid: 1\ndata:{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"pong\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

    let (reply, shown) = read(Answer::open_stream().say(stream));

    assert_eq!((reply.unwrap().message.content.as_deref(), shown.as_str()), (Some("pong"), "pong"));
}

#[test]
fn a_01_events_that_are_not_set_apart_by_an_empty_line_are_read_all_the_same() {
    let stream = format!("data: {HI}\ndata:\ndata: : ping\ndata: {STOP}\ndata: {DONE}\n");

    assert_eq!(read(Answer::open_stream().say(stream)).1, "hi");
}

#[test]
fn a_02_chunks_without_choices_and_odd_fields_do_no_harm() {
    let reply = reply(&[
        r#"{"choices":[],"prompt_filter_results":[{}]}"#,
        r#"{"choices":null}"#,
        r#"{"choices":[null]}"#,
        r#"{"choices":[{"delta":null}]}"#,
        r#"{"choices":[{"index":null,"delta":{"role":"assistant","content":null,"refusal":null,"tool_calls":null}}]}"#,
        r#"{"choices":[{"delta":{"role":"assistant","content":"ok","x_new":1},"logprobs":7,"finish_reason":""}],"service_tier":7}"#,
        r#"{"choices":[{"index":1,"delta":{"content":"another choice"}}]}"#,
        STOP,
        r#"{"choices":[],"usage":{"prompt_tokens":null}}"#,
        DONE,
    ]);

    assert_eq!(
        reply.message,
        serde_json::from_value(json!({"content": "ok", "x_new": 1})).unwrap()
    );
    assert_eq!((reply.finish_reason.as_deref(), reply.usage), (Some("stop"), None));
}

#[test]
fn a_03_reasoning_is_recorded_as_it_came_and_is_no_part_of_the_text() {
    for name in ["reasoning_content", "reasoning"] {
        let delta =
            |text: &str| json!({"choices": [{"delta": {name: text, "content": null}}]}).to_string();
        let chunks = ["", "R", "1 "].map(delta);
        bench(
            [Answer::stream(&[&chunks[0], &chunks[1], &chunks[2], HI, STOP])],
            &Value::Null,
            async |it| {
                let message = it.ask(Vec::new()).await.unwrap().message;

                let reasoning = |(_, it): &(_, Delta)| match it {
                    Delta::Reasoning(text) => Some(text.clone()),
                    _ => None,
                };
                let thought: String = it.told.borrow().iter().filter_map(reasoning).collect();
                assert_eq!((it.shown().as_str(), thought.as_str()), ("hi", "R1 "));
                assert_eq!(
                    serde_json::to_value(&message).unwrap(),
                    json!({"content": "hi", name: "R1 "})
                );
            },
        );
    }
}

#[test]
fn a_03_details_of_reasoning_that_come_in_pieces_are_one() {
    let piece =
        |it: Value| json!({"choices": [{"delta": {"reasoning_details": [it]}}]}).to_string();
    let pieces = [
        piece(json!({"type": "reasoning.text", "index": 0, "text": "a"})),
        piece(json!({"type": "reasoning.text", "index": 0, "text": "b", "signature": null})),
        piece(json!({"type": "reasoning.text", "index": 0, "signature": "S"})),
        piece(json!({"type": "reasoning.encrypted", "index": 1, "data": "x"})),
    ];

    let events: Vec<_> = pieces.iter().map(String::as_str).chain([HI, STOP]).collect();

    let details = &reply(&events).message.other["reasoning_details"];
    let whole = json!([{"type": "reasoning.text", "index": 0, "text": "ab", "signature": "S"}, {"type": "reasoning.encrypted", "index": 1, "data": "x"}]);
    assert_eq!(details, &whole);
}

#[test]
fn h_118_the_last_usage_that_says_something_is_recorded_wherever_it_stands() {
    let usage = r#""usage":{"total_tokens":9}"#;
    let early = HI.replace(r#","finish"#, r#","usage":{"total_tokens":1},"finish"#);
    for last in [
        format!(r#"{{"choices":[],{usage}}}"#),
        format!(r#"{{"choices":null,{usage}}}"#),
        format!("{{{usage}}}"),
        STOP.replace(r"]}", &format!("],{usage}}}")),
        STOP.replace(r#""index":0"#, usage),
    ] {
        let events =
            [&early, STOP, &last, r#"{"choices":[],"usage":null}"#, r#"{"usage":{}}"#, DONE];

        let reply = reply(&events);

        assert_eq!(reply.usage, Some(json!({"total_tokens": 9})), "{last}");
    }
}

#[test]
fn h_119_an_error_within_the_stream_is_an_error_with_its_message() {
    for (error, status) in [
        (r#"{"error":{"message":"overloaded","code":null}}"#, 200),
        (
            r#"{"error":"overloaded","choices":[{"delta":{"content":"x"},"finish_reason":"error"}]}"#,
            200,
        ),
        (
            r#"{"choices":[{"delta":{},"finish_reason":"error","error":{"message":"overloaded","code":502}}]}"#,
            502,
        ),
        (r#"{"object":"error","message":"overloaded","code":503}"#, 503),
        (r#"[{"error":{"message":"overloaded"}}]"#, 200),
    ] {
        for events in [vec![error], vec![HI, error], vec![HI, error, DONE], vec![HI, STOP, error]] {
            let err = read(Answer::stream(&events)).0.unwrap_err();

            assert_eq!(err.status(), Some(status), "{err}");
            assert!(err.to_string().ends_with(": overloaded"), "{err}");
        }
    }
    let named = Answer::open_stream().say("event: error\ndata: {\"message\":\"overloaded\"}\n\n");
    assert!(read(named).0.unwrap_err().to_string().ends_with(": overloaded"));
}

#[test]
fn h_120_a_stream_that_ends_before_the_model_stopped_is_a_broken_reply() {
    let half = r#"{"choices":[{"delta":{"cont"#;
    for events in [vec![HI], vec![HI, half], vec![r#"{"choices":[]}"#]] {
        let (result, shown) = read(Answer::stream(&events));

        let err = result.unwrap_err();
        assert_eq!(err.code(), "broken-reply", "{err}");
        assert_eq!(shown, if events[0] == HI { "hi" } else { "" });
    }
    let half = read(Answer::open_stream().events(&[HI]).say(format!("data: {half}"))).0;
    assert!(half.unwrap_err().to_string().contains("the stream ended before the reply did"));
}

#[test]
fn h_120_a_stream_whose_model_has_stopped_needs_no_last_word() {
    let cut = Answer::head(200, &[("Content-Length", "9000")]).events(&[HI, STOP]);
    for answer in [
        Answer::stream(&[HI, STOP]),
        Answer::stream(&[HI, DONE]),
        Answer::open_stream().events(&[HI]).say(format!("data: {STOP}")),
        Answer::open_stream().events(&[HI, STOP]).say("data: {\"usa"),
        cut.clone(),
        cut.hold(),
        Answer::open_stream().events(&[HI, DONE, "what follows is not read", HI]),
    ] {
        assert_eq!(read(answer).0.unwrap().message.content.as_deref(), Some("hi"));
    }
}

#[test]
fn after_the_last_word_the_end_of_the_connection_is_not_awaited() {
    paused([Answer::open_stream().events(&[HI, DONE]).hold()], &Value::Null, async |it| {
        let started = tokio::time::Instant::now();

        it.ask(Vec::new()).await.unwrap();

        assert_eq!(started.elapsed().as_secs(), 0);
        it.server.gone().await;
    });
}

#[test]
fn an_event_that_is_no_json_is_a_broken_reply_that_quotes_it() {
    let err = read(Answer::stream(&[HI, r#"{"choices":oops"#, STOP])).0.unwrap_err();

    assert_eq!(err.code(), "broken-reply");
    assert!(err.to_string().ends_with(r#"{"choices":oops"#), "{err}");
}

#[test]
fn d_39_what_a_strict_parser_refuses_is_replaced() {
    let odd = r#"{"choices":[{"delta":{"content":"a\ud83d"},"x":1e999}]}"#;
    let bytes = [b"data: ".as_slice(), br#"{"choices":[{"delta":{"content":"b"#, b"\xff\"}}]}\n\n"];
    let answer = Answer::open_stream().events(&[odd]).say(bytes.concat()).events(&[STOP]);

    assert_eq!(read(answer).1, "a\u{fffd}b\u{fffd}");
}

#[test]
fn a_document_in_answer_to_a_request_for_a_stream_is_read_whatever_type_it_has() {
    let document = json!({"choices": [{"message": {"content": "whole"}}]}).to_string();
    for (kind, body) in [
        ("application/json", document.clone()),
        ("text/event-stream", format!(" \r\n{document}")),
        ("text/plain", format!("\u{feff}{document}\n")),
    ] {
        let (reply, shown) = read(Answer::text(200, kind, &body));

        assert_eq!(reply.unwrap().message.content.as_deref(), Some("whole"));
        assert_eq!(shown, "");
    }
}

#[test]
fn a_stream_in_answer_to_a_plain_request_is_read_whatever_type_it_has() {
    for (kind, first) in
        [("application/json", "\n\n: wait\n\n"), ("text/html", "\u{feff}event: x\n"), ("", "")]
    {
        let body = format!("{first}data: {HI}\n\ndata: {STOP}\n\n");
        bench([Answer::text(200, kind, &body)], &json!({"stream": false}), async |it| {
            assert_eq!(it.ask(Vec::new()).await.unwrap().message.content.as_deref(), Some("hi"));
        });
    }
}

#[test]
fn a_whole_message_in_place_of_pieces_is_read() {
    let whole = r#"{"choices":[{"message":{"role":"assistant","content":"whole","tool_calls":[{"id":"a","function":{"name":"x","arguments":{}}}]},"finish_reason":"stop"}]}"#;

    let message = reply(&[whole, DONE]).message;

    assert_eq!((message.content.as_deref(), message.tool_calls.len()), (Some("whole"), 1));
}

#[test]
fn h_123_a_stream_that_says_nothing_is_an_empty_reply() {
    for events in
        [vec![STOP, DONE], vec![DONE], vec![r#"{"choices":[{"delta":{"content":""}}]}"#, STOP]]
    {
        assert_eq!(read(Answer::stream(&events)).0.unwrap_err(), LlmError::Empty);
    }
}

#[test]
fn h_121_the_reason_to_stop_is_passed_on_from_a_stream_too() {
    for reason in ["length", "content_filter", "tool_calls"] {
        let stop = STOP.replace("stop", reason);

        assert_eq!(reply(&[HI, &stop, DONE]).finish_reason.as_deref(), Some(reason));
    }
}

#[test]
fn h_102_a_key_in_pieces_is_masked_before_it_is_shown_and_recorded() {
    let pieces = KEY.as_bytes().chunks(3).map(|it| {
        let piece = std::str::from_utf8(it).unwrap();
        let call = json!([{"index": 0, "id": "a", "function": {"name": "x", "arguments": piece}}]);
        json!({"choices": [{"delta": {"content": piece, "reasoning": piece, "tool_calls": call}}]})
            .to_string()
    });
    let answer = pieces.fold(Answer::open_stream(), |it, event| {
        it.events(&[&event]).pause(Duration::from_millis(1))
    });
    paused([answer.events(&[HI, STOP])], &Value::Null, async |it: Bench| {
        let reply = it.ask(Vec::new()).await.unwrap();

        let told = it.told.borrow();
        assert_eq!(it.shown(), "***hi");
        assert!(!format!("{told:?}{reply:?}").contains(&KEY[..8]), "{told:?} {reply:?}");
        assert_eq!(reply.message.tool_calls[0].function.arguments, "***");
    });
}

#[test]
fn ten_megabytes_in_one_event_and_a_call_in_ten_thousand_pieces_are_whole() {
    let long = "x".repeat(10 << 20);
    let text = json!({"choices": [{"delta": {"content": long}}]}).to_string();
    let piece =
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"x"}}]}}]}"#;
    let mut events = vec![text.as_str()];
    events.extend(std::iter::repeat_n(piece, 10_000));
    events.extend([STOP, DONE]);
    let stream: Vec<_> = events.iter().map(|it| format!("data: {it}\n\n")).collect();

    let (reply, shown) = read(Answer::open_stream().say(stream.concat()));

    assert_eq!((shown.len(), &shown[..2]), (10 << 20, "xx"));
    assert_eq!(reply.unwrap().message.tool_calls[0].function.arguments.len(), 10_000);
}
