//! A server that is not ours, from a package registry. A test program of its own, run by name only: `.ci/run` installs a
//! server and says in `NANO_TEST_MCP_SERVER` how it is started.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[expect(dead_code, reason = "not all that the tests of MCP share is needed here")]
mod rig;
#[path = "../shared.rs"]
mod shared;

use std::{env, fs};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use self::rig::rig;

#[test]
fn a_real_server_is_mounted_answers_and_ends() {
    let words = server();
    rig(async move |it| {
        let mark = it.path("").to_str().unwrap().to_owned();
        let mut config = json!({ "command": words[0], "args": words[1..] });
        config["env"] = json!({ "NANO_TEST_MARK": mark });
        let mount = it.mount(config);
        mount.ready().await.unwrap();
        let names = it.tools.names();
        let (tool, arguments, expected) = if names.iter().any(|it| it == "mcp__x__echo") {
            ("mcp__x__echo", json!({ "message": "hello" }), "hello")
        } else {
            ("mcp__x__get_current_time", json!({ "timezone": "UTC" }), "UTC")
        };

        let answered = it.call_with(tool, arguments, CancellationToken::new()).await;
        let refused = it.call_with(tool, json!({}), CancellationToken::new()).await;
        let running = marked(&mark);
        mount.dispose().await;

        println!("{} tools: {}", names.len(), names.join(", "));
        println!("{tool}: {answered:?}");
        assert!(!answered.is_error && answered.content.contains(expected), "{answered:?}");
        assert!(refused.is_error, "{refused:?}");
        assert!(running > 0, "its processes are not found");
        assert_eq!(marked(&mark), 0);
    });
}

#[test]
fn all_tools_of_a_real_server_that_need_no_arguments_answer_with_text() {
    let words = server();
    rig(async move |it| {
        let config = json!({ "command": words[0], "args": words[1..], "callTimeoutMs": 15_000 });
        it.mount(config).ready().await.unwrap();
        let schemas = serde_json::to_value(it.tools.schemas()).unwrap();

        let mut asked = 0;
        for tool in schemas.as_array().unwrap() {
            let tool = &tool["function"];
            let needs = tool["parameters"]["required"].as_array().is_some_and(|it| !it.is_empty());
            if !needs {
                let name = tool["name"].as_str().unwrap();
                let result = it.call_with(name, json!({}), CancellationToken::new()).await;
                let shown: String = result.content.chars().take(100).collect();
                asked += 1;
                println!("{name}: {}{shown:?}", if result.is_error { "failed, " } else { "" });
                assert!(!result.content.is_empty() && result.content.len() < 40_000);
            }
        }
        drop(it.take_said());
        assert!(asked > 0, "{schemas}");
    });
}

/// The command of the server and its arguments.
fn server() -> Vec<String> {
    let line = env::var("NANO_TEST_MCP_SERVER").expect("it says how a real server is started");
    line.split_whitespace().map(str::to_owned).collect()
}

/// How many processes bear this mark in their environment.
fn marked(mark: &str) -> usize {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let vars = all.filter_map(|it| fs::read(it.path().join("environ")).ok());
    vars.filter(|it| it.windows(mark.len()).any(|it| it == mark.as_bytes())).count()
}
