//! Servers that die or talk for ever: the call says why, the user is told, and the server comes back.

use serde_json::json;

use super::rig::rig;

/// What is said of a loss, and of the return.
fn lines(why: &str) -> [String; 2] {
    [format!("! mcp `x`: {why}; starting it again"), "mcp `x`: the server is back".into()]
}

#[test]
fn a_crash_within_a_call_is_the_result_of_the_call_and_one_line_and_then_it_is_back() {
    rig(async |it| {
        it.serve("plain", json!({})).await;

        let result = it.call("crash").await;

        let why = "it ended with exit code 3; stderr: Segmentation\\e[2J fault";
        assert!(
            result.is_error && result.content.contains("was lost while the call ran"),
            "{result:?}"
        );
        assert!(result.content.contains(why), "{result:?}");
        assert_eq!(it.hear(2).await, lines(why));
        assert!(!it.call("echo").await.is_error);
        assert_eq!(it.starts(), 2);
    });
}

#[test]
fn a_server_that_is_killed_between_calls_is_noticed_and_a_call_meanwhile_says_so() {
    rig(async |it| {
        it.serve("plain", json!({})).await;
        let pid = it.alive()[0].parse().unwrap();

        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGKILL).unwrap();
        let lost = it.hear(1).await;
        let meanwhile = it.call("echo").await;

        assert_eq!(lost, lines("it was killed by SIGKILL")[..1]);
        assert!(
            meanwhile.is_error
                && meanwhile.content.contains(
                    "the MCP server `x` is not there: it was killed by SIGKILL; it is being started again"
                ),
            "{meanwhile:?}"
        );
        assert_eq!(it.hear(1).await, lines("")[1..]);
    });
}

#[test]
fn tools_stay_in_the_table_while_their_server_is_away() {
    rig(async |it| {
        it.serve("plain", json!({})).await;
        let changes = std::rc::Rc::new(std::cell::Cell::new(0));
        let seen = changes.clone();
        it.ctx
            .on(move |_, _: &nano_cordis::harness::tools::ToolsChanged| seen.set(seen.get() + 1))
            .unwrap();

        it.call("crash").await;
        it.hear(2).await;
        it.turn();

        assert_eq!((it.tools.names(), changes.get()), (vec!["mcp__x__do".to_owned()], 0));
    });
}

#[test]
fn a_server_that_closes_its_output_is_lost_and_ended() {
    rig(async |it| {
        it.serve("plain", json!({})).await;

        let result = it.call("close").await;

        assert!(result.content.contains("it closed its output"), "{result:?}");
        assert_eq!(it.hear(2).await, lines("it closed its output"));
        assert_eq!(it.alive().len(), 1);
    });
}

#[test]
fn a_line_without_end_stops_the_server_with_the_reason() {
    rig(async |it| {
        it.serve("plain", json!({})).await;

        let result = it.call("line").await;

        let why = "it sent a line of more than 16 MiB";
        assert!(result.is_error && result.content.contains(why), "{result:?}");
        assert_eq!(it.hear(2).await, lines(why));
    });
}

#[test]
fn talk_without_end_stops_the_server_with_the_reason() {
    for what in ["chatter", "noise"] {
        rig(async move |it| {
            it.serve("plain", json!({})).await;

            let result = it.call(what).await;

            let why = "it sent 64 MiB that answer nothing";
            assert!(result.is_error && result.content.contains(why), "{result:?}");
            assert_eq!(it.hear(2).await, lines(why));
        });
    }
}

#[test]
fn a_server_that_does_not_come_back_is_tried_again_in_silence() {
    rig(async |it| {
        it.serve("once", json!({})).await;

        it.call("crash").await;
        it.hear(1).await;
        while it.starts() < 3 {
            tokio::task::yield_now().await;
        }
        let meanwhile = it.call("echo").await;

        assert!(meanwhile.is_error && meanwhile.content.contains("is not there"), "{meanwhile:?}");
        assert_eq!(it.said(), [""; 0]);
        std::fs::remove_file(it.path("was-here")).unwrap();
        assert_eq!(it.hear(1).await, lines("")[1..]);
    });
}
