//! The ways a plugin ends.

use std::future::Future;
use std::sync::Arc;
use std::task;

use nano_cordis::cordis::{Context, State, What};

use crate::support::{Gate, Kept, at_once, define, give, kernel, pass, poll_once, rest, states};

#[test]
fn k_081_a_waiting_plugin_that_is_disposed_never_starts() {
    kernel(async |test| {
        let plugin = test.probe("p").needs("x").mount(&test.root);
        rest().await;

        plugin.dispose().await;
        test.probe("provider").gives("x").mount(&test.root);
        rest().await;

        assert_eq!(plugin.state(), State::Disposed);
        assert_eq!(test.journal.take(), ["provider start"]);
    });
}

#[test]
fn k_082_a_failed_plugin_can_be_disposed() {
    kernel(async |test| {
        let plugin = test.probe("p").fails("boom").mount(&test.root);
        rest().await;

        plugin.dispose().await;

        assert_eq!(plugin.state(), State::Disposed);
        assert!(test.root.fibers().is_empty());
        test.reports.take_one();
    });
}

#[test]
fn k_083_disposing_twice_does_nothing() {
    kernel(async |test| {
        let plugin = test.probe("p").mount(&test.root);
        rest().await;
        plugin.dispose().await;
        test.journal.take();

        let second = at_once(plugin.dispose()).await;

        assert!(second);
        assert_eq!(plugin.state(), State::Disposed);
        assert!(test.journal.take().is_empty());
    });
}

#[test]
fn k_083_a_dispose_during_an_unload_is_the_end() {
    kernel(async |test| {
        let gate = Gate::shut();
        let (host, _) = test.host("host").await;
        let given = give(&host, "x", "value").unwrap();
        let plugin = test.probe("p").needs("x").cleanup_gate(&gate).mount(&test.root);
        rest().await;
        drop(given.call());
        give(&host, "x", "again").unwrap();
        rest().await;
        let seen = states(&plugin);

        let disposing = plugin.dispose();
        gate.open();
        disposing.await;

        assert_eq!(seen.take(), ["UNLOADING", "DISPOSED"]);
        assert_eq!(test.journal.count("p start"), 1);
    });
}

#[test]
fn k_098_a_dispose_whose_future_is_dropped_still_ends() {
    kernel(async |test| {
        let plugin = test.probe("p").cleanup_delay(50).mount(&test.root);
        rest().await;

        let mut disposing = Box::pin(plugin.dispose().into_future());
        let done_early = poll_once(&mut disposing).await.is_some();
        drop(disposing);
        pass(100).await;

        assert!(!done_early);
        assert_eq!(plugin.state(), State::Disposed);
        assert_eq!(test.journal.take(), ["p start", "p stopping", "p stop"]);
    });
}

#[test]
fn k_217_a_body_learns_that_it_is_to_stop() {
    kernel(async |test| {
        let journal = test.journal.clone();
        let plugin = test.mount(&define("p", [], async move |ctx| {
            ctx.stopping().await;
            journal.push("told to stop");
            Ok(())
        }));
        pass(1_000).await;
        let before = test.journal.take();

        plugin.dispose().await;

        assert!(before.is_empty());
        assert_eq!(test.journal.take(), ["told to stop"]);
    });
}

#[test]
fn k_217_also_when_its_service_vanishes() {
    kernel(async |test| {
        let (host, _) = test.host("host").await;
        let given = give(&host, "x", "value").unwrap();
        let journal = test.journal.clone();
        let plugin = test.mount(&define("p", ["x"], async move |ctx| {
            ctx.stopping().await;
            journal.push("told to stop");
            Ok(())
        }));
        rest().await;

        given.call().await.unwrap();

        assert_eq!(test.journal.take(), ["told to stop"]);
        assert_eq!(plugin.state(), State::Pending);
    });
}

#[test]
fn k_217_a_task_learns_it_before_its_turn_comes() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let gate = Gate::shut();
        let journal = test.journal.clone();
        let task = async move |ctx: Context| {
            ctx.stopping().await;
            journal.push("told to stop");
        };
        ctx.spawn("listens", task).unwrap();
        ctx.effect(|| test.journal.gated("E", &gate)).unwrap();
        rest().await;

        let disposing = plugin.dispose();
        rest().await;
        let while_unloading = test.journal.lines();
        gate.open();
        disposing.await;

        assert_eq!(while_unloading, ["E begin", "told to stop"]);
    });
}

#[test]
fn k_217_each_run_has_its_own_signal() {
    kernel(async |test| {
        let (host, _) = test.host("host").await;
        let given = give(&host, "x", "value").unwrap();
        let kept = Kept::default();
        test.mount(&define("p", ["x"], kept.context()));
        rest().await;
        let first_run = kept.last();
        let while_active = at_once(first_run.stopping()).await;

        given.call().await.unwrap();
        give(&host, "x", "again").unwrap();
        rest().await;

        assert!(!while_active);
        assert!(at_once(first_run.stopping()).await);
        assert!(!at_once(kept.last().stopping()).await);
    });
}

#[test]
fn k_217_a_future_outlives_the_context_it_came_from() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let mut stopping = Box::pin(ctx.stopping());
        drop(ctx);

        plugin.dispose().await;

        assert!(poll_once(&mut stopping).await.is_some());
    });
}

/// A plugin may live long, and see many who wait for its end and leave before.
#[test]
fn k_217_who_does_not_wait_any_more_is_forgotten() {
    kernel(async |test| {
        let (ctx, _) = test.host("p").await;
        let waker = Arc::new(Idle);

        for _ in 0..3 {
            let mut stopping = Box::pin(ctx.stopping());
            let waker = waker.clone().into();
            assert!(stopping.as_mut().poll(&mut task::Context::from_waker(&waker)).is_pending());
        }

        assert_eq!(Arc::strong_count(&waker), 1);
    });
}

struct Idle;

impl task::Wake for Idle {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn k_218_a_long_wait_is_reported_by_name() {
    kernel(async |test| {
        let gate = Gate::shut();
        let provider = test.probe("provider").gives("x").mount(&test.root);
        test.probe("consumer").needs("x").cleanup_gate(&gate).mount(&test.root);
        rest().await;

        let disposing = provider.dispose();
        pass(4_000).await;
        let early = test.reports.take();
        pass(2_000).await;
        let late = test.reports.take();
        gate.open();
        disposing.await;

        assert!(early.is_empty());
        let waits: Vec<_> = late.iter().filter(|it| it.plugin == "provider").collect();
        let [report] = waits.as_slice() else { panic!("one report was expected, not {late:#?}") };
        let What::LongWait { on, seconds } = &report.what else { panic!("not {report}") };
        assert!(on.contains("consumer"), "{report}");
        assert_eq!(*seconds, 5);
    });
}

#[test]
fn k_218_a_parent_that_waits_for_a_child_is_the_one_that_waits() {
    kernel(async |test| {
        let gate = Gate::shut();
        let (ctx, parent) = test.host("parent").await;
        test.probe("child").cleanup_gate(&gate).mount(&ctx);
        rest().await;

        let disposing = parent.dispose();
        pass(60_000).await;
        let report = test.reports.take_one();
        gate.open();
        disposing.await;

        assert_eq!(report.plugin, "parent");
        let What::LongWait { on, .. } = &report.what else { panic!("not {report}") };
        assert!(on.contains("parent > child"), "{report}");
    });
}

/// What was long is told once; what ends in time is not told at all.
#[test]
fn k_218_a_wait_that_ends_in_time_is_not_reported() {
    kernel(async |test| {
        let provider = test.probe("provider").gives("x").mount(&test.root);
        test.probe("consumer").needs("x").cleanup_delay(4_000).mount(&test.root);
        rest().await;

        provider.dispose().await;
        pass(60_000).await;

        assert!(test.reports.take().is_empty());
    });
}
