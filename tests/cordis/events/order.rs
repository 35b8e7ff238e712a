//! The order of listeners: by number, then by registration, in every mode.

use std::rc::Rc;

use serde_json::Value;

use nano_cordis::cordis::{BoxError, Context, Error, Next, PluginDef, Undo};

use super::{Ask, Gather, Sum, sum};
use crate::support::{Journal, Ping, define, kernel};

#[test]
fn k_213_listeners_of_every_mode_go_by_number_then_by_registration() {
    kernel(async |test| {
        for (order, name) in [(0, "zero"), (5, "last"), (-5, "first"), (0, "zero again")] {
            register_all(&test.root, &test.journal, order, name).unwrap();
        }

        test.root.emit(&Ping);
        test.root.parallel::<Gather>(Rc::new(())).await.unwrap();
        test.root.serial::<Ask>(Rc::new(())).await.unwrap();
        test.root.waterfall::<Sum>(Rc::new(0), async |_| Ok(0)).await.unwrap();

        let once = ["first", "zero", "zero again", "last"];
        assert_eq!(test.journal.lines(), once.repeat(4));
    });
}

#[test]
fn k_213_the_default_order_is_zero() {
    kernel(async |test| {
        line_at(&test.root, &test.journal, 1, "one").unwrap();
        line_at(&test.root, &test.journal, -1, "minus one").unwrap();
        let journal = test.journal.clone();
        test.root.on(move |_: &Context, _: &Ping| journal.push("default")).unwrap();

        test.root.emit(&Ping);

        assert_eq!(test.journal.lines(), ["minus one", "default", "one"]);
    });
}

#[test]
fn k_213_a_reload_keeps_the_order() {
    kernel(async |test| {
        let deciding = interceptor("deciding", -100, &test.journal);
        let asking = interceptor("asking", 100, &test.journal);
        let first = test.mount(&deciding);
        test.mount(&interceptor("watching", 0, &test.journal)).ready().await.unwrap();
        test.mount(&asking).ready().await.unwrap();

        sum(&test.root, &test.journal, 0).await.unwrap();
        let before = test.journal.take();
        first.dispose().await;
        test.root.plugin(&deciding, Value::Null).unwrap().ready().await.unwrap();
        sum(&test.root, &test.journal, 0).await.unwrap();

        assert_eq!(before, ["deciding", "watching", "asking", "default"]);
        assert_eq!(test.journal.lines(), before);
    });
}

/// Registers a listener of each mode that writes `name`.
fn register_all(ctx: &Context, journal: &Journal, order: i32, name: &str) -> Result<(), Error> {
    line_at(ctx, journal, order, name)?;
    let line = writer(journal, name);
    ctx.on_parallel_at::<Gather>(order, async move |_, _| {
        line();
        Ok(())
    })?;
    let line = writer(journal, name);
    ctx.answer_at::<Ask>(order, async move |_, _| {
        line();
        Ok(None)
    })?;
    let line = writer(journal, name);
    ctx.intercept_at::<Sum>(order, async move |_, _, next: Next<Sum>| {
        line();
        next.run().await
    })?;
    Ok(())
}

fn line_at(ctx: &Context, journal: &Journal, order: i32, name: &str) -> Result<Undo, Error> {
    let line = writer(journal, name);
    ctx.on_at(order, move |_: &Context, _: &Ping| line())
}

fn writer(journal: &Journal, name: &str) -> impl Fn() + use<> {
    let (journal, name) = (journal.clone(), name.to_owned());
    move || journal.push(name.clone())
}

/// A plugin with one waterfall listener that writes its name and goes on.
fn interceptor(name: &'static str, order: i32, journal: &Journal) -> PluginDef {
    let journal = journal.clone();
    define(name, [], async move |ctx| {
        let line = writer(&journal, name);
        let passing = async move |_, _, next: Next<Sum>| {
            line();
            next.run().await
        };
        ctx.intercept_at::<Sum>(order, passing)?;
        Ok::<(), BoxError>(())
    })
}
