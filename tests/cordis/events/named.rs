//! Listeners that are known by the name of their event alone.

use nano_cordis::cordis::{Context, Error, NamedListener};

use crate::support::{Ping, kernel};

fn heard(ctx: &Context, event: &str) -> Vec<&'static str> {
    let found = ctx.named(event).unwrap();
    found.iter().filter_map(NamedListener::get::<&'static str>).copied().collect()
}

#[test]
fn named_listeners_stand_in_order_and_go_with_their_plugin() {
    kernel(async |test| {
        let (ctx, host) = test.host("host").await;
        ctx.on_named("script/event", 5, "last").unwrap();
        let undo = test.root.on_named("script/event", 0, "middle").unwrap();
        ctx.on_named("script/event", -5, "first").unwrap();
        let kept = test.root.named("script/event").unwrap();

        let all = heard(&test.root, "script/event");
        undo.call().await.unwrap();
        let two = heard(&test.root, "script/event");
        host.dispose().await;

        assert_eq!(all, ["first", "middle", "last"]);
        assert_eq!(two, ["first", "last"]);
        assert_eq!(heard(&test.root, "script/event"), [""; 0]);
        assert!(kept.iter().all(|it| it.get::<&'static str>().is_none()), "they are gone");
        assert_eq!(test.root.listener_count("script/event"), 0);
    });
}

#[test]
fn k_064_a_name_that_a_type_stands_for_is_refused_both_ways() {
    kernel(async |test| {
        test.root.on(|_: &Context, _: &Ping| {}).unwrap();
        test.root.on_named("script/event", 0, "mine").unwrap();

        let listening = test.root.on_named("test/ping", 0, "mine").map(drop);
        let asking = test.root.named("test/ping").map(drop);

        for outcome in [listening, asking] {
            assert!(matches!(outcome, Err(Error::EventMismatch { event }) if event == "test/ping"));
        }
    });
}
