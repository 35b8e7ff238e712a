//! Plugins that mount plugins.

use serde_json::{Value, json};

use nano_cordis::cordis::{Context, Error, Mount, PluginDef, State, What};

use crate::support::{Kept, Ping, Test, define, give, hear, kernel, rest};

#[test]
fn k_089_disposing_a_plugin_disposes_everything_below_it() {
    kernel(async |test| {
        let (ctx, top) = test.host("top").await;
        let (inner, middle) = nest(&ctx, "middle").await;
        let (innermost, bottom) = nest(&inner, "bottom").await;
        for ctx in [&ctx, &inner, &innermost] {
            hear(ctx, &test.journal, &ctx.path()).unwrap();
        }
        test.root.emit(&Ping);
        let heard_before = test.journal.take();

        top.dispose().await;
        let states = [top.state(), middle.state(), bottom.state()];
        test.root.emit(&Ping);

        assert_eq!(heard_before, ["top", "top > middle", "top > middle > bottom"]);
        assert_eq!(states, [State::Disposed; 3]);
        assert!(test.journal.take().is_empty());
    });
}

/// It is a consumer first: it stops before anything of its parent is undone.
#[test]
fn k_089_a_child_that_uses_its_parents_service_stops_first() {
    kernel(async |test| {
        let (ctx, parent) = test.host("parent").await;
        test.probe("child").needs("x").cleanup_delay(20).mount(&ctx);
        give(&ctx, "x", "value").unwrap();
        ctx.effect(|| test.journal.line("parent's cleanup")).unwrap();
        rest().await;

        parent.dispose().await;

        let expected = ["child start", "child stopping", "child stop", "parent's cleanup"];
        assert_eq!(test.journal.take(), expected);
    });
}

#[test]
fn k_090_a_parent_may_dispose_its_child_in_its_body() {
    kernel(async |test| {
        let child = test.probe("child").def();
        let parent = test.mount(&define("parent", [], async move |ctx| {
            let child = ctx.plugin(&child, Value::Null)?;
            child.ready().await?;
            child.dispose().await;
            Ok(())
        }));
        rest().await;

        assert_eq!(parent.state(), State::Active);
        assert_eq!(test.journal.take(), ["child start", "child stop"]);
    });
}

#[test]
fn k_091_a_child_that_fails_does_not_fail_its_parent() {
    kernel(async |test| {
        let (ctx, parent) = test.host("parent").await;
        let child = test.probe("child").fails("boom").mount(&ctx);
        rest().await;

        assert_eq!((parent.state(), child.state()), (State::Active, State::Failed));
        assert_eq!(test.reports.take_one().plugin, "parent > child");
    });
}

#[test]
fn k_091_unless_the_parent_waits_for_it_and_gives_up() {
    kernel(async |test| {
        let child = test.probe("child").fails("boom").def();
        let (children, journal) = (Kept::default(), test.journal.clone());
        let keeping = children.clone();
        let parent = test.mount(&define("parent", [], async move |ctx| {
            ctx.effect(|| journal.line("parent unwound"))?;
            let child = ctx.plugin(&child, Value::Null)?;
            keeping.keep(child.clone());
            child.ready().await?;
            Ok(())
        }));
        rest().await;

        assert_eq!((parent.state(), children.last().state()), (State::Failed, State::Disposed));
        assert_eq!(test.journal.take(), ["child start", "child stop", "parent unwound"]);
        let reports = test.reports.take();
        let plugins: Vec<_> = reports.iter().map(|it| it.plugin.as_str()).collect();
        assert_eq!(plugins, ["parent > child", "parent"]);
        assert!(reports.iter().all(|it| matches!(it.what, What::BodyFailed)));
    });
}

#[test]
fn k_092_two_mounts_of_one_plugin_live_separately() {
    kernel(async |test| {
        let def = test.probe("p").def();
        let first = test.root.plugin(&def, json!({ "n": 1 })).unwrap();
        let second = test.root.plugin(&def, json!({ "n": 2 })).unwrap();
        rest().await;

        first.dispose().await;

        assert_eq!((first.state(), second.state()), (State::Disposed, State::Active));
        assert_eq!(test.journal.take(), ["p start", "p start", "p stop"]);
    });
}

#[test]
fn k_093_a_plugin_that_does_not_run_mounts_nothing() {
    kernel(async |test| {
        for ctx in idle_contexts(&test).await {
            let before = test.root.fibers().len();

            let outcome = ctx.plugin(&test.probe("child").def(), Value::Null);
            rest().await;

            assert!(
                matches!(outcome, Err(Error::Inactive { .. })),
                "{} accepted a child",
                ctx.path()
            );
            assert_eq!(test.root.fibers().len(), before);
        }
        assert!(test.journal.take().is_empty());
    });
}

/// The contexts of a plugin that waits, of one that failed, and of one that is gone.
async fn idle_contexts(test: &Test) -> [Context; 3] {
    let (gone, provider) = test.host("gone").await;
    give(&gone, "x", "value").expect("it runs");
    let (waiting, failed) = (Kept::default(), Kept::default());
    test.mount(&define("waiting", ["x"], waiting.context()));
    let keeping = failed.clone();
    test.mount(&define("failed", [], async move |ctx| {
        keeping.keep(ctx);
        Err("boom".into())
    }));
    rest().await;
    provider.dispose().await;
    test.reports.take_one();
    [waiting.last(), failed.last(), gone]
}

/// A running child, and its context.
async fn nest(parent: &Context, name: &str) -> (Context, Mount) {
    let kept = Kept::default();
    let mount = parent.plugin(&define(name, [], kept.context()), Value::Null).expect("it runs");
    mount.ready().await.expect("its body cannot fail");
    (kept.last(), mount)
}

/// It waits for nothing, so nothing else would ever get a turn.
#[test]
fn a_plugin_that_restarts_itself_for_ever_leaves_time_for_others() {
    kernel(async |test| {
        let (host, _) = test.host("host").await;
        let given = Kept::default();
        given.keep(give(&host, "x", "value").unwrap());
        let restless = test.mount(&define("restless", ["x"], async move |_| {
            drop(given.last().call());
            given.keep(give(&host, "x", "again")?);
            Ok(())
        }));
        let other = test.mount(&define("other", [], async |_| Ok(())));

        let state = other.ready().await.unwrap();
        restless.dispose().await;

        assert_eq!((state, restless.state()), (State::Active, State::Disposed));
    });
}

#[test]
fn plugins_that_mount_each_other_for_ever_leave_time_for_others() {
    kernel(async |test| {
        let (host, parent) = test.host("host").await;
        let own = Kept::<PluginDef>::default();
        let next = own.clone();
        own.keep(define("again", [], async move |_| {
            drop(host.plugin(&next.last(), Value::Null));
            Ok(())
        }));
        test.mount(&own.last()).ready().await.unwrap();

        parent.dispose().await;

        assert_eq!(parent.state(), State::Disposed);
    });
}
