//! Arguments in every shape that models and gateways send.

use serde_json::json;

use nano_cordis::harness::tools::{Tool, ToolResult};

use crate::agent_loop::rig::{Agent, agent};

#[test]
fn h_052_text_that_is_no_json_is_an_error_and_the_body_does_not_run() {
    agent(async |it| {
        with_shell(it);

        let result = it.call("sh", r#"{"command":"echo a"#).await;

        assert!(
            result.content.starts_with("Error: the arguments are not valid JSON: EOF"),
            "{result:?}"
        );
        assert!(result.content.contains("line 1 column"), "{result:?}");
        assert!(result.content.ends_with(r#"{"command":"echo a"#), "{result:?}");
    });
}

#[test]
fn unreadable_arguments_are_repeated_up_to_a_limit() {
    agent(async |it| {
        with_shell(it);

        let result = it.call("sh", &"ü".repeat(10_000)).await;

        assert!(result.is_error && result.content.chars().count() < 350, "{result:?}");
    });
}

#[test]
fn h_053_nothing_at_all_means_no_arguments() {
    agent(async |it| {
        it.tools().register(shows_arguments(json!({}))).unwrap();

        for nothing in ["", " \n\t", "null", " null "] {
            assert_eq!(it.call("show", nothing).await, ToolResult::text("{}"), "{nothing:?}");
        }
    });
}

#[test]
fn h_054_json_that_is_no_object_is_an_error() {
    agent(async |it| {
        it.tools().register(shows_arguments(json!({}))).unwrap();

        for (text, kind) in
            [("[1]", "an array"), ("1", "a number"), ("true", "a boolean"), (r#""a""#, "a string")]
        {
            let expected = format!("the arguments must be a JSON object, not {kind}");
            assert_eq!(it.call("show", text).await, ToolResult::error(expected), "{text}");
        }
    });
}

#[test]
fn h_055_missing_wrong_and_unknown_arguments_are_named() {
    agent(async |it| {
        it.tools()
            .register(shows_arguments(json!({
                "type": "object",
                "properties": {
                    "command": { "type": "string" },
                    "timeoutMs": { "type": ["integer", "null"] },
                    "env": { "type": "object", "required": ["HOME"], "properties": { "HOME": { "type": "string" } } },
                    "mode": { "enum": ["a", "b"] },
                },
                "required": ["command"],
                "additionalProperties": false,
            })))
            .unwrap();

        let cases = [
            ("{}", "`command` is missing"),
            (r#"{"command":["echo","c"]}"#, "`command` must be of type string, not an array"),
            (r#"{"command":7}"#, "`command` must be of type string, not a number"),
            (
                r#"{"command":"a","timeoutMs":"5"}"#,
                "`timeoutMs` must be of type null or integer, not a string",
            ),
            (r#"{"command":"a","comand":1}"#, "unknown: `comand`"),
            (r#"{"command":"a","env":{}}"#, "`env.HOME` is missing"),
            (
                r#"{"command":"a","env":{"HOME":1}}"#,
                "`env.HOME` must be of type string, not a number",
            ),
            (r#"{"command":"a","mode":"c"}"#, "`mode`: "),
        ];

        for (text, problem) in cases {
            let result = it.call("show", text).await;
            let expected = format!("Error: invalid arguments: {problem}");
            assert!(result.is_error && result.content.starts_with(&expected), "{text}: {result:?}");
        }
        let several = it.call("show", r#"{"mode":"a","timeoutMs":true}"#).await;
        assert!(
            several.content.contains("command") && several.content.contains("timeoutMs"),
            "{several:?}"
        );
    });
}

#[test]
fn a_05_seven_shapes_of_arguments() {
    agent(async |it| {
        with_shell(it);
        let twice = r#""{\"command\":\"echo b\"}""#;
        let missing = ToolResult::error("invalid arguments: `command` is missing");

        assert_eq!(it.call("sh", "").await, missing);
        assert_eq!(it.call("sh", "null").await, missing);
        assert_eq!(it.call("sh", "{}").await, missing);
        assert_eq!(it.call("sh", r#"{"command":"echo a"}"#).await, ToolResult::text("echo a"));
        assert_eq!(it.call("sh", twice).await, ToolResult::text("echo b"));
        assert!(it.call("sh", r#"{"command":["echo","c"]}"#).await.is_error);
        assert!(it.call("sh", "[1]").await.is_error);
    });
}

#[test]
fn an_object_that_was_encoded_three_times_is_not_unwrapped() {
    agent(async |it| {
        with_shell(it);
        let once = r#"{"command":"echo"}"#;
        let thrice = serde_json::to_string(&serde_json::to_string(once).unwrap()).unwrap();

        let result = it.call("sh", &thrice).await;

        assert_eq!(result, ToolResult::error("the arguments must be a JSON object, not a string"));
    });
}

#[test]
fn of_a_repeated_key_the_last_one_counts() {
    agent(async |it| {
        with_shell(it);

        let result = it.call("sh", r#"{"command":"ls","command":"rm"}"#).await;

        assert_eq!(result, ToolResult::text("rm"));
    });
}

#[test]
fn json_that_is_too_deep_is_an_error_not_a_crash() {
    agent(async |it| {
        with_shell(it);

        let result = it.call("sh", &"[".repeat(1_000_000)).await;

        assert!(result.is_error, "{result:?}");
    });
}

#[test]
fn a_tools_own_check_comes_after_its_schema_and_before_its_body() {
    agent(async |it| {
        let parameters = json!({ "type": "object", "required": ["command"] });
        let checked =
            shows_arguments(parameters).checked(|_| Err("the command has a NUL byte".into()));
        it.tools().register(checked).unwrap();

        let unfit = it.call("show", "{}").await;
        let refused = it.call("show", r#"{"command":"a"}"#).await;

        assert!(unfit.content.contains("missing"));
        assert_eq!(refused, ToolResult::error("the command has a NUL byte"));
    });
}

#[test]
fn of_many_faults_the_first_are_told_and_of_a_long_one_the_beginning() {
    agent(async |it| {
        let names: Vec<_> = (0..10_000).map(|at| format!("key{at}")).collect();
        let schema = json!({ "required": names, "properties": { "text": { "enum": ["a"] } } });
        it.tools().register(shows_arguments(schema)).unwrap();

        let result = it.call("show", &json!({ "text": "x".repeat(1_000_000) }).to_string()).await;

        let faults: Vec<_> = result.content.split("; ").collect();
        assert!(result.content.len() < 10_000 && faults.len() == 20, "{}", result.content.len());
    });
}

#[test]
fn a_schema_that_is_broken_keeps_its_tool_from_running() {
    agent(async |it| {
        it.tools().register(shows_arguments(json!({ "type": "no such type" }))).unwrap();

        let result = it.call("show", "{}").await;

        assert!(
            result.content.starts_with("Error: the schema of this tool is broken"),
            "{result:?}"
        );
    });
}

fn shows_arguments(parameters: serde_json::Value) -> Tool {
    Tool::new("show", "", parameters, async |call| Ok(serde_json::to_string(&call.arguments)?))
}

fn with_shell(it: &Agent) {
    let parameters = json!({
        "type": "object",
        "properties": { "command": { "type": "string" } },
        "required": ["command"],
    });
    let tool = Tool::new("sh", "", parameters, async |call| {
        Ok(call.arguments["command"].as_str().unwrap_or("?").to_owned())
    });
    it.tools().register(tool).unwrap();
}
