//! The key: whoever repeats it, nobody hears it again.

use std::rc::Rc;

use nano_cordis::{
    cordis::{Context, plugin},
    harness::{
        env::Env,
        llm_openai,
        tools::{self, Tool, Tools},
    },
};
use serde_json::{Value, json};
use tokio::{runtime::Builder, task::LocalSet};

use super::{Bench, KEY, bench, failure::failure, mount};
use crate::{agent_loop::rig::request, server::Answer};

#[test]
fn h_102_a_key_that_the_server_repeats_is_masked_everywhere() {
    let cut = format!("{}{KEY}", "x".repeat(490));
    for answer in [
        Answer::json(401, &json!({"error": {"message": format!("bad key {KEY}!")}})),
        Answer::text(401, "text/plain", KEY),
        Answer::text(401, "text/plain", &cut),
        Answer::text(200, "text/plain", &format!("you sent {KEY}")),
        Answer::json(200, &json!({"error": KEY})),
        Answer::json(200, &json!({"choices": KEY})),
        Answer::json(200, &json!({"choices": [{"message": {"tool_calls": KEY}}]})),
        Answer::head(307, &[("Location", &format!("/{KEY}/x?k={KEY}")), ("Content-Length", "0")]),
    ] {
        let err = failure(answer);

        assert!(!format!("{err} {err:?}").contains(&KEY[..8]), "{err}");
    }
}

#[test]
fn h_102_a_reply_that_repeats_the_key_is_masked_before_it_is_logged() {
    let arguments = format!("{{\"header\":\"{KEY}\"}}");
    let call =
        json!({"id": "a", "type": "function", "function": {"name": "x", "arguments": arguments}});
    let message = json!({"content": format!("your key is {KEY}"), "tool_calls": [call]});
    bench([Answer::message(&message, "stop")], &Value::Null, async |it| {
        let reply = it.ask(vec![]).await.unwrap();

        assert_eq!(reply.message.content.as_deref(), Some("your key is ***"));
        assert_eq!(reply.message.tool_calls[0].function.arguments, "{\"header\":\"***\"}");
    });
}

#[test]
fn h_102_a_key_with_slashes_is_masked_where_json_escapes_them() {
    let body = r#"{"error": {"message": "bad key sk-12\/34\/56"}}"#;
    bench([Answer::text(401, "application/json", body)], &Value::Null, async |it| {
        let said = with_key(it, "sk-12/34/56").await.fail().await.to_string();

        assert!(said.ends_with("bad key ***"), "{said}");
    });
}

#[test]
fn the_made_up_key_of_a_local_server_is_no_secret_and_garbles_nothing() {
    let error = json!({"error": {"message": "model ollama is not loaded"}});
    bench([Answer::json(404, &error)], &Value::Null, async |it| {
        let said = with_key(it, "ollama").await.fail().await.to_string();

        assert!(said.contains("model ollama is not loaded"), "{said}");
    });
}

#[test]
fn h_102_a_tool_that_prints_the_key_does_not_get_it_past_the_pipeline() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let root = Context::root();
        root.provide(Rc::new(Env::fixed([("MY_KEY", KEY)]))).unwrap();
        let config = json!({"baseUrl": "http://127.0.0.1:9", "model": "m", "apiKeyEnv": "MY_KEY"});
        for (def, config) in
            [(plugin(tools::apply), json!({})), (plugin(llm_openai::apply), config)]
        {
            root.plugin(&def, config).unwrap().ready().await.unwrap();
        }
        let tools = root.get::<Tools>().unwrap();
        let leak = async |_| Ok(format!("MY_KEY={KEY}"));
        tools.register(Tool::new("leak", "", json!({}), leak)).unwrap();

        let result = tools.execute(request("leak", "")).await;

        assert_eq!((result.content.as_str(), result.is_error), ("MY_KEY=***", false));
    });
}

async fn with_key(it: Bench, key: &str) -> Bench {
    let config = json!({"baseUrl": it.server.url("/v1"), "model": "m", "apiKeyEnv": "MY_KEY"});
    Bench { llm: mount(config, &Env::fixed([("MY_KEY", key)])).await, ..it }
}
