//! Who may read which service, and what a read says when it cannot answer.

use std::rc::Rc;

use serde_json::Value;

use nano_cordis::cordis::{
    BoxError, Context, Error, Mount, NoConfig, Optional, Service, State, Svc, plugin,
};

use crate::support::{Gate, Kept, Label, Test, define, get, give, kernel, read, rest};

/// A service with a type of its own, under the name that the labels of these tests have.
struct Number(u32);

impl Service for Number {
    const NAME: &'static str = "x";
}

#[test]
fn k_039_an_undeclared_service_cannot_be_read() {
    kernel(async |test| {
        let (reader, _) = test.host("reader").await;

        let outcome = read(&reader, "x");

        let Err(Error::Undeclared { service, plugin }) = outcome else { panic!("not {outcome:?}") };
        assert_eq!((service.as_str(), plugin.as_str()), ("x", "reader"));
    });
}

#[test]
fn k_040_a_declared_service_can_be_read() {
    kernel(async |test| {
        test.probe("provider").gives("x").mount(&test.root);

        let (ctx, _) = consumer(&test, "consumer").await;

        assert_eq!(read(&ctx, "x").unwrap(), "provider");
    });
}

#[test]
fn k_040_an_argument_is_a_declaration() {
    kernel(async |test| {
        let (host, _) = test.host("host").await;
        host.provide(Rc::new(Number(7))).unwrap();
        let numbers = Kept::default();
        let keeping = numbers.clone();

        test.mount(&plugin(move |ctx: Context, _: NoConfig, number: Svc<Number>| {
            keeping.keep((number.0, ctx.service::<Number>().map(|it| it.0)));
            async { Ok::<_, BoxError>(()) }
        }));
        rest().await;

        let (argument, by_type) = numbers.last();
        assert_eq!((argument, by_type.unwrap()), (7, 7));
    });
}

#[test]
fn k_041_a_service_that_went_away_is_unavailable() {
    kernel(async |test| {
        let provider = test.probe("provider").gives("x").mount(&test.root);
        let (ctx, _) = consumer(&test, "consumer").await;
        provider.dispose().await;

        let outcome = read(&ctx, "x");

        let Err(Error::Unavailable { service, plugin }) = outcome else {
            panic!("not {outcome:?}")
        };
        assert_eq!((service.as_str(), plugin.as_str()), ("x", "consumer"));
    });
}

#[test]
fn k_042_a_provider_reads_its_own_service_in_its_body() {
    kernel(async |test| {
        let seen = Kept::default();
        let keeping = seen.clone();
        test.mount(&define("provider", [], async move |ctx| {
            give(&ctx, "x", "own")?;
            keeping.keep((read(&ctx, "x").ok(), get(&ctx, "x")));
            Ok(())
        }));
        rest().await;

        assert_eq!(seen.last(), (Some("own".to_owned()), None));
    });
}

#[test]
fn k_043_a_child_reads_what_its_parent_declares() {
    kernel(async |test| {
        test.probe("provider").gives("x").mount(&test.root);
        let (parent, _) = consumer(&test, "parent").await;

        let child = child_of(&parent).await;

        assert_eq!(read(&child, "x").unwrap(), "provider");
    });
}

#[test]
fn k_044_a_child_reads_what_its_loading_parent_provides() {
    kernel(async |test| {
        let seen = Kept::default();
        let keeping = seen.clone();
        let parent = test.mount(&define("parent", [], async move |ctx| {
            give(&ctx, "x", "of the parent")?;
            keeping.keep(read(&child_of(&ctx).await, "x").ok());
            std::future::pending().await
        }));
        rest().await;

        assert_eq!(parent.state(), State::Loading);
        assert_eq!(seen.last().as_deref(), Some("of the parent"));
    });
}

#[test]
fn k_045_so_does_a_grandchild() {
    kernel(async |test| {
        let seen = Kept::default();
        let keeping = seen.clone();
        let parent = test.mount(&define("parent", [], async move |ctx| {
            give(&ctx, "x", "of the grandparent")?;
            let child = child_of(&ctx).await;
            keeping.keep(read(&child_of(&child).await, "x").ok());
            std::future::pending().await
        }));
        rest().await;

        assert_eq!(parent.state(), State::Loading);
        assert_eq!(seen.last().as_deref(), Some("of the grandparent"));
    });
}

#[test]
fn k_046_a_siblings_service_must_be_declared() {
    kernel(async |test| {
        test.probe("sibling").gives("x").mount(&test.root);
        let (reader, _) = test.host("reader").await;

        let outcome = read(&reader, "x");

        assert!(matches!(outcome, Err(Error::Undeclared { .. })), "not {outcome:?}");
    });
}

#[test]
fn k_047_an_optional_read_needs_no_declaration() {
    kernel(async |test| {
        test.probe("sibling").gives("x").mount(&test.root);
        let (reader, _) = test.host("reader").await;

        assert_eq!(get(&reader, "x").as_deref(), Some("sibling"));
    });
}

#[test]
fn k_048_an_optional_read_of_an_unknown_name_is_absent() {
    kernel(async |test| {
        let (reader, _) = test.host("reader").await;

        assert_eq!(get(&reader, "nobody gives this"), None);
    });
}

#[test]
fn k_049_an_optional_read_sees_no_provider_that_loads_or_unloads() {
    kernel(async |test| {
        let (loading, unloading) = (Gate::shut(), Gate::shut());
        let provider =
            test.probe("provider").gives("x").body_gate(&loading).cleanup_gate(&unloading);
        let provider = provider.mount(&test.root);
        rest().await;
        let while_loading = (provider.state(), get(&test.root, "x"));
        loading.open();
        rest().await;
        let while_active = get(&test.root, "x");

        let disposing = provider.dispose();
        rest().await;
        let while_unloading = (provider.state(), get(&test.root, "x"));
        unloading.open();
        disposing.await;

        assert_eq!(while_loading, (State::Loading, None));
        assert_eq!(while_active.as_deref(), Some("provider"));
        assert_eq!(while_unloading, (State::Unloading, None));
    });
}

#[test]
fn k_064_a_read_by_name_of_another_type_is_an_error() {
    kernel(async |test| {
        let (host, _) = test.host("host").await;
        host.provide(Rc::new(Number(7))).unwrap();
        let (ctx, _) = consumer(&test, "consumer").await;

        let outcome = ctx.service_named::<Label>("x").map(drop);

        let Err(Error::TypeMismatch { service, plugin }) = outcome else {
            panic!("not {outcome:?}")
        };
        assert_eq!((service.as_str(), plugin.as_str()), ("x", "consumer"));
    });
}

#[test]
fn k_064_a_declared_need_of_another_type_fails_instead_of_waiting() {
    kernel(async |test| {
        let (host, _) = test.host("host").await;
        give(&host, "x", "no number").unwrap();
        let needing =
            plugin(|_: Context, _: NoConfig, _: Svc<Number>| async { Ok::<_, BoxError>(()) });

        let consumer = test.mount(&needing.named("consumer"));
        rest().await;

        assert_eq!(consumer.state(), State::Failed);
        let Some(Error::Body { source, .. }) = consumer.error() else { panic!("it has no error") };
        let cause = source.downcast_ref::<Error>();
        assert!(matches!(cause, Some(Error::TypeMismatch { .. })), "not {cause:?}");
        test.reports.take_one();
    });
}

#[test]
fn k_061_an_optional_argument_restarts_nobody() {
    kernel(async |test| {
        let kept = Kept::default();
        let (keeping, journal) = (kept.clone(), test.journal.clone());
        let def = plugin(move |_: Context, _: NoConfig, number: Optional<Number>| {
            journal.push("start");
            keeping.keep(Rc::new(number));
            async { Ok::<_, BoxError>(()) }
        });
        test.mount(&def.named("reader"));
        let (host, provider) = test.host("host").await;
        let number = kept.last();
        let before = number.get().map(|it| it.0);

        host.provide(Rc::new(Number(7))).unwrap();
        rest().await;
        let while_there = number.get().map(|it| it.0);
        provider.dispose().await;
        rest().await;

        assert_eq!((before, while_there, number.get().map(|it| it.0)), (None, Some(7), None));
        assert_eq!(test.journal.take(), ["start"]);
    });
}

/// A running plugin that needs `x`, and its context.
async fn consumer(test: &Test, name: &str) -> (Context, Mount) {
    let kept = Kept::default();
    let mount = test.mount(&define(name, ["x"], kept.context()));
    rest().await;
    (kept.last(), mount)
}

/// The context of a running child that declares nothing.
async fn child_of(parent: &Context) -> Context {
    let kept = Kept::default();
    let child = parent.plugin(&define("child", [], kept.context()), Value::Null).unwrap();
    child.ready().await.unwrap();
    kept.last()
}
