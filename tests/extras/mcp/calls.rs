//! What calls come to: parts of results, failures, limits, cancellation, floods.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::rig::rig;

#[test]
fn parts_that_are_no_text_are_told_in_one_line_each() {
    let content = json!([
        { "type": "text", "text": "one\ntwo" },
        { "type": "image", "mimeType": "image/png", "data": "QUJDRA==" },
        { "type": "audio", "mimeType": "audio/wav", "data": "QUJD" },
        { "type": "resource", "resource": { "uri": "file:///a", "mimeType": "text/plain", "text": "in a" } },
        { "type": "resource", "resource": { "uri": "file:///b", "blob": "QUJD" } },
        { "type": "resource_link", "name": "c", "uri": "file:///c" },
        { "type": "hologram\u{1b}[2J", "data": 1 },
        "no part at all"
    ]);
    rig(async move |it| {
        it.serve("plain", json!({})).await;

        let result = it.answered(json!({ "content": content })).await;

        assert_eq!(
            result.content.lines().collect::<Vec<_>>(),
            [
                "one",
                "two",
                "[image, image/png, 4 bytes, not shown]",
                "[audio, audio/wav, 3 bytes, not shown]",
                "[resource, file:///a, text/plain]",
                "in a",
                "[resource, file:///b, ?, 3 bytes, not shown]",
                "[link to a resource, c, file:///c]",
                "[hologram␛[2J, not shown]",
                "[?, not shown]",
            ]
        );
    });
}

#[test]
fn structured_content_is_shown_where_there_is_no_text() {
    for (result, shown) in [
        (json!({ "content": [], "structuredContent": { "a": [1] } }), r#"{"a":[1]}"#),
        (json!({ "structuredContent": { "a": 1 } }), r#"{"a":1}"#),
        (json!({ "content": [{ "type": "text", "text": "t" }], "structuredContent": 1 }), "t"),
        (json!({ "content": [] }), "(no output)"),
        (json!({}), "(no output)"),
        (json!([1]), "(no output)"),
        (Value::Null, "(no output)"),
    ] {
        rig(async move |it| {
            it.serve("plain", json!({})).await;

            assert_eq!(it.answered(result).await.content, shown);
        });
    }
}

#[test]
fn a_failure_in_the_tool_and_a_refusal_of_the_call_are_errors() {
    rig(async |it| {
        it.serve("plain", json!({})).await;

        let (failed, refused) = (it.call("fail").await, it.call("refuse").await);

        assert_eq!((failed.content.as_str(), failed.is_error), ("Error: no such file", true));
        assert_eq!(
            (refused.content.as_str(), refused.is_error),
            ("Error: the MCP server refused the call: not like that (code -32602)", true)
        );
    });
}

#[test]
fn a_result_that_wants_more_input_is_an_error() {
    rig(async |it| {
        it.serve("plain", json!({})).await;

        let result =
            it.answered(json!({ "resultType": "input_required", "inputRequests": {} })).await;

        assert!(result.is_error && result.content.contains("asks for more input"), "{result:?}");
    });
}

#[test]
fn a_long_result_is_kept_at_both_ends() {
    rig(async |it| {
        it.serve("plain", json!({})).await;
        let text = format!("begin {} end", "é".repeat(100_000));

        let result = it.answered(json!({ "content": [{ "type": "text", "text": text }] })).await;

        assert!(result.content.len() < 31_000 && result.content.starts_with("begin é"));
        assert!(result.content.ends_with("é end") && result.content.contains(" bytes left out …"));
    });
}

#[test]
fn a_call_that_is_not_answered_ends_at_its_limit_and_is_taken_back() {
    rig(async |it| {
        it.serve("plain", json!({ "callTimeoutMs": 200 })).await;

        let result = it.call("hang").await;

        assert!(
            result.is_error && result.content.contains("did not answer within 200 ms"),
            "{result:?}"
        );
        it.heard("notifications/cancelled").await;
        assert!(!it.call("echo").await.is_error);
    });
}

#[test]
fn a_cancelled_call_ends_at_once_and_the_server_is_told_which() {
    rig(async |it| {
        it.serve("plain", json!({})).await;
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let stopping = async {
            let call = it.heard(r#""what":"hang""#).await;
            stop.cancel();
            call
        };
        let arguments = json!({ "what": "hang" });

        let calling = it.call_with("mcp__x__do", arguments, cancel);
        let (result, call) = tokio::join!(calling, stopping);

        assert!(result.is_error && result.content.contains("aborted"), "{result:?}");
        let call: Value = serde_json::from_str(&call).unwrap();
        let told: Value = serde_json::from_str(&it.heard("notifications/cancelled").await).unwrap();
        assert_eq!(told["params"]["requestId"], call["id"]);
    });
}

#[test]
fn a_call_whose_caller_is_gone_is_taken_back_too() {
    rig(async |it| {
        it.serve("plain", json!({})).await;
        {
            let calling = it.call("hang");
            let sent = it.heard(r#""what":"hang""#);
            tokio::select! {
                biased;
                result = calling => assert!(result.is_error, "it hangs"),
                _sent = sent => {}
            }
        }

        it.heard("notifications/cancelled").await;
    });
}

#[test]
fn what_a_server_asks_of_a_client_is_refused_but_for_a_ping() {
    rig(async |it| {
        it.serve("plain", json!({})).await;

        it.call("ask").await;

        let ping: Value = serde_json::from_str(&it.heard(r#""id":900"#).await).unwrap();
        assert_eq!(ping["result"], json!({}));
        for id in ["901", "902", "903"] {
            let line = it.heard(&format!(r#""id":{id}"#)).await;
            let refused: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(refused["error"]["code"], -32601, "{line}");
        }
    });
}

#[test]
fn calls_at_the_same_time_get_their_own_answers() {
    rig(async |it| {
        it.serve("plain", json!({})).await;
        let call = |text: &str| {
            let arguments = json!({ "what": "echo", "text": text });
            it.call_with("mcp__x__do", arguments, CancellationToken::new())
        };

        let (a, b, c) = tokio::join!(call("a"), call("b"), call("c"));

        assert_eq!([a.content, b.content, c.content], ["a", "b", "c"]);
    });
}

#[test]
fn what_a_server_hands_on_of_others_is_read_as_far_as_it_is_text() {
    rig(async |it| {
        it.serve("plain", json!({})).await;
        for (bytes, expected) in [
            (&b"caf\xe9 \xff"[..], "caf\u{fffd} \u{fffd}"),
            (b"a\x00b\tc\x1b[2J", "a b c [2J"),
            (b"a\\udc80b", "\"a\\udc80b\""),
        ] {
            let start = format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[{{"type":"text","text":""#,
                it.next_id()
            );
            it.write_bytes("raw", &[start.as_bytes(), bytes, b"\"}]}}\n"].concat());

            let result = it.call("raw").await;

            assert_eq!((&*result.content, result.is_error), (expected, false));
        }
    });
}

#[test]
fn an_answer_that_is_no_json_is_an_error_at_once_and_so_is_an_error_of_another_shape() {
    rig(async |it| {
        it.serve("plain", json!({})).await;
        for (rest, expected) in [
            (r#""result":{"structuredContent":{"x":NaN}}}"#, "its answer is no JSON: {"),
            (r#""result":{"content":[}"#, "its answer is no JSON: {"),
            (r#""error":"just a text"}"#, "\"just a text\""),
        ] {
            it.write("raw", &format!("{{\"jsonrpc\":\"2.0\",\"id\":{},{rest}\n", it.next_id()));

            let result = it.call("raw").await;

            assert!(result.is_error && result.content.contains(expected), "{result:?}");
        }
    });
}
