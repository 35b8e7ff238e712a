//! What goes out.

use std::cell::RefCell;

use nano_cordis::harness::{
    env::Env,
    llm::{LlmError, Request},
    session::message::{Header, Message, ToolSchema},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Bench, assistant, bench, mount};
use crate::server::{Answer, Server};

/// The messages as they went out.
async fn sent(bench: Bench, messages: Vec<Message>) -> Value {
    bench.ask(messages).await.unwrap();
    bench.server.only().json()["messages"].take()
}

fn calling(arguments: &str) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "bash", "arguments": arguments}},
    ]})
}

#[test]
fn h_101_the_request_is_a_post_to_base_and_chat_completions() {
    for base in ["/api/v1", "/api/v1/", "/api/v1//", "/api/v1/chat/completions"] {
        bench([Answer::reply("ok")], &Value::Null, async |it| {
            let config = json!({"baseUrl": it.server.url(base), "model": "m"});
            let it = Bench { llm: mount(config, &Env::default()).await, ..it };

            it.ask(Vec::new()).await.unwrap();

            assert_eq!(
                it.server.only().line,
                "POST /api/v1/chat/completions HTTP/1.1",
                "for {base}"
            );
        });
    }
}

#[test]
fn h_102_the_key_is_that_of_the_variable_without_blanks_around() {
    bench([Answer::reply("ok")], &Value::Null, async |it| {
        let config = json!({"baseUrl": it.server.url(""), "model": "m", "apiKeyEnv": "MY_KEY"});
        let it = Bench { llm: mount(config, &Env::fixed([("MY_KEY", " sk-1 \n")])).await, ..it };

        it.ask(Vec::new()).await.unwrap();

        assert_eq!(it.server.only().header("authorization"), Some("Bearer sk-1"));
    });
}

#[test]
fn without_a_variable_no_key_is_sent() {
    bench([Answer::reply("ok")], &json!({"apiKeyEnv": null}), async |it| {
        it.ask(Vec::new()).await.unwrap();

        assert_eq!(it.server.only().header("authorization"), None);
    });
}

#[test]
fn h_103_an_unset_variable_is_named_and_nothing_is_sent() {
    for env in [Env::default(), Env::fixed([("MY_KEY", " \n")])] {
        bench([], &Value::Null, async |it| {
            let config = json!({"baseUrl": it.server.url(""), "model": "m", "apiKeyEnv": "MY_KEY"});
            let it = Bench { llm: mount(config, &env).await, ..it };

            let err = it.fail().await;

            assert_eq!(err, LlmError::MissingKey("MY_KEY".into()));
            assert!(err.to_string().contains("MY_KEY"));
            assert!(it.server.received().is_empty());
        });
    }
}

#[test]
fn h_102_a_key_with_odd_characters_is_refused_unseen_and_nothing_is_sent() {
    for key in ["sk-1\nsk-2", "sk-ключ", "sk-\u{7f}1"] {
        bench([], &Value::Null, async |it| {
            let config = json!({"baseUrl": it.server.url(""), "model": "m", "apiKeyEnv": "MY_KEY"});
            let it = Bench { llm: mount(config, &Env::fixed([("MY_KEY", key)])).await, ..it };

            let err = it.fail().await.to_string();

            assert!(err.contains("MY_KEY") && !err.contains("sk-"), "{err}");
            assert!(it.server.received().is_empty());
        });
    }
}

#[test]
fn h_104_the_body_has_model_messages_with_system_first_and_tools() {
    bench([Answer::reply("ok")], &Value::Null, async |it| {
        let parameters = json!({"type": "object", "properties": {"b": {}, "a": {}}});
        let tools = vec![ToolSchema::new("bash", "runs", parameters.clone())];
        let request = Request {
            header: Header::new("other", "Be brief.", tools),
            messages: vec![Message::user("hi")],
        };

        it.send(request, CancellationToken::new()).await.unwrap();

        let wanted = json!({
            "model": "other",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
            "tools": [{"type": "function", "function": {"name": "bash", "description": "runs", "parameters": parameters}}],
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        let received = it.server.only();
        assert_eq!(String::from_utf8(received.body.clone()).unwrap(), wanted.to_string());
        assert_eq!(received.header("content-type"), Some("application/json"));
    });
}

#[test]
fn h_104_without_tools_and_system_text_their_keys_are_absent() {
    bench([Answer::reply("ok")], &json!({"stream": false}), async |it| {
        it.ask(vec![Message::user("hi")]).await.unwrap();

        let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
        assert_eq!(it.server.only().json(), body);
    });
}

#[test]
fn a_stream_and_its_options_are_asked_for_as_configured() {
    for (config, stream, options) in [
        (json!({}), Some(json!(true)), Some(json!({"include_usage": true}))),
        (json!({"body": {"stream_options": null}}), Some(json!(true)), None),
        (json!({"body": {"stream_options": {"x": 1}}}), Some(json!(true)), Some(json!({"x": 1}))),
        (json!({"stream": false}), None, None),
        (json!({"stream": false, "body": {"stream_options": {"x": 1}}}), None, None),
    ] {
        bench([Answer::reply("ok")], &config, async |it| {
            it.ask(Vec::new()).await.unwrap();

            let (body, accepted) =
                (it.server.only().json(), it.server.only().header("accept").map(str::to_owned));
            let wanted = if stream.is_some() { "text/event-stream" } else { "application/json" };
            assert_eq!(
                (body.get("stream"), body.get("stream_options")),
                (stream.as_ref(), options.as_ref()),
                "{config}"
            );
            assert_eq!(accepted.as_deref(), Some(wanted));
        });
    }
}

#[test]
fn a_limit_and_further_fields_are_sent_as_configured() {
    let config = json!({"maxTokens": 9, "maxTokensField": "max_completion_tokens", "body": {"temperature": 0, "user": null}});
    bench([Answer::reply("ok")], &config, async |it| {
        it.ask(Vec::new()).await.unwrap();

        let body = it.server.only().json();
        assert_eq!((&body["max_completion_tokens"], &body["temperature"]), (&json!(9), &json!(0)));
        assert!(body.get("max_tokens").is_none());
    });
}

#[test]
fn h_028_what_needs_no_change_goes_out_as_it_is_in_the_log() {
    let kept = json!([
        {"role": "user", "content": " two\nlines \u{0} "},
        {"role": "assistant", "content": "text", "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{\"command\" : 1e5}"}, "extra_content": {"sig": "S"}},
        ], "reasoning_content": "R", "x_new": [1, {"a": null}]},
        {"role": "tool", "tool_call_id": "c", "content": "done"},
    ]);
    bench([Answer::reply("ok")], &Value::Null, async |it| {
        let messages = serde_json::from_value(kept.clone()).unwrap();

        let messages = sent(it, messages).await;

        assert_eq!(messages, kept);
    });
}

#[test]
fn a_04_empty_text_beside_calls_is_sent_as_empty_or_as_null() {
    for (setting, content, wanted) in
        [("", Value::Null, json!("")), ("", json!(""), json!("")), ("null", json!(""), Value::Null)]
    {
        bench([Answer::reply("ok")], &json!({"emptyContent": setting}), async |it| {
            let mut message = calling("{}");
            message["content"] = content;

            let messages = sent(it, vec![assistant(&message)]).await;

            assert_eq!(messages[0].get("content"), Some(&wanted));
        });
    }
}

#[test]
fn a_reply_that_was_only_reasoning_goes_back_with_empty_text_never_with_null() {
    bench([Answer::reply("ok")], &json!({"emptyContent": "null"}), async |it| {
        let message = json!({"role": "assistant", "content": null, "reasoning_content": "R"});

        let messages = sent(it, vec![assistant(&message)]).await;

        assert_eq!(
            messages,
            json!([{"role": "assistant", "content": "", "reasoning_content": "R"}])
        );
    });
}

#[test]
fn a_04_an_empty_tool_result_is_never_sent_empty() {
    bench([Answer::reply("ok")], &Value::Null, async |it| {
        let messages = sent(it, vec![Message::tool("c", "")]).await;

        assert_eq!(messages[0]["content"], "(no output)");
    });
}

#[test]
fn h_122_reasoning_goes_back_by_default_and_stays_away_if_so_configured() {
    for (setting, wanted) in
        [("auto", Some(json!("R"))), ("send", Some(json!("R"))), ("drop", None)]
    {
        bench([Answer::reply("ok")], &json!({"reasoning": setting}), async |it| {
            let mut message = calling("{}");
            message["reasoning_content"] = json!("R");
            message["reasoning"] = json!("R");
            message["reasoning_details"] = json!([{}]);

            let messages = sent(it, vec![assistant(&message)]).await;

            assert_eq!(messages[0].get("reasoning_content"), wanted.as_ref(), "{setting}");
            assert_eq!(messages[0].get("reasoning").is_some(), wanted.is_some(), "{setting}");
            assert_eq!(
                messages[0].get("reasoning_details").is_some(),
                wanted.is_some(),
                "{setting}"
            );
        });
    }
}

#[test]
fn a_03_reasoning_is_made_up_only_where_a_setting_says_so_and_calls_were_made() {
    for (setting, wanted) in [("auto", None), ("send", Some(json!("")))] {
        bench([Answer::reply("ok")], &json!({"reasoning": setting}), async |it| {
            let plain = json!({"role": "assistant", "content": "hi"});

            let messages = sent(it, vec![assistant(&calling("{}")), assistant(&plain)]).await;

            assert_eq!(messages[0].get("reasoning_content"), wanted.as_ref(), "{setting}");
            assert_eq!(messages[1], plain);
        });
    }
}

#[test]
fn h_124_arguments_that_are_no_object_are_sent_as_an_empty_one() {
    for (logged, wanted) in [
        ("{\"command\": \"ls", "{}"),
        ("[1]", "{}"),
        ("", "{}"),
        ("\"{}\"", "{}"),
        ("{} {}", "{}"),
        (" {\"a\":1} ", " {\"a\":1} "),
        ("{\"a\":1,\"a\":2}", "{\"a\":1,\"a\":2}"),
    ] {
        bench([Answer::reply("ok")], &Value::Null, async |it| {
            let message = assistant(&calling(logged));

            let messages = sent(it, vec![message.clone()]).await;

            assert_eq!(messages[0]["tool_calls"][0]["function"]["arguments"], wanted);
            assert_eq!(message, assistant(&calling(logged)));
        });
    }
}

#[test]
fn a_37_a_proxy_is_used_for_others_and_never_for_this_machine() {
    bench([Answer::reply("direct"), Answer::reply("by proxy")], &Value::Null, async |it| {
        let proxy = it.server.url("");
        let env = Env::fixed([("HTTP_PROXY", proxy.as_str())]);
        let dead = Env::fixed([("HTTP_PROXY", "http://127.0.0.1:9")]);
        let here = mount(json!({"baseUrl": it.server.url("/v1"), "model": "m"}), &dead).await;
        let there = mount(json!({"baseUrl": "http://model.test/v1", "model": "m"}), &env).await;

        for llm in [here, there] {
            Bench { llm, server: Server::start([]).await, told: RefCell::default() }
                .ask(Vec::new())
                .await
                .unwrap();
        }

        let lines: Vec<_> = it.server.received().into_iter().map(|it| it.line).collect();
        let proxied = "POST http://model.test/v1/chat/completions HTTP/1.1";
        assert_eq!(lines, ["POST /v1/chat/completions HTTP/1.1", proxied]);
    });
}
