//! A plugin may register while it runs, and at no other time.

use std::cell::Cell;
use std::rc::Rc;

use serde_json::Value;

use nano_cordis::cordis::{BoxError, Context, Error, Mount, Panic, State};

use crate::support::{Gate, Journal, Kept, define, give, hear, kernel, listeners, pass, rest};

#[test]
fn k_016_a_setup_that_fails_registers_nothing() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        ctx.effect(|| test.journal.line("E")).unwrap();
        let before = plugin.effect_count();

        let outcome = ctx.effect(|| Err::<fn(), _>("boom"));

        let Err(Error::Setup { plugin: name, source }) = outcome else {
            panic!("a refusal was expected")
        };
        assert_eq!((name.as_str(), source.to_string().as_str()), ("p", "boom"));
        assert_eq!(plugin.effect_count(), before);
    });
}

#[test]
fn k_016_a_setup_that_panics_is_one_that_fails() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;

        let outcome = ctx.effect(|| -> Result<(), BoxError> { panic!("boom") });

        let Err(Error::Setup { source, .. }) = outcome.map(drop) else { panic!("it was accepted") };
        assert_eq!(source.downcast_ref::<Panic>().unwrap().message, "boom");
        assert_eq!((plugin.state(), plugin.effect_count()), (State::Active, 0));
    });
}

#[test]
fn k_017_a_waiting_plugin_registers_nothing() {
    kernel(async |test| {
        let kept = Kept::default();
        let provider = test.probe("provider").gives("x").mount(&test.root);
        let plugin = test.mount(&define("p", ["x"], kept.context()));
        rest().await;
        provider.dispose().await;

        let ran = register_a_witness(&kept.last());

        assert_eq!(plugin.state(), State::Pending);
        assert!(!ran);
        assert_eq!(plugin.effect_count(), 0);
    });
}

#[test]
fn k_018_a_cleanup_of_a_disposed_plugin_registers_nothing() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let (own, journal) = (ctx.clone(), test.journal.clone());
        ctx.effect(move || move || try_everything(&own, &journal)).unwrap();

        plugin.dispose().await;

        assert_eq!(test.journal.take(), ["refused"; 4]);
        assert_eq!((plugin.state(), plugin.effect_count()), (State::Disposed, 0));
    });
}

#[test]
fn k_018_nor_does_a_cleanup_of_a_plugin_whose_service_vanished() {
    kernel(async |test| {
        let journal = test.journal.clone();
        let (host, _) = test.host("host").await;
        let given = give(&host, "x", "value").unwrap();
        let plugin = test.mount(&define("p", ["x"], async move |ctx| {
            let (own, journal) = (ctx.clone(), journal.clone());
            ctx.effect(move || move || try_everything(&own, &journal))?;
            Ok(())
        }));
        rest().await;

        given.call().await.unwrap();

        assert_eq!(test.journal.take(), ["refused"; 4]);
        assert_eq!((plugin.state(), plugin.effect_count()), (State::Pending, 0));
    });
}

#[test]
fn k_019_a_failed_plugin_registers_nothing() {
    kernel(async |test| {
        let kept = Kept::default();
        let keeping = kept.clone();
        let plugin = test.mount(&define("p", [], async move |ctx| {
            keeping.keep(ctx);
            Err("boom".into())
        }));
        rest().await;

        let ran = register_a_witness(&kept.last());

        assert_eq!(plugin.state(), State::Failed);
        assert!(!ran);
        test.reports.take_one();
    });
}

#[test]
fn k_020_a_timer_that_outlives_its_plugin_creates_nothing() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let journal = test.journal.clone();
        let timer = async move |_| {
            pass(1_000).await;
            try_everything(&ctx, &journal);
        };
        test.root.spawn("timer", timer).unwrap();
        plugin.dispose().await;
        let before = test.root.fibers().len();

        pass(2_000).await;

        assert_eq!(test.journal.take(), ["refused"; 4]);
        assert_eq!(listeners(&test.root), 0);
        assert_eq!(test.root.fibers().len(), before);
    });
}

#[test]
fn k_021_a_body_registers_while_it_runs() {
    kernel(async |test| {
        let (gate, never) = (Gate::shut(), Gate::shut());
        let (journal, first, second) = (test.journal.clone(), gate.clone(), never.clone());
        let plugin = test.mount(&define("p", [], async move |ctx| {
            first.pass().await;
            ctx.effect(|| journal.line("E"))?;
            second.pass().await;
            Ok(())
        }));
        rest().await;

        gate.open();
        rest().await;

        assert_eq!((plugin.state(), plugin.effect_count()), (State::Loading, 1));
        assert_eq!(never.arrived(), 1);
    });
}

#[test]
fn k_022_a_body_that_is_to_stop_still_registers_and_is_unwound() {
    kernel(async |test| {
        let gate = Gate::shut();
        let (journal, blocked) = (test.journal.clone(), gate.clone());
        let plugin = test.mount(&define("p", [], async move |ctx| {
            blocked.pass().await;
            ctx.effect(|| journal.line("E cleaned"))?;
            journal.push("E accepted");
            Ok(())
        }));
        rest().await;

        let disposing = plugin.dispose();
        gate.open();
        disposing.await;

        assert_eq!(test.journal.take(), ["E accepted", "E cleaned"]);
    });
}

#[test]
fn k_023_a_child_mounted_after_the_service_vanished_does_not_stay() {
    kernel(async |test| {
        let gate = Gate::shut();
        let blocked = gate.clone();
        let journal = test.journal.clone();
        let child = define("child", [], async move |ctx| {
            hear(&ctx, &journal, "heard")?;
            Ok(())
        });
        let children = Kept::default();
        let keeping = children.clone();
        let (host, _) = test.host("host").await;
        let given = give(&host, "x", "value").unwrap();
        let parent = test.mount(&define("parent", ["x"], async move |ctx| {
            blocked.pass().await;
            keeping.keep(ctx.plugin(&child, Value::Null)?);
            Ok(())
        }));
        rest().await;

        drop(given.call());
        gate.open();
        rest().await;

        assert_eq!(parent.state(), State::Pending);
        assert_eq!(children.last().state(), State::Disposed);
        assert_eq!(listeners(&test.root), 0);
    });
}

#[test]
fn k_029_a_setup_that_disposes_its_own_plugin_is_cleaned_once() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let setup = || {
            drop(plugin.dispose());
            test.journal.line("cleaned")
        };

        drop(ctx.effect(setup));
        rest().await;

        assert_eq!(test.journal.take(), ["cleaned"]);
        assert_eq!(plugin.state(), State::Disposed);
    });
}

#[test]
fn k_029_so_is_one_in_a_body() {
    kernel(async |test| {
        let own = Kept::<Mount>::default();
        let (kept, journal) = (own.clone(), test.journal.clone());
        own.keep(test.mount(&define("p", [], async move |ctx| {
            ctx.effect(|| {
                drop(kept.last().dispose());
                journal.line("cleaned")
            })?;
            rest().await;
            Ok(())
        })));

        pass(10).await;

        assert_eq!(test.journal.take(), ["cleaned"]);
        assert_eq!(own.last().state(), State::Disposed);
    });
}

/// Whether the setup of an effect was run, on a context that must refuse it.
fn register_a_witness(ctx: &Context) -> bool {
    let ran = Rc::new(Cell::new(false));
    let witness = ran.clone();

    let outcome = ctx.effect(move || witness.set(true));

    assert!(matches!(outcome, Err(Error::Inactive { .. })));
    ran.get()
}

/// Tries the four ways to register something, and writes `refused` for each that is refused.
fn try_everything(ctx: &Context, journal: &Journal) {
    let child = define("child", [], async |_| Ok(()));
    let outcomes = [
        ctx.effect(|| ()).err(),
        hear(ctx, journal, "heard").err(),
        give(ctx, "late", "value").err(),
        ctx.plugin(&child, Value::Null).err(),
    ];
    for outcome in outcomes {
        journal.push(match outcome {
            Some(Error::Inactive { .. }) => "refused",
            Some(_) => "failed otherwise",
            None => "accepted",
        });
    }
}
