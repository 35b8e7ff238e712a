//! `waterfall`: each listener holds the rest of the chain in its hand, and may run it never, once or again.

use std::cell::RefCell;
use std::rc::Rc;

use nano_cordis::cordis::{BoxError, Context, Next, PluginDef, State};

use super::{Sum, pass_on, pass_on_twice, sum};
use crate::support::{Gate, Journal, define, kernel, poll_once, rest};

#[test]
fn k_121_the_first_registered_is_the_outermost() {
    kernel(async |test| {
        pass_on(&test.root, &test.journal, "one").unwrap();
        pass_on(&test.root, &test.journal, "two").unwrap();

        sum(&test.root, &test.journal, 0).await.unwrap();

        assert_eq!(test.journal.lines(), ["one in", "two in", "default", "two out", "one out"]);
    });
}

#[test]
fn k_122_each_listener_works_on_the_value_of_the_rest() {
    kernel(async |test| {
        for _ in 0..2 {
            let add = async |_, input: Rc<i64>, next: Next<Sum>| Ok(*input + next.run().await?);
            test.root.intercept::<Sum>(add).unwrap();
        }

        let value = test.root.waterfall::<Sum>(Rc::new(1), async |_| Ok(2)).await.unwrap();

        assert_eq!(value, 4);
    });
}

#[test]
fn k_122_a_listener_may_replace_the_input_of_the_rest() {
    kernel(async |test| {
        let ten = async |_, input: Rc<i64>, next: Next<Sum>| {
            Ok(next.run_with(Rc::new(*input * 10)).await? + next.run().await?)
        };
        test.root.intercept::<Sum>(ten).unwrap();
        pass_on(&test.root, &test.journal, "two").unwrap();

        let value = sum(&test.root, &test.journal, 3).await.unwrap();

        assert_eq!(value, 33);
    });
}

#[test]
fn k_123_without_next_the_rest_does_not_run() {
    kernel(async |test| {
        let (journal, seen) = (test.journal.clone(), Rc::new(RefCell::new(None)));
        let watched = seen.clone();
        let watch = async move |_, _, next: Next<Sum>| {
            let value = next.run().await?;
            watched.replace(Some(value));
            Ok(value)
        };
        test.root.intercept::<Sum>(watch).unwrap();
        let stop = async move |_, _, _| {
            journal.push("two");
            Ok(42)
        };
        test.root.intercept::<Sum>(stop).unwrap();
        pass_on(&test.root, &test.journal, "three").unwrap();

        let value = sum(&test.root, &test.journal, 0).await.unwrap();

        assert_eq!(value, 42);
        assert_eq!(seen.take(), Some(42));
        assert_eq!(test.journal.lines(), ["two"]);
    });
}

#[test]
fn k_124_next_called_twice_runs_the_rest_twice_from_the_same_place() {
    kernel(async |test| {
        pass_on_twice(&test.root, &test.journal, "one").unwrap();
        pass_on(&test.root, &test.journal, "two").unwrap();

        sum(&test.root, &test.journal, 0).await.unwrap();

        let rest = ["two in", "default", "two out"];
        assert_eq!(test.journal.lines(), [&["one"][..], &rest, &rest].concat());
    });
}

#[test]
fn k_125_two_listeners_that_go_on_twice_run_the_rest_four_times() {
    kernel(async |test| {
        pass_on_twice(&test.root, &test.journal, "one").unwrap();
        pass_on_twice(&test.root, &test.journal, "two").unwrap();
        pass_on(&test.root, &test.journal, "three").unwrap();

        sum(&test.root, &test.journal, 0).await.unwrap();

        assert_eq!(test.journal.count("one"), 1);
        assert_eq!(test.journal.count("two"), 2);
        assert_eq!(test.journal.count("three in"), 4);
        assert_eq!(test.journal.count("default"), 4);
    });
}

#[test]
fn k_126_two_runs_of_the_rest_may_overlap() {
    kernel(async |test| {
        let barrier = Gate::of(2);
        let twice = async |_, _, next: Next<Sum>| {
            let (left, right) = tokio::join!(next.run(), next.run_with(Rc::new(10)));
            Ok(left? + right?)
        };
        test.root.intercept::<Sum>(twice).unwrap();
        let gate = barrier.clone();
        let waiting = async move |_, _, next: Next<Sum>| {
            gate.pass().await;
            next.run().await
        };
        test.root.intercept::<Sum>(waiting).unwrap();

        let value = sum(&test.root, &test.journal, 1).await.unwrap();

        assert_eq!(value, 11);
        assert_eq!(barrier.arrived(), 2);
        assert_eq!(test.journal.lines(), ["default", "default"]);
    });
}

#[test]
fn k_127_a_failure_of_the_rest_may_be_replaced() {
    kernel(async |test| {
        let replace = async |_, _, next: Next<Sum>| match next.run().await {
            Ok(value) => Ok(value),
            Err(err) => Ok(i64::from(err.to_string() == "no default")),
        };
        test.root.intercept::<Sum>(replace).unwrap();

        let default = async |_| Err(BoxError::from("no default"));
        let value = test.root.waterfall::<Sum>(Rc::new(0), default).await.unwrap();

        assert_eq!(value, 1);
    });
}

#[test]
fn k_128_a_failure_nobody_catches_reaches_the_caller_and_leaves_the_bus_intact() {
    kernel(async |test| {
        pass_on(&test.root, &test.journal, "one").unwrap();
        let failing = async |_, _, _| Err(BoxError::from("broken"));
        let undo = test.root.intercept::<Sum>(failing).unwrap();

        let failed = sum(&test.root, &test.journal, 0).await;
        undo.call().await.unwrap();
        let value = sum(&test.root, &test.journal, 5).await;

        assert_eq!(failed.unwrap_err().to_string(), "broken");
        assert_eq!(value.unwrap(), 5);
    });
}

#[test]
fn k_128_a_listener_that_panics_is_one_that_failed() {
    kernel(async |test| {
        pass_on(&test.root, &test.journal, "one").unwrap();
        test.root.intercept::<Sum>(async |_, _, _| panic!("broken")).unwrap();

        let failed = sum(&test.root, &test.journal, 0).await;

        assert!(failed.unwrap_err().to_string().contains("broken"));
        assert_eq!(test.journal.lines(), ["one in", "one out"]);
    });
}

#[test]
fn k_129_next_may_be_kept_and_run_later() {
    kernel(async |test| {
        let kept: Rc<RefCell<Option<Next<Sum>>>> = Rc::default();
        let keeper = kept.clone();
        let keep = async move |_, _, next: Next<Sum>| {
            keeper.replace(Some(next));
            Ok(0)
        };
        test.root.intercept::<Sum>(keep).unwrap();
        pass_on(&test.root, &test.journal, "two").unwrap();

        sum(&test.root, &test.journal, 8).await.unwrap();
        let before = test.journal.take();
        let value = kept.take().unwrap().run().await.unwrap();

        assert_eq!(before, Vec::<String>::new());
        assert_eq!(value, 8);
        assert_eq!(test.journal.lines(), ["two in", "default", "two out"]);
    });
}

#[test]
fn k_130_a_listener_unloaded_before_its_turn_is_skipped() {
    kernel(async |test| {
        let gate = Gate::shut();
        let first = gate.clone();
        let waiting = async move |_, _, next: Next<Sum>| {
            first.pass().await;
            next.run().await
        };
        test.root.intercept::<Sum>(waiting).unwrap();
        let middle = test.mount(&interceptor("middle", &test.journal));
        middle.ready().await.unwrap();
        pass_on(&test.root, &test.journal, "last").unwrap();

        let mut dispatch = Box::pin(sum(&test.root, &test.journal, 0));
        assert!(poll_once(&mut dispatch).await.is_none());
        middle.dispose().await;
        gate.open();
        dispatch.await.unwrap();

        assert_eq!(test.journal.lines(), ["last in", "default", "last out"]);
    });
}

#[test]
fn k_226_a_suspended_listener_is_not_joined_and_registers_nothing() {
    kernel(async |test| {
        let (gate, journal) = (Gate::shut(), test.journal.clone());
        let held = gate.clone();
        let def = define("sleeper", [], async move |ctx| {
            let (gate, journal) = (held.clone(), journal.clone());
            let suspended = async move |ctx: Context, _, next: Next<Sum>| {
                gate.pass().await;
                let refused = pass_on(&ctx, &journal, "late").is_err();
                journal.push(format!("refused: {refused}"));
                next.run().await
            };
            ctx.intercept::<Sum>(suspended)?;
            Ok(())
        });
        let mount = test.mount(&def);
        mount.ready().await.unwrap();

        let mut dispatch = Box::pin(sum(&test.root, &test.journal, 3));
        assert!(poll_once(&mut dispatch).await.is_none());
        mount.dispose().await;
        let disposed = mount.state();
        gate.open();
        let value = dispatch.await.unwrap();
        rest().await;

        assert_eq!(disposed, State::Disposed);
        assert_eq!(value, 3);
        assert_eq!(test.journal.lines(), ["refused: true", "default"]);
        assert_eq!(test.root.listener_count("test/sum"), 0);
    });
}

/// A plugin with one listener that passes on.
fn interceptor(name: &'static str, journal: &Journal) -> PluginDef {
    let journal = journal.clone();
    define(name, [], async move |ctx| {
        pass_on(&ctx, &journal, name)?;
        Ok(())
    })
}
