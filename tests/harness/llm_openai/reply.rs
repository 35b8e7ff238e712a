//! What comes in and is a reply, or nearly.

use std::time::Duration;

use nano_cordis::harness::{
    llm::{LlmError, Reply},
    session::message::Message,
};
use serde_json::{Value, json};

use super::{assistant, bench, paused};
use crate::server::Answer;

/// The reply to an answer.
fn read(answer: Answer) -> Result<Reply, LlmError> {
    let mut result = Err(LlmError::Cancelled);
    bench([answer], &Value::Null, async |it| result = it.ask(vec![Message::user("hi")]).await);
    result
}

fn read_json(body: &Value) -> Result<Reply, LlmError> {
    read(Answer::json(200, body))
}

fn read_message(message: &Value) -> Reply {
    read(Answer::message(message, "stop")).unwrap()
}

fn call(function: &Value) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": function}]})
}

#[test]
fn h_105_a_message_is_kept_as_it_was_received() {
    let message = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{\"command\" : \"ls\" }"}, "index": 0},
    ], "reasoning_content": "hm", "x_new": {"a": [null]}});

    let reply = read(Answer::message(&message, "tool_calls")).unwrap();

    assert_eq!(serde_json::to_value(assistant(&message)).unwrap(), message);
    assert_eq!(Message::Assistant(reply.message.into()), assistant(&message));
    assert_eq!(reply.finish_reason.as_deref(), Some("tool_calls"));
}

#[test]
fn a_02_odd_empty_and_missing_fields_do_no_harm() {
    let body = json!({"choices": [{"message": {"role": "assistant", "content": "ok", "tool_calls": null, "refusal": null, "x_new": 1}, "finish_reason": ""}], "usage": {}, "service_tier": "on_demand"});

    let reply = read_json(&body).unwrap();

    assert_eq!(
        reply.message,
        serde_json::from_value(json!({"content": "ok", "x_new": 1})).unwrap()
    );
    assert_eq!((reply.finish_reason, reply.usage), (None, None));
}

#[test]
fn a_02_a_reply_without_a_choice_is_an_error_that_quotes_it() {
    for body in [
        json!({"choices": []}),
        json!({"choices": null}),
        json!({"id": "x"}),
        json!({"choices": [null]}),
        json!({"choices": [{"message": "m"}]}),
    ] {
        let err = read_json(&body).unwrap_err();

        assert!(matches!(&err, LlmError::BadReply(it) if it.contains(&body.to_string())), "{err}");
    }
}

#[test]
fn usage_is_kept_in_the_words_of_the_service() {
    let usage = json!({"prompt_tokens": 3, "prompt_cache_hit_tokens": 2, "x": {"y": null}});
    let body = json!({"choices": [{"message": {"content": "ok"}}], "usage": usage});

    assert_eq!(read_json(&body).unwrap().usage, Some(usage));
}

#[test]
fn text_in_parts_is_put_together() {
    let parts = json!([{"type": "thinking", "thinking": []}, {"type": "text", "text": "one "}, {"type": "text", "text": "two"}]);

    assert_eq!(
        read_message(&json!({"content": parts})).message.content.as_deref(),
        Some("one two")
    );
}

#[test]
fn a_05_arguments_of_any_shape_become_text() {
    for (arguments, text) in [
        (json!("{\"a\":1}"), "{\"a\":1}"),
        (json!(""), ""),
        (Value::Null, ""),
        (json!({"command": "echo a"}), "{\"command\":\"echo a\"}"),
        (json!([1]), "[1]"),
    ] {
        let reply = read_message(&call(&json!({"name": "bash", "arguments": arguments})));

        assert_eq!(reply.message.tool_calls[0].function.arguments, text);
    }
    assert_eq!(
        read_message(&call(&json!({"name": "bash"}))).message.tool_calls[0].function.arguments,
        ""
    );
}

#[test]
fn a_08_a_call_without_a_proper_name_is_a_call_without_a_name() {
    for function in
        [json!({}), json!({"name": null}), json!({"name": 7}), Value::Null, json!("bash")]
    {
        assert_eq!(read_message(&call(&function)).message.tool_calls[0].function.name, "");
    }
}

#[test]
fn h_117_an_id_is_kept_as_text_and_whatever_else_stands_there_is_none() {
    let calls = json!([{"function": {"name": "a"}}, {"id": "", "function": {"name": "b"}}, {"id": 7, "type": null, "function": {"name": "c"}}, {"id": null, "function": {"name": "d"}}]);

    let reply = read_message(&json!({"tool_calls": calls}));

    let ids: Vec<_> = reply.message.tool_calls.iter().map(|it| (&*it.id, &*it.kind)).collect();
    assert_eq!(ids, [("", "function"), ("", "function"), ("7", "function"), ("", "function")]);
}

#[test]
fn calls_that_are_no_list_of_objects_are_an_error() {
    for calls in [json!("x"), json!([1]), json!({"a": 1})] {
        let err = read(Answer::message(&json!({"content": "text", "tool_calls": calls}), "stop"))
            .unwrap_err();

        assert!(matches!(err, LlmError::BadReply(_)), "{err}");
    }
}

#[test]
fn h_121_the_reason_to_stop_is_passed_on() {
    for reason in ["length", "content_filter", "stop", "something_new"] {
        let reply =
            read(Answer::message(&call(&json!({"name": "bash", "arguments": "{}"})), reason))
                .unwrap();

        assert_eq!(reply.finish_reason.as_deref(), Some(reason));
        assert_eq!(reply.message.tool_calls.len(), 1);
    }
}

#[test]
fn d_37_a_reply_that_was_cut_before_its_first_word_is_a_reply() {
    for reason in ["length", "content_filter"] {
        let reply =
            read(Answer::message(&json!({"content": "", "reasoning_content": "hm"}), reason))
                .unwrap();

        assert_eq!(reply.finish_reason.as_deref(), Some(reason));
    }
}

#[test]
fn h_123_neither_text_nor_calls_is_an_error_of_its_own() {
    for message in [
        json!({"content": ""}),
        json!({"content": null}),
        json!({"content": " \n"}),
        json!({"tool_calls": []}),
        json!({"content": null, "reasoning_content": "hm"}),
    ] {
        assert_eq!(read(Answer::message(&message, "stop")).unwrap_err(), LlmError::Empty);
    }
}

#[test]
fn a_01_a_body_of_blanks_is_an_empty_reply() {
    for body in ["", "\n\n \n", "\u{feff}"] {
        let err = read(Answer::text(200, "application/json", body)).unwrap_err();

        assert_eq!(err, LlmError::Empty);
        assert!(err.to_string().contains("empty reply"));
    }
}

#[test]
fn h_112_blank_lines_before_the_document_are_skipped_however_slowly_they_come() {
    let minute = Duration::from_mins(1);
    let document = json!({"choices": [{"message": {"content": "pong"}, "finish_reason": "stop"}]});
    let slow = (0..9)
        .fold(Answer::head(200, &[("Connection", "close")]), |it, _| it.say("\n").pause(minute));
    paused([slow.say(document.to_string())], &Value::Null, async |it| {
        let reply = it.ask(Vec::new()).await.unwrap();

        assert_eq!(reply.message.content.as_deref(), Some("pong"));
    });
}

#[test]
fn h_111_an_error_behind_status_200_is_an_error_with_its_message() {
    for body in [
        json!({"error": {"message": "overloaded", "code": null}}),
        json!({"error": "overloaded"}),
        json!({"choices": [{"message": {"content": "half"}}], "error": {"message": "overloaded"}}),
        json!({"choices": [{"message": {"content": "half"}, "finish_reason": "error", "error": {"message": "overloaded"}}]}),
    ] {
        let err = read_json(&body).unwrap_err();

        assert!(
            matches!(&err, LlmError::Status { status: 200, message } if message.ends_with(": overloaded")),
            "{err}"
        );
    }
}

#[test]
fn h_111_an_error_behind_status_200_may_state_its_true_status() {
    for code in [json!(429), json!("429")] {
        let err = read_json(&json!({"error": {"message": "slow down", "code": code}})).unwrap_err();

        assert_eq!(err.status(), Some(429));
    }
}

#[test]
fn a_reply_that_the_service_broke_off_is_an_error() {
    for reason in ["error", "insufficient_system_resource"] {
        let err = read(Answer::message(&json!({"content": "half"}), reason)).unwrap_err();

        assert!(
            matches!(&err, LlmError::Status { message, .. } if message.contains(reason)),
            "{err}"
        );
    }
}

#[test]
fn a_36_a_page_in_place_of_a_reply_comes_down_to_its_title() {
    let page = "<!DOCTYPE html>\n<html><head><TITLE class=x>Sign\n in</TITLE></head><body>secret</body></html>";

    let err = read(Answer::text(200, "text/html", page)).unwrap_err().to_string();

    assert!(err.ends_with("a page of HTML, titled Sign in"), "{err}");
    assert!(err.starts_with("POST http://127.0.0.1:") && !err.contains("secret"), "{err}");
}

#[test]
fn what_a_strict_parser_refuses_is_replaced() {
    let body = r#"{"choices":[{"message":{"content":"half a pair: \ud83d."}}],"usage":{"cost":1e999,"total_tokens":1}}"#;

    let reply = read(Answer::text(200, "application/json", body)).unwrap();

    assert_eq!(reply.message.content.as_deref(), Some("half a pair: \u{fffd}."));
    assert_eq!(reply.usage, Some(json!({"cost": null, "total_tokens": 1})));
}

#[test]
fn bytes_that_are_not_utf_8_are_replaced() {
    let head = Answer::head(200, &[("Connection", "close")]);
    let body = [b"{\"choices\":[{\"message\":{\"content\":\"a\xff".as_slice(), b"b\"}}]}"].concat();

    assert_eq!(read(head.say(body)).unwrap().message.content.as_deref(), Some("a\u{fffd}b"));
}
