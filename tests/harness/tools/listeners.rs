//! What plugins can do to a call: look, refuse, rewrite the result; and what they cannot.

use std::cell::RefCell;
use std::rc::Rc;

use nano_cordis::cordis::{BoxError, Context, Next, NoConfig, PluginDef, plugin};
use nano_cordis::harness::tools::{
    Call, Finished, Order, PostExecute, PreExecute, ToolResult, Verdict,
};

use crate::agent_loop::rig::{agent, request};

#[test]
fn h_047_a_listener_that_refuses_keeps_the_body_from_running() {
    agent(async |it| {
        let runs = it.count_runs("rm").await;
        it.mount("policy", &before(async |_, _| Ok(deny("not today")))).await;

        let result = it.call("rm", "{}").await;

        assert_eq!(result, ToolResult { denied: true, ..ToolResult::error("not today") });
        assert_eq!(runs.get(), 0);
    });
}

#[test]
fn h_048_a_listener_that_calls_next_lets_the_body_run() {
    agent(async |it| {
        let runs = it.count_runs("rm").await;
        it.mount("watcher", &before(async |_, next| next.run().await)).await;

        let result = it.call("rm", "{}").await;

        assert_eq!((result, runs.get()), (ToolResult::text("ran"), 1));
    });
}

#[test]
fn h_049_after_a_refusal_the_next_listener_is_not_asked() {
    agent(async |it| {
        let asked = Rc::new(RefCell::new(Vec::new()));
        it.mount("first", &before(async |_, _| Ok(deny("no")))).await;
        it.mount("second", &notes_names(&asked)).await;

        it.call("echo", "{}").await;

        assert_eq!(*asked.borrow(), [""; 0]);
    });
}

#[test]
fn h_050_a_listener_rewrites_the_result_that_is_logged() {
    agent(async |it| {
        let shout = after(async |_, next| {
            let result = next.run().await?;
            Ok(ToolResult::text(result.content.to_uppercase()))
        });
        it.mount("shout", &shout).await;
        it.model.calls(&[("a", "echo", r#"{"text":"quiet"}"#)]).says("done");

        it.run("hello").await;

        assert_eq!(it.results(), ["QUIET"]);
    });
}

#[test]
fn h_059_listeners_see_calls_of_tools_that_do_not_exist() {
    agent(async |it| {
        let asked = Rc::new(RefCell::new(Vec::new()));
        it.mount("notes", &notes_names(&asked)).await;

        it.call("nonsense", "{}").await;

        assert_eq!(*asked.borrow(), ["nonsense: unknown tool \"nonsense\"; the tools are: echo"]);
    });
}

#[test]
fn h_060_listeners_see_the_result_of_a_refused_call() {
    agent(async |it| {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let notes = seen.clone();
        it.mount("policy", &before(async |_, _| Ok(deny("no")))).await;
        let watch = after(async move |finished: Rc<Finished>, next: Next<PostExecute>| {
            notes.borrow_mut().push((finished.call.name.clone(), finished.result.denied));
            next.run().await
        });
        it.mount("watch", &watch).await;

        it.call("echo", "{}").await;

        assert_eq!(*seen.borrow(), [("echo".to_owned(), true)]);
    });
}

#[test]
fn a_refusal_stays_one_whatever_becomes_of_its_text() {
    agent(async |it| {
        it.mount("policy", &before(async |_, _| Ok(deny("no")))).await;
        it.mount("mild", &after(async |_, _| Ok(ToolResult::text("never mind")))).await;

        let result = it.call("echo", "{}").await;

        assert_eq!(
            (result.content.as_str(), result.is_error, result.denied),
            ("never mind", false, true)
        );
    });
}

#[test]
fn h_061_a_listener_that_fails_keeps_the_body_from_running() {
    agent(async |it| {
        let runs = it.count_runs("rm").await;
        it.mount("broken", &before(async |_, _| Err("policy file is missing".into()))).await;

        let result = it.call("rm", "{}").await;

        assert!(result.is_error && result.content.contains("policy file is missing"), "{result:?}");
        assert_eq!(runs.get(), 0);
    });
}

#[test]
fn a_listener_that_panics_keeps_the_body_from_running() {
    agent(async |it| {
        let runs = it.count_runs("rm").await;
        it.mount("broken", &before(async |_, _| panic!("boom"))).await;

        let result = it.call("rm", "{}").await;

        assert!(result.is_error && result.content.contains("boom"), "{result:?}");
        assert_eq!(runs.get(), 0);
    });
}

#[test]
fn h_064_listeners_read_the_call_and_cannot_change_it() {
    agent(async |it| {
        let seen = Rc::new(RefCell::new(None));
        let notes = seen.clone();
        let watch = after(async move |finished: Rc<Finished>, next: Next<PostExecute>| {
            let call = &finished.call;
            notes.replace(Some((
                call.id.clone(),
                call.name.clone(),
                call.arguments["text"].clone(),
            )));
            next.run().await
        });
        it.mount("watch", &watch).await;

        it.call("echo", r#"{"text":"x"}"#).await;

        assert_eq!(seen.take(), Some(("call_1".to_owned(), "echo".to_owned(), "x".into())));
    });
}

#[test]
fn a_call_with_a_problem_passes_all_listeners_and_never_runs() {
    agent(async |it| {
        let runs = it.count_runs("rm").await;
        let (asked, finished) = (Rc::new(RefCell::new(Vec::new())), it.count_finished());
        it.mount("notes", &notes_names(&asked)).await;

        let result = it.call("rm", "not json").await;

        assert!(asked.borrow()[0].starts_with("rm: the arguments are not valid JSON"), "{asked:?}");
        assert_eq!(
            (result.is_error, result.denied, runs.get(), finished.get()),
            (true, false, 0, 1)
        );
    });
}

#[test]
fn a_listener_that_fails_on_a_result_keeps_it_from_the_model() {
    agent(async |it| {
        it.mount("broken", &after(async |_, _| Err("cannot mask".into()))).await;

        let result = it.call("echo", r#"{"text":"secret"}"#).await;

        assert!(result.is_error && result.content.contains("cannot mask"), "{result:?}");
        assert!(!result.content.contains("secret"));
    });
}

#[test]
fn a_refused_call_stays_refused_whatever_becomes_of_its_result() {
    agent(async |it| {
        it.mount("no", &before(async |_, _| Ok(deny("not today")))).await;
        it.mount("broken", &after(async |_, _| Err("cannot mask".into()))).await;

        let result = it.call("echo", "{}").await;

        assert!(result.denied && result.content.contains("cannot mask"), "{result:?}");
    });
}

#[test]
fn a_no_that_came_of_the_end_of_the_turn_is_no_refusal() {
    agent(async |it| {
        let asks = before(async |call: Rc<Call>, _| {
            call.cancel.cancelled().await;
            Ok(deny("the user refused"))
        });
        it.mount("asks", &asks).await;
        let request = request("echo", "{}");
        request.cancel.cancel();

        let result = it.tools().execute(request).await;

        assert_eq!(result, ToolResult::aborted());
    });
}

#[test]
fn who_decides_is_asked_before_who_asks() {
    agent(async |it| {
        let order = Rc::new(RefCell::new(Vec::new()));
        for (name, at) in [("asks", Order::ASKING), ("plain", 0), ("decides", Order::DECIDING)] {
            let order = order.clone();
            let notes = plugin(move |ctx: Context, _: NoConfig| {
                let order = order.clone();
                async move {
                    ctx.intercept_at::<PreExecute>(at, async move |_, _, next| {
                        order.borrow_mut().push(name);
                        next.run().await
                    })?;
                    Ok::<(), BoxError>(())
                }
            });
            it.mount(name, &notes).await;
        }

        it.call("echo", "{}").await;

        assert_eq!(*order.borrow(), ["decides", "plain", "asks"]);
    });
}

pub(super) fn deny(reason: &str) -> Verdict {
    Verdict::Deny(reason.to_owned())
}

/// A plugin that listens to `tools/pre-execute`.
pub(super) fn before(
    listen: impl AsyncFn(Rc<Call>, Next<PreExecute>) -> Result<Verdict, BoxError> + 'static,
) -> PluginDef {
    let listen = Rc::new(listen);
    plugin(move |ctx: Context, _: NoConfig| {
        let listen = listen.clone();
        async move {
            ctx.intercept::<PreExecute>(async move |_, call, next| listen(call, next).await)?;
            Ok::<(), BoxError>(())
        }
    })
}

/// A plugin that listens to `tools/post-execute`.
fn after(
    listen: impl AsyncFn(Rc<Finished>, Next<PostExecute>) -> Result<ToolResult, BoxError> + 'static,
) -> PluginDef {
    let listen = Rc::new(listen);
    plugin(move |ctx: Context, _: NoConfig| {
        let listen = listen.clone();
        async move {
            ctx.intercept::<PostExecute>(async move |_, finished, next| {
                listen(finished, next).await
            })?;
            Ok::<(), BoxError>(())
        }
    })
}

/// A plugin that notes the name and the problem of each call.
fn notes_names(notes: &Rc<RefCell<Vec<String>>>) -> PluginDef {
    let notes = notes.clone();
    before(async move |call: Rc<Call>, next: Next<PreExecute>| {
        let problem = call.problem.as_deref().unwrap_or("fine");
        notes.borrow_mut().push(format!("{}: {problem}", call.name));
        next.run().await
    })
}
