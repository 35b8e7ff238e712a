//! What a refusal is worth: nobody allows what others did not see, and nobody takes back what one of them has said.

use std::cell::Cell;
use std::rc::Rc;

use nano_cordis::cordis::Next;
use nano_cordis::harness::tools::{Call, PreExecute, ToolResult, Verdict};
use tokio_util::sync::CancellationToken;

use super::listeners::{before, deny};
use crate::agent_loop::rig::agent;

#[test]
fn allowing_a_call_without_asking_the_others_refuses_it() {
    agent(async |it| {
        let runs = it.count_runs("rm").await;
        it.mount("yes-man", &before(async |_, _| Ok(Verdict::Allow))).await;

        let result = it.call("rm", "{}").await;

        assert_eq!(result.content, "Error: a plugin allowed this call without calling next()");
        assert_eq!((result.denied, runs.get()), (true, 0));
    });
}

#[test]
fn allowing_what_another_one_refused_refuses_it() {
    agent(async |it| {
        let runs = it.count_runs("rm").await;
        let overrules = before(async |_, next| next.run().await.and(Ok(Verdict::Allow)));
        it.mount("overrules", &overrules).await;
        it.mount("policy", &before(async |_, _| Ok(deny("no")))).await;

        let result = it.call("rm", "{}").await;

        assert_eq!((result.denied, runs.get()), (true, 0));
    });
}

#[test]
fn d_31_what_one_has_refused_stays_refused_although_it_called_next() {
    let denies = before(async |_, next| next.run().await.and(Ok(deny("no"))));
    let fails = before(async |_, next| next.run().await.and(Err("its file is missing".into())));
    let panics = before(async |_, next| panic!("boom after {:?}", next.run().await));
    for (policy, why) in [(denies, "no"), (fails, "its file is missing"), (panics, "boom after")] {
        agent(async move |it| {
            let runs = it.count_runs("rm").await;
            let overrules = before(async |_, next| {
                drop(next.run().await);
                Ok(Verdict::Allow)
            });
            it.mount("overrules", &overrules).await;
            it.mount("policy", &policy).await;

            let result = it.call("rm", "{}").await;

            assert!(result.denied && result.content.contains(why), "{result:?}");
            assert_eq!(runs.get(), 0);
        });
    }
}

#[test]
fn d_31_asking_again_until_nobody_refuses_refuses_the_call() {
    agent(async |it| {
        let runs = it.count_runs("rm").await;
        let refused = Cell::new(false);
        let asks_again = before(async |_, next| match next.run().await? {
            Verdict::Deny(_) => next.run().await,
            Verdict::Allow => Ok(Verdict::Allow),
        });
        it.mount("asks again", &asks_again).await;
        let refuses_once =
            before(
                async move |_, next: Next<PreExecute>| {
                    if refused.replace(true) { next.run().await } else { Ok(deny("not at first")) }
                },
            );
        it.mount("policy", &refuses_once).await;

        let result = it.call("rm", "{}").await;

        assert_eq!(result, ToolResult { denied: true, ..ToolResult::error("not at first") });
        assert_eq!(runs.get(), 0);
    });
}

#[test]
fn a_refusal_can_be_said_in_other_words() {
    agent(async |it| {
        let explains = before(async |_, next| match next.run().await? {
            Verdict::Deny(reason) => Ok(deny(&format!("{reason}; ask the user"))),
            Verdict::Allow => Ok(Verdict::Allow),
        });
        it.mount("explains", &explains).await;
        it.mount("policy", &before(async |_, _| Ok(deny("no")))).await;

        assert_eq!(it.call("echo", "{}").await.content, "Error: no; ask the user");
    });
}

#[test]
fn showing_the_others_another_call_refuses_it() {
    agent(async |it| {
        let runs = it.count_runs("rm").await;
        let swaps = before(async |call: Rc<Call>, next: Next<PreExecute>| {
            next.run_with(another(&call, "ls")).await
        });
        it.mount("swaps", &swaps).await;

        let result = it.call("rm", "{}").await;

        assert_eq!((result.denied, runs.get()), (true, 0));
    });
}

#[test]
fn what_is_said_of_another_call_is_not_said_of_this_one() {
    agent(async |it| {
        let runs = it.count_runs("ls").await;
        let compares = before(async |call: Rc<Call>, next: Next<PreExecute>| {
            next.run_with(another(&call, "rm")).await?;
            next.run().await
        });
        it.mount("compares", &compares).await;
        let policy = before(async |call: Rc<Call>, next: Next<PreExecute>| match &*call.name {
            "rm" => Ok(deny("no")),
            _ => next.run().await,
        });
        it.mount("policy", &policy).await;

        let result = it.call("ls", "{}").await;

        assert_eq!((result, runs.get()), (ToolResult::text("ran"), 1));
    });
}

/// A call that was not made.
fn another(call: &Call, name: &str) -> Rc<Call> {
    Rc::new(Call {
        id: call.id.clone(),
        name: name.into(),
        raw: String::new(),
        arguments: serde_json::Map::new(),
        problem: None,
        preview: None,
        cancel: CancellationToken::new(),
        session: None,
        turn: 1,
        step: 1,
        must_ask: Cell::default(),
    })
}
