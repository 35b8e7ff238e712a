//! Many of everything: on a small stack, and without growth.

mod growth;

use std::cell::Cell;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use nano_cordis::cordis::{Context, Emit, Next, PluginDef, State, Undo, Waterfall};
use serde_json::{Value, json};

use crate::support::{Gate, Ping, define, give, hear, kernel, rest};

struct Deep;

impl Waterfall for Deep {
    const NAME: &'static str = "test/deep";
    type Input = ();
    type Output = usize;
}

/// Runs on a thread with 2 MB of stack; nothing in the kernel may recurse with the number of plugins.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(2 << 20).spawn(test).expect("a thread");
    thread.join().expect("the thread ends well");
}

/// Number i of a chain: it needs `s(i)` and provides `s(i+1)`.
fn link(number: usize) -> PluginDef {
    let needs = json!([format!("s{number}")]);
    PluginDef::dynamic("link", &needs, None, move |ctx, _| {
        Box::pin(async move {
            give(&ctx, &format!("s{}", number + 1), "link")?;
            Ok(None)
        })
    })
    .expect("a list of names")
}

#[test]
fn a_chain_of_a_hundred_thousand_starts_and_stops_on_a_small_stack() {
    on_a_small_stack(|| {
        kernel(async |test| {
            let links: Vec<_> = (0..100_000).map(|number| test.mount(&link(number))).collect();
            let all = |state| links.iter().all(|it| it.state() == state);
            rest().await;
            assert!(all(State::Pending));

            let first = give(&test.root, "s0", "root").unwrap();
            rest().await;
            assert!(all(State::Active));
            first.call().await.unwrap();
            assert!(all(State::Pending));
            give(&test.root, "s0", "root").unwrap();
            rest().await;
            assert!(all(State::Active));
            test.root.shutdown(Duration::from_secs(1)).await;

            assert!(all(State::Disposed));
            assert_eq!(test.root.service_names(), Vec::<String>::new());
        });
    });
}

/// Mounts the next level inside its own body, and counts the levels that are there.
fn level(below: usize, there: &Rc<Cell<usize>>) -> PluginDef {
    let there = there.clone();
    define("level", [], async move |ctx| {
        there.set(there.get() + 1);
        let gone = there.clone();
        ctx.effect(move || move || gone.set(gone.get() - 1))?;
        if below > 0 {
            ctx.plugin(&level(below - 1, &there), Value::Null)?;
        }
        Ok(())
    })
}

#[test]
fn plugins_nested_ten_thousand_deep_come_and_go_on_a_small_stack() {
    on_a_small_stack(|| {
        kernel(async |test| {
            let there = Rc::default();
            let top = test.mount(&level(9_999, &there));
            rest().await;
            let mounted = there.get();

            top.dispose().await;

            assert_eq!(mounted, 10_000);
            assert_eq!(there.get(), 0);
            assert_eq!(top.state(), State::Disposed);
        });
    });
}

#[test]
fn plugins_nested_ten_thousand_deep_go_with_a_service_on_a_small_stack() {
    on_a_small_stack(|| {
        kernel(async |test| {
            let there: Rc<Cell<usize>> = Rc::default();
            let levels = there.clone();
            let def = define("top", ["x"], async move |ctx| {
                ctx.plugin(&level(9_999, &levels), Value::Null)?;
                Ok(())
            });
            let service = give(&test.root, "x", "root").unwrap();
            let top = test.mount(&def);
            rest().await;
            let mounted = there.get();

            service.call().await.unwrap();

            assert_eq!((mounted, there.get()), (10_000, 0));
            assert_eq!(top.state(), State::Pending);
        });
    });
}

#[test]
fn k_223_a_thousand_waterfall_listeners_nest_on_a_small_stack() {
    on_a_small_stack(|| {
        kernel(async |test| {
            for _ in 0..1_000 {
                let add_one = async |_, _, next: Next<Deep>| Ok(next.run().await? + 1);
                test.root.intercept::<Deep>(add_one).unwrap();
            }

            let value = test.root.waterfall::<Deep>(Rc::new(()), async |_| Ok(0)).await.unwrap();

            assert_eq!(value, 1_000);
        });
    });
}

#[test]
fn a_hundred_thousand_effects_are_undone_in_reverse_on_a_small_stack() {
    on_a_small_stack(|| {
        kernel(async |test| {
            let lowest = Rc::new(Cell::new(100_000));
            let counter = lowest.clone();
            let def = define("hoarder", [], async move |ctx| {
                for number in 0..100_000 {
                    let lowest = counter.clone();
                    // Only the one just below the lowest so far may follow.
                    ctx.effect(move || {
                        move || lowest.set(lowest.get() - usize::from(lowest.get() == number + 1))
                    })?;
                }
                Ok(())
            });
            let hoarder = test.mount(&def);
            hoarder.ready().await.unwrap();

            hoarder.dispose().await;

            assert_eq!(hoarder.effect_count(), 0);
            assert_eq!(lowest.get(), 0);
        });
    });
}

#[test]
fn undone_in_any_order_effects_are_gone_and_the_rest_stays_in_order() {
    kernel(async |test| {
        let undos: Vec<Undo> = (0..1_000)
            .map(|number| {
                let journal = test.journal.clone();
                test.root.effect(move || move || journal.push(number.to_string())).unwrap()
            })
            .collect();
        // Every third of them, in a mixed order: 7 and 333 have no common factor.
        for step in 0..333 {
            undos[step * 7 % 333 * 3].call().await.unwrap();
        }
        test.journal.take();
        let left = test.root.effect_count();

        test.root.shutdown(Duration::from_secs(1)).await;

        let expected: Vec<_> = (0..1_000).rev().filter(|it| it % 3 != 0 || *it == 999).collect();
        let lines: Vec<_> = expected.iter().map(ToString::to_string).collect();
        assert_eq!(left, lines.len());
        assert_eq!(test.journal.lines(), lines);
    });
}

#[test]
fn what_is_kept_after_dispose_keeps_nothing_of_the_plugin_alive() {
    kernel(async |test| {
        let token = Rc::new(());
        let contexts: Rc<std::cell::RefCell<Vec<Context>>> = Rc::default();
        let (held, kept) = (token.clone(), contexts.clone());
        let journal = test.journal.clone();
        let def = define("holder", [], async move |ctx| {
            let (listener, cleanup) = (held.clone(), held.clone());
            ctx.on(move |_: &Context, _: &Ping| drop(listener.clone()))?;
            ctx.effect(move || move || drop(cleanup))?;
            ctx.provide_named("token", held.clone())?;
            let task = held.clone();
            ctx.spawn("waiting", async move |ctx| {
                ctx.stopping().await;
                drop(task);
            })?;
            hear(&ctx, &journal, "heard")?;
            kept.borrow_mut().push(ctx);
            Ok(())
        });
        let mount = test.mount(&def);
        mount.ready().await.unwrap();
        let while_active = Rc::strong_count(&token);

        drop(def);
        mount.dispose().await;

        assert!(while_active > 4);
        assert_eq!(contexts.borrow().len(), 1);
        assert_eq!(Rc::strong_count(&token), 1);
        assert_eq!(test.root.listener_count(Ping::NAME), 0);
    });
}

#[test]
fn eight_thousand_waits_for_one_plugin_all_end() {
    kernel(async |test| {
        let (ctx, _) = test.host("p").await;
        let (gate, ended) = (Gate::shut(), Rc::new(Cell::new(0)));
        let slow = test.probe("slow").body_gate(&gate).mount(&test.root);
        for _ in 0..8_000 {
            let (slow, ended) = (slow.clone(), ended.clone());
            let wait = async move |_| {
                slow.settled().await;
                ended.set(ended.get() + 1);
            };
            ctx.spawn("wait", wait).unwrap();
        }
        rest().await;

        gate.open();
        rest().await;

        assert_eq!(ended.get(), 8_000);
    });
}

#[test]
fn a_plugin_can_offer_eight_thousand_services_and_withdraw_them() {
    kernel(async |test| {
        let name = |it: usize| it.to_string();
        let given: Vec<_> =
            (0..8_000).map(|it| give(&test.root, &name(it), "x").unwrap()).collect();
        assert_eq!(test.root.service_names().len(), 8_000);

        for undo in given {
            drop(undo.call());
        }

        assert!(test.root.service_names().is_empty());
    });
}
