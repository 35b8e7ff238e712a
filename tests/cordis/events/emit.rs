//! `emit`: in order, at once, and no failure of one listener is felt by the others or by the caller.

use std::cell::OnceCell;
use std::rc::Rc;

use nano_cordis::cordis::{Context, Emit, PluginDef, Undo, What};

use super::Again;
use crate::support::{Journal, Ping, Test, define, hear, kernel};

#[test]
fn k_101_listeners_run_in_registration_order_before_emit_returns() {
    kernel(async |test| {
        for line in ["one", "two", "three"] {
            hear(&test.root, &test.journal, line).unwrap();
        }

        test.root.emit(&Ping);

        assert_eq!(test.journal.lines(), ["one", "two", "three"]);
    });
}

#[test]
fn k_102_a_failing_listener_is_reported_and_the_rest_still_run() {
    kernel(async |test| {
        hear(&test.root, &test.journal, "one").unwrap();
        mount_listener(&test, "two", |_, _| Err("out of order")).await;
        hear(&test.root, &test.journal, "three").unwrap();

        test.root.emit(&Ping);

        assert_eq!(test.journal.lines(), ["one", "three"]);
        assert_listener_failed(&test, "two", "out of order");
    });
}

#[test]
fn k_103_a_listener_that_panics_is_one_that_failed() {
    kernel(async |test| {
        hear(&test.root, &test.journal, "one").unwrap();
        mount_listener(&test, "two", |_, _| panic!("out of order")).await;
        hear(&test.root, &test.journal, "three").unwrap();

        test.root.emit(&Ping);

        assert_eq!(test.journal.lines(), ["one", "three"]);
        assert_listener_failed(&test, "two", "out of order");
    });
}

#[test]
fn k_104_emit_returns_nothing_whatever_listeners_return() {
    kernel(async |test| {
        let emit: fn(&Context, &Ping) = Context::emit::<Ping>;
        hear(&test.root, &test.journal, "unit").unwrap();
        let journal = test.journal.clone();
        let result = move |_: &Context, _: &Ping| {
            journal.push("result");
            Ok::<(), String>(())
        };
        test.root.on(result).unwrap();

        emit(&test.root, &Ping);

        assert_eq!(test.journal.lines(), ["unit", "result"]);
    });
}

#[test]
fn k_106_an_undone_listener_is_not_called() {
    kernel(async |test| {
        let undo = hear(&test.root, &test.journal, "undone").unwrap();
        hear(&test.root, &test.journal, "other").unwrap();

        undo.call().await.unwrap();
        test.root.emit(&Ping);

        assert_eq!(test.journal.lines(), ["other"]);
        assert_eq!(test.root.listener_count(Ping::NAME), 1);
    });
}

#[test]
fn k_107_listeners_come_and_go_with_their_plugin() {
    kernel(async |test| {
        let def = listener_plugin(&test.journal);

        let first = test.mount(&def);
        first.ready().await.unwrap();
        test.root.emit(&Ping);
        first.dispose().await;
        test.root.emit(&Ping);
        let unloaded = test.journal.take();
        test.mount(&def).ready().await.unwrap();
        test.root.emit(&Ping);

        assert_eq!(unloaded, ["heard"]);
        assert_eq!(test.journal.lines(), ["heard"]);
    });
}

#[test]
fn k_108_a_listener_added_during_a_dispatch_is_called_at_the_next() {
    kernel(async |test| {
        let (journal, added) = (test.journal.clone(), OnceCell::new());
        let adding = move |ctx: &Context, _: &Ping| {
            journal.push("adding");
            added.get_or_init(|| hear(ctx, &journal, "added").unwrap());
        };
        test.root.on(adding).unwrap();

        test.root.emit(&Ping);
        let first = test.journal.take();
        test.root.emit(&Ping);

        assert_eq!(first, ["adding"]);
        assert_eq!(test.journal.lines(), ["adding", "added"]);
    });
}

#[test]
fn k_109_a_listener_undone_during_a_dispatch_is_skipped() {
    kernel(async |test| {
        let third: Rc<OnceCell<Undo>> = Rc::default();
        let (undo, journal) = (third.clone(), test.journal.clone());
        let undoing = move |_: &Context, _: &Ping| {
            journal.push("one");
            drop(undo.get().unwrap().call());
        };
        test.root.on(undoing).unwrap();
        hear(&test.root, &test.journal, "two").unwrap();
        third.set(hear(&test.root, &test.journal, "three").unwrap()).ok().unwrap();
        hear(&test.root, &test.journal, "four").unwrap();

        test.root.emit(&Ping);

        assert_eq!(test.journal.lines(), ["one", "two", "four"]);
    });
}

#[test]
fn k_109_a_listener_may_undo_itself() {
    kernel(async |test| {
        let itself: Rc<OnceCell<Undo>> = Rc::default();
        let (undo, journal) = (itself.clone(), test.journal.clone());
        let once = move |_: &Context, _: &Ping| {
            journal.push("once");
            drop(undo.get().unwrap().call());
        };
        itself.set(test.root.on(once).unwrap()).ok().unwrap();
        hear(&test.root, &test.journal, "always").unwrap();

        test.root.emit(&Ping);
        test.root.emit(&Ping);

        assert_eq!(test.journal.lines(), ["once", "always", "always"]);
    });
}

#[test]
fn k_110_an_event_may_be_raised_again_inside_its_own_dispatch() {
    kernel(async |test| {
        let journal = test.journal.clone();
        let nesting = move |ctx: &Context, again: &Again| {
            journal.push(format!("{} in", again.0));
            if again.0 > 0 {
                ctx.emit(&Again(again.0 - 1));
            }
            journal.push(format!("{} out", again.0));
        };
        test.root.on(nesting).unwrap();

        test.root.emit(&Again(1));

        assert_eq!(test.journal.lines(), ["1 in", "0 in", "0 out", "1 out"]);
    });
}

#[test]
fn k_110_slots_emptied_in_a_nested_dispatch_do_not_disturb_the_outer_one() {
    kernel(async |test| {
        let undos: Rc<OnceCell<Vec<Undo>>> = Rc::default();
        let inner = undos.clone();
        let clearing = move |ctx: &Context, again: &Again| match again.0 {
            0 => inner.get().unwrap().iter().for_each(|undo| drop(undo.call())),
            _ => ctx.emit(&Again(0)),
        };
        test.root.on(clearing).unwrap();
        let doomed = (0..50).map(|_| hear_again(&test, "doomed")).collect();
        undos.set(doomed).ok().unwrap();
        hear_again(&test, "last");

        test.root.emit(&Again(1));

        assert_eq!(test.journal.lines(), ["last 0", "last 1"]);
        assert_eq!(test.root.listener_count(Again::NAME), 2);
    });
}

#[test]
fn k_111_one_closure_registered_twice_is_two_listeners() {
    kernel(async |test| {
        let journal = test.journal.clone();
        let closure = move |_: &Context, _: &Ping| journal.push("heard");
        let first = test.root.on(closure.clone()).unwrap();
        test.root.on(closure).unwrap();

        test.root.emit(&Ping);
        let both = test.journal.take();
        first.call().await.unwrap();
        test.root.emit(&Ping);

        assert_eq!(both, ["heard", "heard"]);
        assert_eq!(test.journal.lines(), ["heard"]);
    });
}

/// A plugin that hears pings.
fn listener_plugin(journal: &Journal) -> PluginDef {
    let journal = journal.clone();
    define("listener", [], async move |ctx| {
        hear(&ctx, &journal, "heard")?;
        Ok(())
    })
}

/// Writes `name` and the number of the event.
fn hear_again(test: &Test, name: &'static str) -> Undo {
    let journal = test.journal.clone();
    let listener = move |_: &Context, again: &Again| journal.push(format!("{name} {}", again.0));
    test.root.on(listener).unwrap()
}

/// Mounts a plugin with one listener for pings.
async fn mount_listener(
    test: &Test,
    name: &str,
    listener: fn(&Context, &Ping) -> Result<(), &'static str>,
) {
    let def = define(name, [], async move |ctx| {
        ctx.on(listener)?;
        Ok(())
    });
    test.mount(&def).ready().await.unwrap();
}

/// One report says which plugin failed to listen to a ping, and why.
fn assert_listener_failed(test: &Test, plugin: &str, message: &str) {
    let report = test.reports.take_one();
    assert_eq!(report.plugin, plugin);
    assert!(matches!(&report.what, What::ListenerFailed { event } if event == Ping::NAME));
    assert!(report.to_string().contains(message), "{report}");
}
