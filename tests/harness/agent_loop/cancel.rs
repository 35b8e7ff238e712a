//! Stopping a turn: wherever it waits, it ends within a moment and its log is whole.

use std::future::pending;
use std::rc::Rc;
use std::time::Duration;

use nano_cordis::cordis::{BoxError, Context, NoConfig, plugin};
use nano_cordis::harness::agent_loop::{AgentRequest, RunError, TurnOutcome};
use nano_cordis::harness::session::event::Reason;
use nano_cordis::harness::tools::{PostExecute, PreExecute};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::rig::{Agent, agent, tool};

#[test]
fn a_turn_stops_while_the_model_thinks() {
    agent(async |it| {
        it.model.hangs();

        let outcome = stopped(it).await;

        assert_eq!((outcome.reason, outcome.error), (Reason::Aborted, None));
        assert_eq!(it.log()[4..], ["step/end", "turn/end Aborted"]);
    });
}

#[test]
fn a_turn_stops_while_a_tool_runs() {
    agent(async |it| {
        it.mount_tool(|| tool("slow", async |_| pending().await)).await;
        it.model.calls(&[("a", "slow", "{}"), ("b", "echo", "{}")]);

        let outcome = stopped(it).await;

        assert_eq!(outcome.reason, Reason::Aborted);
        assert_answered(it);
    });
}

#[test]
fn a_tool_that_listens_to_the_token_has_its_last_word_logged() {
    agent(async |it| {
        let listens = async |call: Rc<nano_cordis::harness::tools::Call>| {
            call.cancel.cancelled().await;
            Ok("half of the output".to_owned())
        };
        it.mount_tool(move || tool("slow", listens)).await;
        it.model.calls(&[("a", "slow", "{}")]);

        stopped(it).await;

        assert_eq!(it.results(), ["half of the output"]);
    });
}

#[test]
fn a_turn_stops_while_a_question_is_open_and_the_call_never_runs() {
    agent(async |it| {
        let ran = it.count_runs("rm").await;
        let asks = plugin(|ctx: Context, _: NoConfig| async move {
            ctx.intercept::<PreExecute>(async |_, call, next| {
                call.cancel.cancelled().await;
                next.run().await
            })?;
            Ok::<(), BoxError>(())
        });
        it.mount("asks", &asks).await;
        it.model.calls(&[("a", "rm", "{}"), ("b", "rm", "{}")]);

        let outcome = stopped(it).await;

        assert_eq!((outcome.reason, ran.get()), (Reason::Aborted, 0));
        assert_answered(it);
    });
}

#[test]
fn a_turn_stops_while_a_listener_hangs() {
    agent(async |it| {
        let hangs = plugin(|ctx: Context, _: NoConfig| async move {
            ctx.intercept::<PreExecute>(async |_, _, _| pending().await)?;
            Ok::<(), BoxError>(())
        });
        it.mount("hangs", &hangs).await;
        it.model.calls(&[("a", "echo", "{}"), ("b", "echo", "{}")]);

        stopped(it).await;

        assert_answered(it);
    });
}

#[test]
fn a_turn_stops_while_a_result_is_handed_round_and_the_unseen_text_is_kept_back() {
    agent(async |it| {
        let hangs = plugin(|ctx: Context, _: NoConfig| async move {
            ctx.intercept::<PostExecute>(async |_, _, _| pending().await)?;
            Ok::<(), BoxError>(())
        });
        it.mount("hangs", &hangs).await;
        it.model.calls(&[("a", "echo", r#"{"text":"secret"}"#), ("b", "echo", "{}")]);

        stopped(it).await;

        assert_answered(it);
        assert!(!it.results()[0].contains("secret"));
    });
}

#[test]
fn a_turn_stops_while_a_request_is_being_changed() {
    agent(async |it| {
        let hangs = plugin(|ctx: Context, _: NoConfig| async move {
            ctx.intercept::<AgentRequest>(async |_, _, _| pending().await)?;
            Ok::<(), BoxError>(())
        });
        it.mount("hangs", &hangs).await;

        let outcome = stopped(it).await;

        assert_eq!(outcome.reason, Reason::Aborted);
        assert_eq!(it.log()[3..], ["step/end", "turn/end Aborted"]);
    });
}

#[test]
fn a_turn_that_is_stopped_before_it_began_asks_no_model() {
    agent(async |it| {
        let cancel = CancellationToken::new();
        cancel.cancel();

        let outcome = it.try_run("hello", &cancel).await.unwrap();

        assert_eq!((outcome.reason, it.model.asked().len()), (Reason::Aborted, 0));
        assert_eq!(it.log()[2..], ["user/message hello", "step/end", "turn/end Aborted"]);
    });
}

#[test]
fn after_a_stopped_turn_the_next_one_works() {
    agent(async |it| {
        it.mount_tool(|| tool("slow", async |_| pending().await)).await;
        it.model.calls(&[("a", "slow", "{}")]).says("fine");
        stopped(it).await;

        let outcome = it.run("again").await;

        assert_eq!(outcome.reason, Reason::Completed);
    });
}

#[test]
fn h_043_when_the_model_goes_away_the_turn_fails_and_its_end_is_logged() {
    agent(async |it| {
        it.mount_tool(|| tool("slow", async |_| pending().await)).await;
        it.model.calls(&[("a", "slow", "{}")]);
        let cancel = CancellationToken::new();

        let (outcome, _) = tokio::join!(it.try_run("hello", &cancel), async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            it.llm.dispose().await
        });

        let outcome = outcome.unwrap();
        assert_eq!(outcome.error.unwrap().code.as_deref(), Some("unloaded"));
        assert_eq!(it.log()[5..], ["tool/call a", "tool/result a", "step/end", "turn/end Error"]);
    });
}

#[test]
fn a_turn_whose_caller_is_dropped_is_closed_in_the_log() {
    agent(async |it| {
        it.mount_tool(|| tool("slow", async |_| pending().await)).await;
        it.model.calls(&[("a", "slow", "{}"), ("b", "echo", "{}")]);
        let cancel = CancellationToken::new();

        let unfinished =
            tokio::time::timeout(Duration::from_secs(1), it.try_run("hello", &cancel)).await;

        assert!(unfinished.is_err());
        assert_answered(it);
        assert_eq!(it.log().last().unwrap(), "turn/end Error");
    });
}

#[test]
fn a_loop_that_is_gone_refuses_a_turn() {
    agent(async |it| {
        let old = it.turns();
        it.turns.dispose().await;

        let refused = old.run(&it.session, "hello", CancellationToken::new()).await;

        assert!(matches!(refused, Err(RunError::Unloaded)));
        assert_eq!(it.log(), [""; 0]);
    });
}

/// Runs a turn and stops it after a second.
async fn stopped(it: &Agent) -> TurnOutcome {
    let cancel = CancellationToken::new();
    let (outcome, pulled) = tokio::join!(it.try_run("hello", &cancel), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel();
        Instant::now()
    });
    assert!(pulled.elapsed() <= Duration::from_millis(100), "{:?}", pulled.elapsed());
    outcome.unwrap()
}

/// Calls `a` and `b` both have a result, and step and turn are closed.
fn assert_answered(it: &Agent) {
    let log = it.log();
    let calls = ["tool/call a", "tool/result a", "tool/call b", "tool/result b", "step/end"];
    assert_eq!(log[5..10], calls);
    assert!(log[10].starts_with("turn/end "), "{log:?}");
    assert!(it.results().iter().all(|it| it.starts_with("Error: aborted")), "{:?}", it.results());
}
