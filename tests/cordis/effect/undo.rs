//! Undoing by hand.

use nano_cordis::cordis::{BoxError, Error, Panic, Undo, What};

use crate::support::{Gate, Kept, at_once, define, give, kernel, pass, poll_once, rest};

#[test]
fn k_005_an_effect_undone_by_hand_is_not_undone_again() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let undo = ctx.effect(|| test.journal.line("E1")).unwrap();

        undo.call().await.unwrap();
        plugin.dispose().await;

        assert_eq!(test.journal.take(), ["E1"]);
    });
}

#[test]
fn k_006_an_undo_is_unfinished_while_its_cleanup_runs() {
    kernel(async |test| {
        let (ctx, _plugin) = test.host("p").await;
        let gate = Gate::shut();
        let undo = ctx.effect(|| test.journal.gated("E", &gate)).unwrap();

        let mut undoing = Box::pin(undo.call());
        rest().await;
        let done_early = poll_once(&mut undoing).await.is_some();
        gate.open();
        undoing.await.unwrap();

        assert!(!done_early);
        assert_eq!(test.journal.take(), ["E begin", "E end"]);
    });
}

#[test]
fn k_007_a_second_undo_returns_at_once_while_the_first_is_running() {
    kernel(async |test| {
        let (ctx, _plugin) = test.host("p").await;
        let gate = Gate::shut();
        let undo = ctx.effect(|| test.journal.gated("E", &gate)).unwrap();
        drop(undo.call());
        rest().await;

        let second = at_once(undo.call()).await;
        rest().await;

        assert!(second);
        assert_eq!(test.journal.take(), ["E begin"]);
    });
}

#[test]
fn k_008_undoing_what_is_undone_does_nothing() {
    kernel(async |test| {
        let (ctx, _plugin) = test.host("p").await;
        let undo = ctx.effect(|| test.journal.line("E")).unwrap();
        undo.call().await.unwrap();

        let second = at_once(undo.call()).await;

        assert!(second);
        assert_eq!(test.journal.take(), ["E"]);
    });
}

#[test]
fn k_008_an_undo_of_an_earlier_load_finds_nothing() {
    kernel(async |test| {
        let (host, _) = test.host("host").await;
        let given = give(&host, "x", "value").unwrap();
        let undos = Kept::default();
        let (keeping, journal) = (undos.clone(), test.journal.clone());
        let plugin = test.mount(&define("p", ["x"], async move |ctx| {
            keeping.keep(ctx.effect(|| journal.line("E"))?);
            Ok(())
        }));
        rest().await;
        let of_first_load = undos.last();
        given.call().await.unwrap();
        give(&host, "x", "again").unwrap();
        rest().await;
        test.journal.take();

        of_first_load.call().await.unwrap();

        assert!(test.journal.take().is_empty());
        assert_eq!(plugin.effect_count(), 1);
    });
}

#[test]
fn k_009_a_cleanup_may_await_its_own_undo() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let own = Kept::<Undo>::default();
        let (kept, journal) = (own.clone(), test.journal.clone());
        let undo = ctx.effect(move || {
            async move || {
                let outcome = kept.last().call().await;
                journal.push("cleaned");
                outcome.map(drop)
            }
        });
        own.keep(undo.unwrap());

        own.last().call().await.unwrap();
        plugin.dispose().await;

        assert_eq!(test.journal.take(), ["cleaned"]);
    });
}

#[test]
fn k_010_an_unload_waits_for_an_undo_in_flight() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let gate = Gate::shut();
        let undo = ctx.effect(|| test.journal.gated("E", &gate)).unwrap();
        drop(undo.call());
        rest().await;

        let mut disposing = Box::pin(plugin.dispose().into_future());
        rest().await;
        let done_early = poll_once(&mut disposing).await.is_some();
        gate.open();
        disposing.await;

        assert!(!done_early);
        assert_eq!(test.journal.count("E end"), 1);
    });
}

#[test]
fn k_010_also_for_one_that_was_called_twice() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let gate = Gate::shut();
        let undo = ctx.effect(|| test.journal.gated("E", &gate)).unwrap();
        drop(undo.call());
        drop(undo.call());
        rest().await;

        let mut disposing = Box::pin(plugin.dispose().into_future());
        rest().await;
        let done_early = poll_once(&mut disposing).await.is_some();
        gate.open();
        disposing.await;

        assert!(!done_early);
        assert_eq!(test.journal.take(), ["E begin", "E end"]);
    });
}

#[test]
fn k_011_an_undo_in_flight_is_not_run_again_by_the_unload() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let gate = Gate::shut();
        let undo = ctx.effect(|| test.journal.gated("E", &gate)).unwrap();
        drop(undo.call());
        rest().await;

        let disposing = plugin.dispose();
        gate.open();
        disposing.await;

        assert_eq!(test.journal.take(), ["E begin", "E end"]);
    });
}

#[test]
fn k_015_a_cleanup_that_fails_by_hand_is_its_callers_to_handle() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let journal = test.journal.clone();
        let undo = ctx.effect(move || {
            move || {
                journal.push("tried");
                Err::<(), _>("boom")
            }
        });

        let outcome = undo.unwrap().call().await;
        plugin.dispose().await;

        let Err(Error::Cleanup { plugin, source }) = outcome else {
            panic!("an error of the cleanup was expected, not {outcome:?}")
        };
        assert_eq!((plugin.as_str(), source.to_string().as_str()), ("p", "boom"));
        assert_eq!(test.journal.take(), ["tried"]);
    });
}

#[test]
fn k_015_a_panic_is_such_a_failure() {
    kernel(async |test| {
        let (ctx, _plugin) = test.host("p").await;
        let undo = ctx.effect(|| async || -> Result<(), BoxError> { panic!("boom") }).unwrap();

        let outcome = undo.call().await;

        let Err(Error::Cleanup { source, .. }) = outcome else { panic!("not {outcome:?}") };
        assert_eq!(source.downcast_ref::<Panic>().unwrap().message, "boom");
    });
}

#[test]
fn k_015_a_failure_that_its_caller_does_not_wait_for_is_one_report() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let at_once = ctx.effect(|| || Err::<(), _>("at once")).unwrap();
        let slow = async || {
            rest().await;
            Err::<(), _>("later")
        };
        let later = ctx.effect(move || slow).unwrap();

        drop(at_once.call());
        drop(later.call());
        pass(10).await;
        plugin.dispose().await;

        let reports = test.reports.take();
        assert!(reports.iter().all(|it| it.plugin == "p" && it.what == What::CleanupFailed));
        let causes: Vec<_> =
            reports.iter().map(|it| it.error.as_ref().unwrap().to_string()).collect();
        assert_eq!(causes, ["at once", "later"]);
    });
}

/// The unload that meets it waits, and leaves the failure to the caller.
#[test]
fn k_015_a_failure_during_an_unload_is_its_callers_too() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let gate = Gate::shut();
        let blocked = gate.clone();
        let cleanup = async move || {
            blocked.pass().await;
            Err::<(), _>("boom")
        };
        let undoing = ctx.effect(move || cleanup).unwrap().call();

        let disposing = plugin.dispose();
        rest().await;
        gate.open();
        disposing.await;

        assert!(matches!(undoing.await, Err(Error::Cleanup { .. })));
    });
}

#[test]
fn k_026_dropping_the_handle_undoes_nothing() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;

        drop(ctx.effect(|| test.journal.line("E")).unwrap());
        pass(60_000).await;

        assert_eq!(plugin.effect_count(), 1);
        assert!(test.journal.take().is_empty());
    });
}

#[test]
fn k_027_an_undo_whose_future_is_dropped_still_ends() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let gate = Gate::shut();
        let undo = ctx.effect(|| test.journal.gated("E", &gate)).unwrap();

        let mut undoing = Box::pin(undo.call());
        poll_once(&mut undoing).await;
        drop(undoing);
        gate.open();
        rest().await;

        assert_eq!(test.journal.take(), ["E begin", "E end"]);
        assert_eq!(plugin.effect_count(), 0);
    });
}

#[test]
fn k_027_an_undo_acts_even_if_it_is_never_polled() {
    kernel(async |test| {
        let (ctx, _plugin) = test.host("p").await;
        let undo = ctx.effect(|| test.journal.line("E")).unwrap();

        drop(undo.call());

        assert_eq!(test.journal.take(), ["E"]);
    });
}
