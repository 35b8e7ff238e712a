//! Plugin code may wait for anything: what could never end is not waited for.

use serde_json::Value;

use nano_cordis::cordis::{Context, Error, Mount, PluginDef, State, Waited};

use crate::support::{Gate, Journal, Kept, at_once, define, give, kernel, poll_once, rest};

mod circles;

#[test]
fn k_084_a_body_may_dispose_its_own_plugin() {
    kernel(async |test| {
        let own = Kept::<Mount>::default();
        let (kept, journal) = (own.clone(), test.journal.clone());
        own.keep(test.mount(&define("p", [], async move |ctx| {
            ctx.effect(|| journal.line("unwound"))?;
            journal.push(waited(kept.last().dispose().await));
            rest().await;
            journal.push("went on");
            Ok(())
        })));

        own.last().settled().await;

        assert_eq!(test.journal.take(), ["not waited for", "went on", "unwound"]);
        assert_eq!(own.last().state(), State::Disposed);
    });
}

#[test]
fn k_085_a_cleanup_may_dispose_its_own_plugin_during_a_dispose() {
    kernel(async |test| {
        let own = Kept::<Mount>::default();
        own.keep(test.mount(&disposes_in_cleanup("p", [], &own, &test.journal)));
        rest().await;

        own.last().dispose().await;

        assert_eq!(own.last().state(), State::Disposed);
        assert_eq!(test.journal.lines().len(), 1);
    });
}

#[test]
fn k_085_so_it_may_when_the_service_vanished() {
    kernel(async |test| {
        let (host, _) = test.host("host").await;
        let given = give(&host, "x", "value").unwrap();
        let own = Kept::<Mount>::default();
        own.keep(test.mount(&disposes_in_cleanup("p", ["x"], &own, &test.journal)));
        rest().await;

        given.call().await.unwrap();
        rest().await;

        assert_eq!(own.last().state(), State::Disposed);
        assert_eq!(test.journal.take(), ["not waited for"]);
    });
}

#[test]
fn k_086_a_childs_body_may_dispose_its_parent() {
    kernel(async |test| {
        let (children, parents) = (Kept::<Mount>::default(), Kept::<Mount>::default());
        let (kept, journal) = (parents.clone(), test.journal.clone());
        let child = define("child", [], async move |_| {
            journal.push(waited(kept.last().dispose().await));
            Ok(())
        });
        let keeping = children.clone();
        parents.keep(test.mount(&define("parent", [], async move |ctx| {
            keeping.keep(ctx.plugin(&child, Value::Null)?);
            Ok(())
        })));

        rest().await;

        assert_eq!(test.journal.take(), ["not waited for"]);
        assert_eq!(parents.last().state(), State::Disposed);
        assert_eq!(children.last().state(), State::Disposed);
    });
}

/// The parent's body waits for the child, whose body waits for the end of the parent.
#[test]
fn k_086_also_while_the_parent_waits_for_the_child() {
    kernel(async |test| {
        let parents = Kept::<Mount>::default();
        let (kept, journal) = (parents.clone(), test.journal.clone());
        let child = define("child", [], async move |_| {
            journal.push(waited(kept.last().dispose().await));
            Ok(())
        });
        parents.keep(test.mount(&define("parent", [], async move |ctx| {
            ctx.plugin(&child, Value::Null)?.ready().await?;
            Ok(())
        })));

        rest().await;

        assert_eq!(test.journal.take(), ["not waited for"]);
        assert_eq!(parents.last().state(), State::Disposed);
    });
}

#[test]
fn k_087_a_consumers_cleanup_may_dispose_its_provider() {
    kernel(async |test| {
        let providers = Kept::<Mount>::default();
        providers.keep(test.probe("provider").gives("x").mount(&test.root));
        let consumer =
            test.mount(&disposes_in_cleanup("consumer", ["x"], &providers, &test.journal));
        rest().await;
        test.journal.take();

        consumer.dispose().await;
        rest().await;

        assert_eq!(test.journal.take(), ["not waited for", "provider stop"]);
        assert_eq!(consumer.state(), State::Disposed);
        assert_eq!(providers.last().state(), State::Disposed);
    });
}

#[test]
fn k_088_two_cleanups_may_dispose_each_other() {
    kernel(async |test| {
        let (firsts, seconds) = (Kept::<Mount>::default(), Kept::<Mount>::default());
        firsts.keep(test.mount(&disposes_in_cleanup("first", [], &seconds, &test.journal)));
        seconds.keep(test.mount(&disposes_in_cleanup("second", [], &firsts, &test.journal)));
        rest().await;

        firsts.last().dispose().await;
        rest().await;

        assert_eq!(firsts.last().state(), State::Disposed);
        assert_eq!(seconds.last().state(), State::Disposed);
    });
}

#[test]
fn k_088_so_may_three_in_a_ring() {
    kernel(async |test| {
        let kept: [Kept<Mount>; 3] = std::array::from_fn(|_| Kept::default());
        for at in 0..3 {
            let def = disposes_in_cleanup("p", [], &kept[(at + 1) % 3], &test.journal);
            kept[at].keep(test.mount(&def));
        }
        rest().await;

        kept[0].last().dispose().await;
        rest().await;

        assert_eq!(kept.map(|it| it.last().state()), [State::Disposed; 3]);
    });
}

#[test]
fn k_209_a_body_that_waits_for_itself_is_told() {
    kernel(async |test| {
        let own = Kept::<Mount>::default();
        let (kept, journal) = (own.clone(), test.journal.clone());
        own.keep(test.mount(&define("p", [], async move |_| {
            journal.push(ready(&kept.last()).await);
            Ok(())
        })));

        rest().await;

        assert_eq!(test.journal.take(), ["would deadlock"]);
        assert_eq!(own.last().state(), State::Active);
    });
}

#[test]
fn k_209_so_is_a_cleanup() {
    kernel(async |test| {
        let own = Kept::<Mount>::default();
        let (kept, journal) = (own.clone(), test.journal.clone());
        own.keep(test.mount(&define("p", [], async move |ctx| {
            let (kept, journal) = (kept.clone(), journal.clone());
            ctx.effect(|| async move || journal.push(ready(&kept.last()).await))?;
            Ok(())
        })));
        rest().await;

        own.last().dispose().await;

        assert_eq!(test.journal.take(), ["would deadlock"]);
    });
}

#[test]
fn k_209_so_is_a_child_that_waits_for_its_loading_parent() {
    kernel(async |test| {
        let parents = Kept::<Mount>::default();
        let (kept, journal) = (parents.clone(), test.journal.clone());
        let child = define("child", [], async move |_| {
            journal.push(ready(&kept.last()).await);
            Ok(())
        });
        parents.keep(test.mount(&define("parent", [], async move |ctx| {
            ctx.plugin(&child, Value::Null)?.ready().await?;
            Ok(())
        })));

        rest().await;

        assert_eq!(test.journal.take(), ["would deadlock"]);
        assert_eq!(parents.last().state(), State::Active);
    });
}

#[test]
fn k_210_a_second_dispose_returns_at_once_but_settled_waits() {
    kernel(async |test| {
        let gate = Gate::shut();
        let plugin = test.probe("p").cleanup_gate(&gate).mount(&test.root);
        rest().await;
        drop(plugin.dispose());
        rest().await;

        let second = at_once(plugin.dispose()).await;
        let mut settled = Box::pin(plugin.settled());
        let settled_early = poll_once(&mut settled).await.is_some();
        gate.open();
        settled.await;

        assert!(second && !settled_early);
        assert_eq!(plugin.state(), State::Disposed);
    });
}

#[test]
fn k_211_a_cleanup_undone_by_hand_may_dispose_its_plugin() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        ctx.effect(|| test.journal.line("E1")).unwrap();
        let (own, journal) = (plugin.clone(), test.journal.clone());
        let undo = ctx.effect(move || async move || journal.push(waited(own.dispose().await)));

        undo.unwrap().call().await.unwrap();
        rest().await;

        assert_eq!(test.journal.take(), ["not waited for", "E1"]);
        assert_eq!(plugin.state(), State::Disposed);
    });
}

/// Waits that can end are real waits, from plugin code too.
#[test]
fn k_210_plugin_code_waits_for_what_does_not_wait_for_it() {
    kernel(async |test| {
        let other = test.probe("other").cleanup_delay(50).mount(&test.root);
        rest().await;
        let (journal, stopped) = (test.journal.clone(), other.clone());
        let plugin = test.mount(&define("p", [], async move |_| {
            journal.push(waited(stopped.dispose().await));
            Ok(())
        }));

        plugin.ready().await.unwrap();

        assert_eq!(test.journal.take(), ["other start", "other stopping", "other stop", "waited"]);
    });
}

/// A plugin whose cleanup disposes the plugin that is kept there, and awaits that.
fn disposes_in_cleanup<const N: usize>(
    name: &str,
    needs: [&str; N],
    target: &Kept<Mount>,
    journal: &Journal,
) -> PluginDef {
    let (target, journal) = (target.clone(), journal.clone());
    define(name, needs, async move |ctx: Context| {
        let (target, journal) = (target.clone(), journal.clone());
        ctx.effect(|| async move || journal.push(waited(target.last().dispose().await)))?;
        Ok(())
    })
}

fn waited(waited: Waited) -> &'static str {
    match waited {
        Waited::Done => "waited",
        Waited::Requested => "not waited for",
    }
}

async fn ready(mount: &Mount) -> &'static str {
    match mount.ready().await {
        Ok(_) => "ready",
        Err(Error::WouldDeadlock { .. }) => "would deadlock",
        Err(_) => "failed",
    }
}
