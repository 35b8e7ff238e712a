//! From the mount of a plugin to its end: when things run, and which states are seen.

use std::rc::Rc;

use nano_cordis::cordis::State;

use crate::support::{Gate, define, get, give, hear, kernel, listeners, poll_once, rest, states};

mod ends;
mod failures;
mod nesting;
mod shutdown;

#[test]
fn k_067_what_follows_a_mount_runs_before_the_body() {
    kernel(async |test| {
        test.probe("p").mount(&test.root);
        test.journal.push("after the call");

        rest().await;

        assert_eq!(test.journal.take(), ["after the call", "p start"]);
    });
}

#[test]
fn k_068_a_mount_begins_pending() {
    kernel(async |test| {
        let plugin = test.probe("p").mount(&test.root);

        assert_eq!(plugin.state(), State::Pending);
    });
}

#[test]
fn k_069_what_a_ready_plugin_provides_can_be_read() {
    kernel(async |test| {
        let plugin = test.probe("p").gives("x").mount(&test.root);

        let state = plugin.ready().await.unwrap();

        assert_eq!(state, State::Active);
        assert_eq!(get(&test.root, "x").as_deref(), Some("p"));
    });
}

#[test]
fn k_075_a_plugin_that_waits_for_a_service_is_ready_as_pending() {
    kernel(async |test| {
        let plugin = test.probe("p").needs("x").mount(&test.root);

        let state = plugin.ready().await.unwrap();

        assert_eq!(state, State::Pending);
    });
}

#[test]
fn k_076_a_vanished_service_waits_for_the_body() {
    kernel(async |test| {
        let gate = Gate::shut();
        let (host, _) = test.host("host").await;
        let given = give(&host, "x", "value").unwrap();
        let plugin = test.probe("p").needs("x").body_gate(&gate).mount(&test.root);
        let seen = states(&plugin);
        rest().await;

        drop(given.call());
        rest().await;
        let while_blocked = seen.lines();
        gate.open();
        rest().await;

        assert_eq!(while_blocked, ["PENDING", "LOADING"]);
        assert_eq!(seen.take(), ["PENDING", "LOADING", "UNLOADING", "PENDING"]);
    });
}

#[test]
fn k_077_a_dispose_waits_for_the_body() {
    kernel(async |test| {
        let gate = Gate::shut();
        let plugin = test.probe("p").body_gate(&gate).mount(&test.root);
        let seen = states(&plugin);
        rest().await;

        let mut disposing = Box::pin(plugin.dispose().into_future());
        rest().await;
        let done_early = poll_once(&mut disposing).await.is_some();
        gate.open();
        disposing.await;

        assert!(!done_early);
        assert_eq!(test.journal.take(), ["p start", "p stop"]);
        assert_eq!(seen.take(), ["PENDING", "LOADING", "UNLOADING", "DISPOSED"]);
    });
}

#[test]
fn k_078_a_service_that_returns_during_an_unload_starts_the_plugin_after_it() {
    kernel(async |test| {
        let gate = Gate::shut();
        let (host, _) = test.host("host").await;
        let given = give(&host, "x", "value").unwrap();
        let plugin = test.probe("p").needs("x").cleanup_gate(&gate).mount(&test.root);
        rest().await;
        drop(given.call());
        rest().await;
        let seen = states(&plugin);

        give(&host, "x", "again").unwrap();
        rest().await;
        let while_blocked = seen.lines();
        gate.open();
        rest().await;

        assert_eq!(while_blocked, ["UNLOADING"]);
        assert_eq!(seen.take(), ["UNLOADING", "LOADING", "ACTIVE"]);
    });
}

#[test]
fn k_079_many_flips_during_a_load_are_one_change() {
    for (last_flip, expected) in [("given", State::Active), ("withdrawn", State::Pending)] {
        kernel(async |test| {
            let gate = Gate::shut();
            let (host, _) = test.host("host").await;
            let mut given = give(&host, "x", "value").unwrap();
            let plugin = test.probe("p").needs("x").body_gate(&gate).mount(&test.root);
            rest().await;

            for _ in 0..10 {
                drop(given.call());
                rest().await;
                given = give(&host, "x", "value").unwrap();
                rest().await;
            }
            if last_flip == "withdrawn" {
                drop(given.call());
            }
            gate.open();
            rest().await;

            assert_eq!(plugin.state(), expected, "after the service was {last_flip}");
            assert!(test.journal.count("p start") <= 2, "{:?}", test.journal.lines());
            assert!(test.journal.count("p stop") <= 1 + usize::from(last_flip == "withdrawn"));
        });
    }
}

#[test]
fn k_080_a_plugin_disposed_in_the_block_that_mounts_it_never_runs() {
    kernel(async |test| {
        let plugin = test.probe("p").mount(&test.root);
        drop(plugin.dispose());

        rest().await;

        assert_eq!(plugin.state(), State::Disposed);
        assert!(test.journal.take().is_empty());
    });
}

#[test]
fn k_095_a_life_without_events_has_five_states() {
    kernel(async |test| {
        let plugin = test.probe("p").mount(&test.root);
        let seen = states(&plugin);

        plugin.ready().await.unwrap();
        plugin.dispose().await;

        assert_eq!(seen.take(), ["PENDING", "LOADING", "ACTIVE", "UNLOADING", "DISPOSED"]);
    });
}

/// Whoever watches a plugin is no part of it.
#[test]
fn k_095_a_recorder_that_panics_changes_nothing() {
    kernel(async |test| {
        let plugin = test.probe("p").mount(&test.root);
        plugin.observe(|_| panic!("a recorder that fails"));
        let seen = states(&plugin);

        plugin.ready().await.unwrap();

        assert_eq!(seen.take(), ["PENDING", "LOADING", "ACTIVE"]);
    });
}

/// Or the recorder and the handle would keep each other.
#[test]
fn k_095_a_recorder_is_let_go_at_the_end() {
    kernel(async |test| {
        let token = Rc::new(());
        let plugin = test.probe("p").mount(&test.root);
        for _ in 0..2 {
            let held = (plugin.clone(), token.clone());
            plugin.observe(move |_| drop(held.clone()));
            plugin.dispose().await;
        }

        drop(plugin);

        assert_eq!(Rc::strong_count(&token), 1);
    });
}

#[test]
fn k_096_a_body_that_never_ends_holds_up_nobody_else() {
    kernel(async |test| {
        test.probe("provider").gives("x").mount(&test.root);
        let stuck = test.probe("stuck").needs("x").body_gate(&Gate::shut()).mount(&test.root);
        rest().await;

        let other = test.probe("other").gives("y");
        let consumer = test.probe("consumer").needs("x").needs("y").mount(&test.root);
        let first = other.clone().mount(&test.root);
        rest().await;
        first.dispose().await;
        other.mount(&test.root);
        rest().await;
        let after_reload = consumer.state();
        consumer.dispose().await;

        assert_eq!(stuck.state(), State::Loading);
        assert_eq!(after_reload, State::Active);
        assert_eq!(consumer.state(), State::Disposed);
        assert_eq!(test.journal.count("consumer start"), 2);
    });
}

#[test]
fn k_097_a_plugin_starts_even_if_its_handle_is_dropped() {
    kernel(async |test| {
        drop(test.probe("p").mount(&test.root));

        rest().await;

        let states: Vec<_> = test.root.fibers().into_iter().map(|it| (it.path, it.state)).collect();
        assert_eq!(states, [("p".to_owned(), State::Active)]);
    });
}

#[test]
fn k_100_listener_counts_return_to_what_they_were() {
    kernel(async |test| {
        let (host, _) = test.host("host").await;
        hear(&host, &test.journal, "host").unwrap();
        let journal = test.journal.clone();
        let def = define("p", [], async move |ctx| {
            hear(&ctx, &journal, "first")?;
            hear(&ctx, &journal, "second")?;
            Ok(())
        });
        let before = listeners(&test.root);

        let first = test.mount(&def);
        rest().await;
        let mounted = listeners(&test.root);
        first.dispose().await;
        let disposed = listeners(&test.root);
        test.mount(&def);
        rest().await;
        let mounted_again = listeners(&test.root);

        assert_eq!((before, mounted, disposed, mounted_again), (1, 3, 1, 3));
    });
}
