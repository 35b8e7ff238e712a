//! Circles that close in less obvious ways.

use std::time::Duration;

use serde_json::Value;

use nano_cordis::cordis::{Context, Mount, State, Undo, Waited};

use super::{ready, waited};
use crate::support::{Gate, Kept, define, give, kernel, rest};

#[test]
fn k_085_a_plugin_disposed_by_its_own_cleanup_comes_to_rest() {
    kernel(async |test| {
        let (host, _) = test.host("host").await;
        let given = give(&host, "x", "value").unwrap();
        let own = Kept::<Mount>::default();
        let kept = own.clone();
        own.keep(test.mount(&define("p", ["x"], async move |ctx| {
            let kept = kept.clone();
            ctx.effect(|| move || drop(kept.last().dispose()))?;
            Ok(())
        })));
        rest().await;

        given.call().await.unwrap();
        let outcome = own.last().settled().await;

        assert_eq!((outcome, own.last().state()), (Waited::Done, State::Disposed));
    });
}

#[test]
fn k_086_a_consumers_body_may_dispose_its_provider() {
    kernel(async |test| {
        let provider = test.probe("provider").gives("x").mount(&test.root);
        let (journal, target) = (test.journal.clone(), provider.clone());
        let consumer = test.mount(&define("consumer", ["x"], async move |_| {
            journal.push(waited(target.dispose().await));
            Ok(())
        }));

        rest().await;

        assert_eq!(test.journal.take(), ["provider start", "not waited for", "provider stop"]);
        assert_eq!((provider.state(), consumer.state()), (State::Disposed, State::Pending));
    });
}

#[test]
fn k_087_a_consumers_cleanup_may_withdraw_the_service() {
    kernel(async |test| {
        let (host, _) = test.host("host").await;
        let given = give(&host, "x", "value").unwrap();
        let (journal, undo) = (test.journal.clone(), given.clone());
        let consumer = test.mount(&define("consumer", ["x"], async move |ctx| {
            let (journal, undo) = (journal.clone(), undo.clone());
            ctx.effect(|| {
                async move || {
                    let outcome = undo.call().await;
                    journal.push(outcome.map_or("failed", waited));
                }
            })?;
            Ok(())
        }));
        rest().await;

        consumer.dispose().await;
        rest().await;

        assert_eq!(test.journal.take(), ["not waited for"]);
        assert_eq!(consumer.state(), State::Disposed);
        assert!(give(&host, "x", "again").is_ok());
    });
}

/// One waits for the end of the other by hand, the other for the rest of the first.
#[test]
fn k_088_a_circle_through_an_undo_by_hand_gives_way() {
    kernel(async |test| {
        let (first, one) = test.host("first").await;
        let (second, two) = test.host("second").await;
        let (journal, target) = (test.journal.clone(), two.clone());
        let undo: Undo = first
            .effect(|| {
                async move || journal.push(format!("first {}", waited(target.dispose().await)))
            })
            .unwrap();
        let (journal, target) = (test.journal.clone(), one.clone());
        second
            .effect(|| {
                async move || journal.push(format!("second {}", waited(target.dispose().await)))
            })
            .unwrap();

        undo.call().await.unwrap();
        rest().await;

        assert_eq!(test.journal.take(), ["second not waited for", "first waited"]);
        assert_eq!((one.state(), two.state()), (State::Disposed, State::Disposed));
    });
}

#[test]
fn k_209_a_circle_through_a_third_plugin_is_told() {
    kernel(async |test| {
        let first = Kept::<Mount>::default();
        let gate = Gate::shut();
        let (kept, journal, blocked) = (first.clone(), test.journal.clone(), gate.clone());
        let third = test.mount(&define("third", [], async move |_| {
            blocked.pass().await;
            journal.push(format!("third {}", ready(&kept.last()).await));
            Ok(())
        }));
        let (journal, target) = (test.journal.clone(), third);
        let second = test.mount(&define("second", [], async move |_| {
            journal.push(format!("second {}", ready(&target).await));
            Ok(())
        }));
        let (journal, target) = (test.journal.clone(), second);
        first.keep(test.mount(&define("first", [], async move |_| {
            journal.push(format!("first {}", ready(&target).await));
            Ok(())
        })));
        rest().await;

        gate.open();
        rest().await;

        assert_eq!(test.journal.take(), ["third would deadlock", "second ready", "first ready"]);
    });
}

#[test]
fn k_210_settled_in_a_circle_gives_way() {
    kernel(async |test| {
        let parents = Kept::<Mount>::default();
        let (kept, journal) = (parents.clone(), test.journal.clone());
        let child = define("child", [], async move |ctx| {
            let (kept, journal) = (kept.clone(), journal.clone());
            ctx.effect(|| async move || journal.push(waited(kept.last().settled().await)))?;
            Ok(())
        });
        parents.keep(test.mount(&define("parent", [], async move |ctx| {
            ctx.plugin(&child, Value::Null)?;
            Ok(())
        })));
        rest().await;

        parents.last().dispose().await;

        assert_eq!(test.journal.take(), ["not waited for"]);
    });
}

/// Two kernels on one thread give the same ids to different plugins.
#[test]
fn k_209_a_plugin_of_another_kernel_is_not_taken_for_ones_own() {
    kernel(async |test| {
        let outcomes = Kept::default();
        let seen = outcomes.clone();
        let plugin = test.mount(&define("embedder", [], async move |_| {
            let inner = Context::root_with(|_| {});
            for _ in 0..3 {
                let slow = define("inner", [], async |_| {
                    rest().await;
                    Ok(())
                });
                seen.keep(inner.plugin(&slow, Value::Null)?.ready().await?);
            }
            inner.shutdown(Duration::from_secs(1)).await;
            Ok(())
        }));

        plugin.ready().await.unwrap();

        assert_eq!(outcomes.all(), [State::Active; 3]);
    });
}
