//! How a server starts, and what is said when it does not.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::rig::rig;

#[test]
fn the_tools_of_a_server_are_mounted_and_answer() {
    rig(async |it| {
        it.serve("plain", json!({})).await;

        let result = it
            .call_with(
                "mcp__x__do",
                json!({ "what": "echo", "text": "hi" }),
                CancellationToken::new(),
            )
            .await;

        assert_eq!(it.tools.names(), ["mcp__x__do"]);
        assert_eq!((result.content.as_str(), result.is_error), ("hi", false));
    });
}

#[test]
fn d_64_a_program_that_is_not_there_fails_the_entry_and_is_named() {
    rig(async |it| {
        let err = it.fails(json!({ "command": "no-such-program", "args": ["a"] })).await;

        assert!(err.contains("the MCP server `no-such-program a` cannot be started: "), "{err}");
    });
}

#[test]
fn d_64_a_server_that_exits_at_once_fails_with_its_status_and_what_it_said() {
    rig(async |it| {
        let err = it.fails(it.config("exit", json!({}))).await;

        assert!(
            err.contains("did not start: it ended with exit code 4; stderr: no licence␛[2J found"),
            "{err}"
        );
    });
}

#[test]
fn a_server_that_never_answers_is_given_up_at_the_limit_and_ended() {
    for mode in ["silent", "deaf", "unlisted"] {
        rig(async move |it| {
            let err = it.fails(it.config(mode, json!({ "startTimeoutMs": 300 }))).await;

            assert!(err.contains("did not answer within 300 ms (startTimeoutMs)"), "{mode}: {err}");
            assert_eq!(it.alive(), [""; 0]);
        });
    }
}

#[test]
fn garbage_instead_of_a_greeting_is_repeated_in_the_message() {
    rig(async |it| {
        let err = it.fails(it.config("garbage", json!({ "startTimeoutMs": 300 }))).await;

        assert!(err.ends_with("(startTimeoutMs); stdout: Welcome to the server!"), "{err}");
    });
}

#[test]
fn a_banner_before_the_greeting_does_no_harm() {
    rig(async |it| {
        it.serve("banner", json!({})).await;

        assert!(!it.call("folder").await.is_error);
    });
}

#[test]
fn a_server_that_refuses_the_greeting_is_quoted() {
    rig(async |it| {
        let err = it.fails(it.config("refusing", json!({}))).await;

        assert!(
            err.contains("could not be greeted: the server refused: not today (code -32000)"),
            "{err}"
        );
    });
}

#[test]
fn an_answer_that_is_no_greeting_fails_the_entry() {
    rig(async |it| {
        let err = it.fails(it.config("rude", json!({}))).await;

        assert!(err.contains("could not be greeted: ") && err.contains("hello"), "{err}");
    });
}

#[test]
fn a_flood_of_complaints_holds_nothing_up() {
    rig(async |it| {
        it.serve("noisy", json!({})).await;

        let result = it.call("complain").await;

        assert_eq!(result.content, "complained");
    });
}

#[test]
fn unloading_a_server_that_is_still_starting_does_not_wait_for_its_limit() {
    rig(async |it| {
        let mount = it.mount(it.config("silent", json!({})));
        it.heard("initialize").await;

        mount.dispose().await;

        assert_eq!(it.alive(), [""; 0]);
    });
}

#[test]
fn d_17_a_key_that_is_not_known_is_refused_with_the_nearest() {
    rig(async |it| {
        let err = it.fails(it.config("plain", json!({ "startTimeoutMS": 1 }))).await;

        assert!(
            err.contains("startTimeoutMS: unknown key; did you mean `startTimeoutMs`?"),
            "{err}"
        );
    });
}

#[test]
fn d_24_a_server_gets_no_secrets_but_those_it_was_given() {
    rig(async |it| {
        let more = json!({ "env": { "API_KEY": "key-67890" } });
        it.serve("plain", more).await;
        let variable = async |name: &str| {
            let arguments = json!({ "what": "variable", "text": name });
            it.call_with("mcp__x__do", arguments, CancellationToken::new()).await.content
        };

        let seen = [variable("PLAIN").await, variable("MY_TOKEN").await, variable("API_KEY").await];

        // It has its own key, and what it says of it is masked.
        assert_eq!(seen, ["seen", "unset", "***"]);
    });
}

#[test]
fn d_24_a_variable_that_the_user_named_goes_through() {
    rig(async |it| {
        it.serve("plain", json!({ "passEnv": ["MY_TOKEN"] })).await;

        let arguments = json!({ "what": "variable", "text": "MY_TOKEN" });
        let result = it.call_with("mcp__x__do", arguments, CancellationToken::new()).await;

        assert_eq!(result.content, "token-12345");
    });
}

#[test]
fn a_server_works_in_the_folder_that_was_named() {
    rig(async |it| {
        let folder = it.path("").canonicalize().unwrap();
        it.serve("plain", json!({ "cwd": folder })).await;

        assert_eq!(it.call("folder").await.content, folder.to_str().unwrap());
    });
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    rig(async |it| {
        let err = it.fails(it.config("plain", json!({ "cwd": "/no/such/folder" }))).await;

        assert!(
            err.contains("cannot be started: the folder /no/such/folder is not there"),
            "{err}"
        );
    });
}

#[test]
fn a_server_is_called_as_it_was_named_and_a_name_that_does_not_fit_is_refused() {
    rig(async |it| {
        it.serve("plain", json!({ "server": "files" })).await;

        let err = it.fails(it.config("plain", json!({ "server": "a__b" }))).await;

        assert_eq!(it.tools.names(), ["mcp__files__do"]);
        assert!(err.contains("config.server: `a__b` must be 1 to 24 letters"), "{err}");
    });
}
