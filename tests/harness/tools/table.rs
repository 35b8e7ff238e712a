//! What is registered: shown to the model and runnable, or neither.

use serde_json::json;

use nano_cordis::harness::tools::{Tool, ToolResult, ToolsChanged, ToolsError};

use crate::agent_loop::rig::{agent, echo, request, tool};

#[test]
fn h_046_an_unknown_tool_is_an_error_that_names_it() {
    agent(async |it| {
        let result = it.call("run_shell", "{}").await;

        assert_eq!(result, ToolResult::error("unknown tool \"run_shell\"; the tools are: echo"));
    });
}

#[test]
fn a_08_names_are_compared_exactly_and_none_at_all_is_unknown_too() {
    agent(async |it| {
        for name in ["Echo", "echo ", ""] {
            let result = it.call(name, "{}").await;

            assert!(
                result.is_error && result.content.contains("the tools are: echo"),
                "{name:?}: {result:?}"
            );
        }
    });
}

#[test]
fn h_051_the_error_of_a_body_is_the_result() {
    agent(async |it| {
        it.mount_tool(|| tool("broken", async |_| Err("no luck".into()))).await;

        let result = it.call("broken", "{}").await;

        assert_eq!(result, ToolResult::error("no luck"));
    });
}

#[test]
fn h_056_a_tool_whose_plugin_is_gone_is_neither_shown_nor_run() {
    agent(async |it| {
        let plugin = it.mount_tool(|| tool("date", async |_| Ok("today".into()))).await;
        assert_eq!(it.tools().names(), ["date", "echo"]);

        plugin.dispose().await;

        assert_eq!(it.tools().schemas().len(), 1);
        assert!(it.call("date", "{}").await.content.starts_with("Error: unknown tool \"date\""));
    });
}

#[test]
fn h_057_a_tool_goes_with_the_plugin_that_registered_it_not_with_the_service() {
    agent(async |it| {
        let plugin = it.mount_tool(|| tool("date", async |_| Ok("today".into()))).await;

        plugin.dispose().await;

        assert_eq!(it.tools().names(), ["echo"]);
        assert_eq!(
            it.call("echo", r#"{"text":"still here"}"#).await,
            ToolResult::text("still here")
        );
    });
}

#[test]
fn h_058_a_second_tool_of_one_name_is_refused_and_the_first_stays() {
    agent(async |it| {
        let second = it.tools().register(tool("echo", async |_| Ok("another".into())));

        assert!(matches!(second, Err(ToolsError::Duplicate { name }) if name == "echo"));
        assert_eq!(it.call("echo", r#"{"text":"first"}"#).await, ToolResult::text("first"));
    });
}

#[test]
fn h_062_schemas_are_functions_with_name_description_and_parameters() {
    agent(async |it| {
        let schemas = serde_json::to_value(it.tools().schemas()).unwrap();

        let parameters =
            json!({ "type": "object", "properties": { "text": { "type": "string" } } });
        let function =
            json!({ "name": "echo", "description": "a tool of a test", "parameters": parameters });
        assert_eq!(schemas, json!([{ "type": "function", "function": function }]));
    });
}

#[test]
fn h_063_a_body_that_panics_is_an_error_result() {
    agent(async |it| {
        it.mount_tool(|| tool("bomb", async |_| panic!("boom"))).await;

        let result = it.call("bomb", "{}").await;

        assert!(result.is_error && result.content.contains("boom"), "{result:?}");
        assert!(!it.call("echo", "{}").await.is_error);
    });
}

#[test]
fn a_check_that_panics_is_an_error_result() {
    agent(async |it| {
        it.mount_tool(|| tool("bomb", async |_| Ok("ran".into())).checked(|_| panic!("boom")))
            .await;

        let result = it.call("bomb", "{}").await;

        assert!(result.is_error && result.content.contains("boom"), "{result:?}");
    });
}

#[test]
fn a_name_that_model_services_do_not_accept_is_refused() {
    agent(async |it| {
        for name in ["", "a b", "dé", &"x".repeat(65)] {
            let refused = it.tools().register(Tool::new(name, "", json!({}), async |_| Ok("")));

            assert!(matches!(refused, Err(ToolsError::Name { .. })), "{name:?}");
        }
        let refused = it.tools().register(Tool::new("ok", "", json!([]), async |_| Ok("")));
        assert!(matches!(refused, Err(ToolsError::Parameters { .. })));
    });
}

#[test]
fn a_tool_that_comes_or_goes_is_told() {
    agent(async |it| {
        let seen = it.count::<ToolsChanged>();

        let plugin = it.mount_tool(|| tool("date", async |_| Ok("today".into()))).await;
        let after_one = seen.get();
        plugin.dispose().await;

        assert_eq!((after_one, seen.get()), (1, 2));
    });
}

#[test]
fn a_tool_that_goes_away_while_its_call_waits_does_not_run() {
    agent(async |it| {
        let runs = it.count_runs("rm").await;
        let old = it.mount_tool(|| tool("date", async |_| Ok("today".into()))).await;
        let gate = it.hold_calls();

        let (result, ()) = tokio::join!(it.call("date", "{}"), async {
            gate.reached.notified().await;
            old.dispose().await;
            it.mount_tool(|| tool("date", async |_| Ok("another".into()))).await;
            gate.opened.notify_one();
        });

        assert_eq!(result, ToolResult::error("tool \"date\" went away while the call waited"));
        assert_eq!(runs.get(), 0);
    });
}

#[test]
fn a_stopped_call_does_not_begin() {
    agent(async |it| {
        let runs = it.count_runs("rm").await;
        let call = request("rm", "{}");
        call.cancel.cancel();

        let result = it.tools().execute(call).await;

        assert_eq!((result, runs.get()), (ToolResult::aborted(), 0));
    });
}

#[test]
fn a_typed_tool_has_the_schema_of_its_arguments_and_gets_them_read() {
    /// Doc comments are for the model.
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Arguments {
        /// How many.
        count: u32,
        unit: Option<String>,
    }
    agent(async |it| {
        let body = async |given: Arguments, _| Ok(format!("{} {:?}", given.count, given.unit));
        it.tools().register(Tool::typed("count", "counts", body)).unwrap();

        let good = it.call("count", r#"{"count":2,"unit":"m"}"#).await;
        let bad = it.call("count", r#"{"count":"2"}"#).await;

        assert_eq!(good, ToolResult::text("2 Some(\"m\")"));
        assert_eq!(
            bad,
            ToolResult::error("invalid arguments: `count` must be of type integer, not a string")
        );
        let schema = &it.tools().schemas()[0].function.parameters;
        assert_eq!(schema["properties"]["count"]["description"], "How many.");
        assert_eq!(schema.get("$schema"), None);
    });
}

#[test]
fn an_undone_registration_frees_the_name() {
    agent(async |it| {
        it.without_tools().await;

        let again = it.tools().register(echo());

        assert!(again.is_ok());
    });
}
