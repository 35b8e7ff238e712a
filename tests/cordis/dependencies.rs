//! Plugins start and stop as the services they need come and go, whatever the order they were mounted in.

use serde_json::{Value, json};

use nano_cordis::cordis::{Context, PluginDef, State};

use crate::support::{Gate, Kept, Ping, define, get, give, kernel, pass, poll_once, read, rest};

mod changes;
mod conflicts;
mod reads;

#[test]
fn k_031_a_consumer_waits_for_its_provider() {
    kernel(async |test| {
        let consumer = test.probe("consumer").needs("x").mount(&test.root);
        rest().await;
        let before = (consumer.state(), test.journal.take());

        test.probe("provider").gives("x").mount(&test.root);
        rest().await;

        assert_eq!(before, (State::Pending, vec![]));
        assert_eq!(consumer.state(), State::Active);
        assert_eq!(test.journal.take(), ["provider start", "consumer start"]);
    });
}

#[test]
fn k_032_the_order_of_mounts_does_not_matter() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        kernel(async |test| {
            let chain = [
                test.probe("A").gives("a").def(),
                test.probe("B").needs("a").gives("b").def(),
                test.probe("C").needs("b").def(),
            ];

            let mounts = order.map(|at| test.mount(&chain[at]));
            rest().await;

            assert_eq!(
                mounts.map(|it| it.state()),
                [State::Active; 3],
                "mounted in order {order:?}"
            );
            assert_eq!(
                test.journal.take(),
                ["A start", "B start", "C start"],
                "mounted in order {order:?}"
            );
        });
    }
}

#[test]
fn k_033_a_consumer_of_two_services_waits_for_both() {
    kernel(async |test| {
        let consumer = test.probe("consumer").needs("x").needs("y").mount(&test.root);
        test.probe("one").gives("x").mount(&test.root);
        rest().await;
        let with_one = consumer.state();

        test.probe("two").gives("y").mount(&test.root);
        rest().await;

        assert_eq!((with_one, consumer.state()), (State::Pending, State::Active));
        assert_eq!(test.journal.count("consumer start"), 1);
    });
}

#[test]
fn k_034_a_consumer_stops_and_starts_with_its_provider() {
    kernel(async |test| {
        let consumer = test.probe("consumer").needs("x").mount(&test.root);
        let provider = test.probe("provider").gives("x");
        let first = provider.clone().mount(&test.root);
        rest().await;

        first.dispose().await;
        rest().await;
        let without = consumer.state();
        provider.mount(&test.root);
        rest().await;

        assert_eq!((without, consumer.state()), (State::Pending, State::Active));
        assert_eq!(test.journal.count("consumer start"), 2);
        assert_eq!(test.journal.count("consumer stop"), 1);
    });
}

#[test]
fn k_035_a_provider_that_is_still_loading_satisfies_nobody() {
    kernel(async |test| {
        let gate = Gate::shut();
        let consumer = test.probe("consumer").needs("x").mount(&test.root);
        test.probe("provider").gives("x").body_gate(&gate).mount(&test.root);
        pass(1_000).await;
        let while_loading = consumer.state();

        gate.open();
        rest().await;

        assert_eq!((while_loading, consumer.state()), (State::Pending, State::Active));
    });
}

#[test]
fn k_036_a_provider_that_fails_has_provided_nothing() {
    kernel(async |test| {
        let consumer = test.probe("consumer").needs("x").mount(&test.root);
        test.probe("provider").gives("x").fails("boom").mount(&test.root);
        rest().await;

        assert_eq!(consumer.state(), State::Pending);
        assert_eq!(test.journal.take(), ["provider start", "provider stop"]);
        assert_eq!(get(&test.root, "x"), None);
        test.reports.take_one();
    });
}

#[test]
fn k_037_a_service_provided_from_an_event_handler_counts() {
    kernel(async |test| {
        let (host, _) = test.host("host").await;
        host.on(|ctx: &Context, _: &Ping| give(ctx, "x", "late").map(drop)).unwrap();
        let consumer = test.probe("consumer").needs("x").mount(&test.root);
        rest().await;

        test.root.emit(&Ping);
        rest().await;

        assert_eq!(consumer.state(), State::Active);
    });
}

#[test]
fn k_038_a_service_withdrawn_by_hand_stops_its_consumers_only() {
    kernel(async |test| {
        let (host, provider) = test.host("host").await;
        let given = give(&host, "x", "value").unwrap();
        let consumer = test.probe("consumer").needs("x").mount(&test.root);
        rest().await;

        given.call().await.unwrap();
        rest().await;

        assert_eq!(consumer.state(), State::Pending);
        assert_eq!(provider.state(), State::Active);
    });
}

#[test]
fn k_058_a_plugin_that_needs_what_only_it_gives_waits() {
    kernel(async |test| {
        let plugin = test.probe("p").needs("x").gives("x").mount(&test.root);
        pass(1_000).await;

        assert_eq!(plugin.state(), State::Pending);
        assert!(test.journal.take().is_empty());
    });
}

#[test]
fn k_057_a_cycle_waits_and_says_for_what() {
    kernel(async |test| {
        let first = test.probe("A").needs("b").gives("a").mount(&test.root);
        let second = test.probe("B").needs("a").gives("b").mount(&test.root);
        rest().await;

        let states = (first.ready().await.unwrap(), second.ready().await.unwrap());

        assert_eq!(states, (State::Pending, State::Pending));
        let waits: Vec<_> =
            test.root.fibers().into_iter().map(|it| (it.name, it.missing)).collect();
        assert_eq!(waits, [("A".into(), vec!["b".into()]), ("B".into(), vec!["a".into()])]);
    });
}

#[test]
fn k_060_the_keys_of_a_map_are_what_is_needed() {
    kernel(async |test| {
        let inject = json!({ "x": { "some": "settings" }, "y": null });
        let def =
            PluginDef::dynamic("consumer", &inject, None, |_, _| Box::pin(async { Ok(None) }))
                .unwrap();
        let consumer = test.mount(&def);
        rest().await;
        let before = consumer.state();

        test.probe("provider").gives("x").gives("y").mount(&test.root);
        rest().await;

        let needs: Vec<_> = def.needs().iter().map(|it| (&*it.name, it.required)).collect();
        assert_eq!(needs, [("x", true), ("y", true)]);
        assert_eq!((before, consumer.state()), (State::Pending, State::Active));
    });
}

#[test]
fn k_062_a_diamond_starts_its_bottom_once() {
    kernel(async |test| {
        test.probe("D").needs("b").needs("c").mount(&test.root);
        test.probe("C").needs("a").gives("c").mount(&test.root);
        test.probe("B").needs("a").gives("b").mount(&test.root);
        let top = test.probe("A").gives("a");
        let first = top.clone().mount(&test.root);
        rest().await;
        let after_boot = test.journal.count("D start");

        first.dispose().await;
        top.mount(&test.root);
        rest().await;

        assert_eq!((after_boot, test.journal.count("D start")), (1, 2));
    });
}

#[test]
fn k_063_a_chain_is_taken_down_from_its_end() {
    kernel(async |test| {
        let provider = test.probe("A").gives("a").mount(&test.root);
        test.probe("B").needs("a").gives("b").cleanup_delay(20).mount(&test.root);
        test.probe("C").needs("b").cleanup_delay(20).mount(&test.root);
        rest().await;
        test.journal.take();

        provider.dispose().await;

        let expected = ["C stopping", "C stop", "B stopping", "B stop", "A stop"];
        assert_eq!(test.journal.take(), expected);
    });
}

#[test]
fn k_066_a_provider_is_gone_only_after_all_its_consumers() {
    kernel(async |test| {
        let gate = Gate::shut();
        let provider = test.probe("provider").gives("x").mount(&test.root);
        let quick = test.probe("quick").needs("x").mount(&test.root);
        let slow = test.probe("slow").needs("x").cleanup_gate(&gate).mount(&test.root);
        rest().await;
        test.journal.take();

        let mut disposing = Box::pin(provider.dispose().into_future());
        rest().await;
        let done_early = poll_once(&mut disposing).await.is_some();
        gate.open();
        disposing.await;

        assert!(!done_early);
        assert_eq!((quick.state(), slow.state()), (State::Pending, State::Pending));
        assert_eq!(test.journal.take().last().unwrap(), "provider stop");
    });
}

#[test]
fn k_065_a_failed_consumer_does_not_hold_up_its_provider() {
    kernel(async |test| {
        let provider = test.probe("provider").gives("x").mount(&test.root);
        let consumer = test.probe("consumer").needs("x").fails("boom").mount(&test.root);
        rest().await;

        provider.dispose().await;

        assert_eq!((provider.state(), consumer.state()), (State::Disposed, State::Failed));
        test.reports.take_one();
    });
}

#[test]
fn k_056_a_consumers_cleanup_can_still_use_the_service() {
    kernel(async |test| {
        let (host, provider) = test.host("provider").await;
        give(&host, "x", "value").unwrap();
        host.effect(|| test.journal.line("provider's cleanup")).unwrap();
        let journal = test.journal.clone();
        test.mount(&define("consumer", ["x"], async move |ctx| {
            let (own, journal) = (ctx.clone(), journal.clone());
            ctx.effect(move || {
                async move || {
                    pass(20).await;
                    journal.push(format!("read {:?}", read(&own, "x").ok()));
                }
            })?;
            Ok(())
        }));
        rest().await;

        provider.dispose().await;

        assert_eq!(test.journal.take(), ["read Some(\"value\")", "provider's cleanup"]);
    });
}

#[test]
fn k_061_an_optional_read_restarts_nobody() {
    kernel(async |test| {
        let kept = Kept::default();
        let (keeping, journal) = (kept.clone(), test.journal.clone());
        let reader = define("reader", [], async move |ctx| {
            journal.push(format!("reader read {:?}", get(&ctx, "x")));
            keeping.keep(ctx);
            Ok(())
        });
        test.root.plugin(&reader, Value::Null).unwrap();
        rest().await;

        let provider = test.probe("provider").gives("x").mount(&test.root);
        rest().await;
        let while_there = get(&kept.last(), "x");
        provider.dispose().await;
        rest().await;

        assert_eq!(while_there.as_deref(), Some("provider"));
        assert_eq!(get(&kept.last(), "x"), None);
        assert_eq!(test.journal.count("reader read None"), 1);
        assert_eq!(test.journal.take(), ["reader read None", "provider start", "provider stop"]);
    });
}
