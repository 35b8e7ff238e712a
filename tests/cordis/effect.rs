//! What a plugin registers is undone with it: in reverse, one at a time, exactly once.

use std::rc::Rc;

use serde_json::Value;

use nano_cordis::cordis::{BoxError, Cleanup, Context, Mount, NoConfig, State, What, plugin};

use crate::support::{
    Gate, Journal, Kept, Ping, Test, define, get, give, hear, kernel, listeners, pass, poll_once,
    read, rest,
};

mod admission;
mod undo;

#[test]
fn k_001_cleanups_run_in_reverse_order() {
    kernel(async |test| {
        let journal = test.journal.clone();
        let plugin = test.mount(&define("p", [], async move |ctx| {
            for line in ["E1", "E2", "E3"] {
                ctx.effect(|| journal.line(line))?;
            }
            Ok(())
        }));
        plugin.ready().await.unwrap();

        plugin.dispose().await;

        assert_eq!(test.journal.take(), ["E3", "E2", "E1"]);
    });
}

/// Between any two registrations a custom effect notes what is still there when its turn comes.
#[test]
fn k_002_every_kind_of_registration_is_undone_from_one_list() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let child = Kept::default();
        let note = || {
            let (ctx, child, journal) = (ctx.clone(), child.clone(), test.journal.clone());
            ctx.clone().effect(move || move || journal.push(what_is_left(&ctx, &child))).unwrap()
        };
        note();
        ctx.on(|_: &Context, _: &Ping| ()).unwrap();
        note();
        give(&ctx, "x", "value").unwrap();
        note();
        child.keep(ctx.plugin(&define("child", [], async |_| Ok(())), Value::Null).unwrap());
        note();
        rest().await;

        plugin.dispose().await;

        let expected = ["listener service child", "listener service", "listener", ""];
        assert_eq!(test.journal.take(), expected);
    });
}

fn what_is_left(ctx: &Context, child: &Kept<Mount>) -> String {
    let listener = (listeners(ctx) == 1).then_some("listener");
    let service = read(ctx, "x").is_ok().then_some("service");
    let child = (child.last().state() == State::Active).then_some("child");
    [listener, service, child].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[test]
fn k_003_a_cleanup_starts_only_when_the_one_before_it_has_ended() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let gate = Gate::shut();
        ctx.effect(|| test.journal.line("E2")).unwrap();
        ctx.effect(|| test.journal.gated("E3", &gate)).unwrap();

        let mut disposing = Box::pin(plugin.dispose().into_future());
        pass(50).await;
        let before = test.journal.lines();
        gate.open();
        disposing.as_mut().await;

        assert_eq!(before, ["E3 begin"]);
        assert_eq!(test.journal.take(), ["E3 begin", "E3 end", "E2"]);
    });
}

#[test]
fn k_004_the_cleanup_that_a_body_returns_runs_first() {
    kernel(async |test| {
        let journal = test.journal.clone();
        let returning = plugin(move |ctx: Context, _: NoConfig| {
            let journal = journal.clone();
            async move {
                ctx.effect(|| journal.line("E1"))?;
                Ok::<_, BoxError>(journal.line("returned"))
            }
        });
        let plugin = test.mount(&returning.named("p"));
        plugin.ready().await.unwrap();

        plugin.dispose().await;

        assert_eq!(test.journal.take(), ["returned", "E1"]);
    });
}

#[test]
fn k_004_a_returned_cleanup_may_be_asynchronous() {
    kernel(async |test| {
        let journal = test.journal.clone();
        let returning = plugin(move |ctx: Context, _: NoConfig| {
            let journal = journal.clone();
            async move {
                ctx.effect(|| journal.line("E1"))?;
                Ok::<_, BoxError>(async move || {
                    rest().await;
                    journal.push("returned");
                })
            }
        });
        let plugin = test.mount(&returning.named("p"));
        plugin.ready().await.unwrap();

        plugin.dispose().await;

        assert_eq!(test.journal.take(), ["returned", "E1"]);
    });
}

#[test]
fn k_012_an_undo_in_flight_holds_up_what_was_registered_before_it() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let gate = Gate::shut();
        ctx.effect(|| test.journal.line("E1")).unwrap();
        let second = ctx.effect(|| test.journal.gated("E2", &gate)).unwrap();
        ctx.effect(|| test.journal.line("E3")).unwrap();

        drop(second.call());
        rest().await;
        let mut disposing = Box::pin(plugin.dispose().into_future());
        rest().await;
        let blocked = test.journal.lines();
        let done_early = poll_once(&mut disposing).await.is_some();
        gate.open();
        disposing.await;

        assert_eq!(blocked, ["E2 begin", "E3"]);
        assert!(!done_early);
        assert_eq!(test.journal.take(), ["E2 begin", "E3", "E2 end", "E1"]);
    });
}

#[test]
fn k_013_a_cleanup_that_fails_is_reported_once_and_stops_nothing() {
    kernel(async |test| {
        let failing = || Cleanup::sync(|| Err("boom".into()));

        let lines = dispose_with_a_bad_second_cleanup(&test, failing).await;

        assert_eq!(lines, ["E3", "E1"]);
        let report = test.reports.take_one();
        assert_eq!(report.plugin, "p");
        assert!(matches!(report.what, What::CleanupFailed), "{report}");
        assert!(report.to_string().contains("boom"), "{report}");
    });
}

#[test]
fn k_013_so_is_an_asynchronous_cleanup_that_fails() {
    kernel(async |test| {
        let failing = || {
            Cleanup::future(async || {
                rest().await;
                Err("boom".into())
            })
        };

        let lines = dispose_with_a_bad_second_cleanup(&test, failing).await;

        assert_eq!(lines, ["E3", "E1"]);
        let report = test.reports.take_one();
        assert_eq!(report.plugin, "p");
        assert!(matches!(report.what, What::CleanupFailed), "{report}");
    });
}

#[test]
fn k_014_a_cleanup_that_panics_is_a_cleanup_that_fails() {
    kernel(async |test| {
        let panicking = || Cleanup::sync(|| panic!("boom"));

        let lines = dispose_with_a_bad_second_cleanup(&test, panicking).await;

        assert_eq!(lines, ["E3", "E1"]);
        let report = test.reports.take_one();
        assert_eq!(report.plugin, "p");
        assert!(matches!(report.what, What::CleanupFailed), "{report}");
        assert!(report.to_string().contains("boom"), "{report}");
    });
}

/// Registers E1, a cleanup that goes wrong, and E3; disposes; and returns what was written.
async fn dispose_with_a_bad_second_cleanup(
    test: &Test,
    bad: impl FnOnce() -> Cleanup,
) -> Vec<String> {
    let (ctx, plugin) = test.host("p").await;
    ctx.effect(|| test.journal.line("E1")).unwrap();
    ctx.effect(bad).unwrap();
    ctx.effect(|| test.journal.line("E3")).unwrap();

    plugin.dispose().await;

    assert_eq!(plugin.state(), State::Disposed);
    test.journal.take()
}

#[test]
fn k_024_a_failed_body_is_unwound_before_the_failure_is_seen() {
    kernel(async |test| {
        let journal = test.journal.clone();
        let plugin = test.mount(&define("p", [], async move |ctx| {
            ctx.effect(|| journal.line("E1"))?;
            ctx.effect(|| journal.line("E2"))?;
            Err("boom".into())
        }));
        let journal = test.journal.clone();
        plugin.observe(move |state| journal.push(state.to_string()));

        rest().await;

        let expected = ["LOADING", "UNLOADING", "E2", "E1", "FAILED"];
        assert_eq!(test.journal.take(), expected);
        test.reports.take_one();
    });
}

#[test]
fn k_025_what_an_event_handler_registers_is_undone_too() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let journal = test.journal.clone();
        ctx.on(move |ctx: &Context, _: &Ping| ctx.effect(|| journal.line("late")).map(drop))
            .unwrap();
        test.root.emit(&Ping);

        plugin.dispose().await;

        assert_eq!(test.journal.take(), ["late"]);
    });
}

#[test]
fn k_028_a_disposed_plugin_keeps_nothing_alive() {
    kernel(async |test| {
        let token = Rc::new(());
        let weak = Rc::downgrade(&token);
        let def = define("p", [], async move |ctx| {
            let (heard, cleaned) = (token.clone(), token.clone());
            ctx.on(move |_: &Context, _: &Ping| drop(heard.clone()))?;
            ctx.effect(|| move || drop(cleaned))?;
            let spawned = token.clone();
            ctx.spawn("waits", async move |_| {
                std::future::pending::<()>().await;
                drop(spawned);
            })?;
            ctx.provide_named("x", token.clone())?;
            Ok(())
        });
        let plugin = test.mount(&def);
        plugin.ready().await.unwrap();
        drop(def);

        plugin.dispose().await;
        rest().await;

        assert_eq!(weak.strong_count(), 0);
    });
}

/// No borrow is open when something of a plugin is dropped.
#[test]
fn k_028_what_is_dropped_may_use_the_kernel() {
    kernel(async |test| {
        let (root, journal) = (test.root.clone(), test.journal.clone());
        let nosy = move |what| Nosy { ctx: root.clone(), journal: journal.clone(), what };
        let body = nosy("body");
        let def = define("p", [], async move |ctx| {
            let body = &body;
            let (heard, cleanup, waits) = (nosy("listener"), nosy("cleanup"), nosy("task"));
            ctx.on(move |_: &Context, _: &Ping| drop(heard.ctx.path()))?;
            ctx.effect(|| move || drop(cleanup))?;
            ctx.spawn("waits", async move |_| {
                std::future::pending::<()>().await;
                drop(waits);
            })?;
            ctx.provide_named("nosy", Rc::new(nosy("provided")))?;
            body.journal.push("started");
            Ok(())
        });
        let plugin = test.mount(&def);
        plugin.ready().await.unwrap();
        drop(def);

        plugin.dispose().await;
        rest().await;

        let mut lines = test.journal.take();
        lines.sort();
        assert_eq!(lines, ["body", "cleanup", "listener", "provided", "started", "task"]);
    });
}

/// Uses the kernel in every way when it is dropped.
struct Nosy {
    ctx: Context,
    journal: Journal,
    what: &'static str,
}

impl Drop for Nosy {
    fn drop(&mut self) {
        self.ctx.emit(&Ping);
        self.ctx.fibers();
        self.ctx.service_names();
        get(&self.ctx, "nosy");
        let given = give(&self.ctx, self.what, "dropped");
        let undone = given.map(|undo| drop(undo.call()));
        self.journal.push(undone.map_or("refused", |()| self.what));
    }
}

#[test]
fn k_030_a_child_that_is_disposed_leaves_its_parents_list() {
    kernel(async |test| {
        let (ctx, parent) = test.host("parent").await;
        hear(&ctx, &test.journal, "heard").unwrap();
        let child = test.probe("child").mount(&ctx);
        rest().await;
        let before = parent.effect_count();

        child.dispose().await;

        assert_eq!(parent.effect_count(), before - 1);
        assert_eq!(parent.state(), State::Active);
    });
}
