//! The bus: emit, parallel, serial, waterfall.

mod emit;
mod named;
mod order;
mod parallel;
mod serial;
mod waterfall;

use std::rc::Rc;

use nano_cordis::cordis::{
    BoxError, Context, Emit, Error, Next, Parallel, Serial, Undo, Waterfall, What,
};
use serde_json::Value;

use crate::support::{Journal, kernel};

/// An event that says how often it shall be raised again.
struct Again(usize);

impl Emit for Again {
    const NAME: &'static str = "test/again";
}

struct Gather;

impl Parallel for Gather {
    const NAME: &'static str = "test/gather";
    type Input = ();
}

struct Ask;

impl Serial for Ask {
    const NAME: &'static str = "test/ask";
    type Input = ();
    type Answer = Option<String>;
}

/// As scripts ask: the answer is any JSON.
struct AskJson;

impl Serial for AskJson {
    const NAME: &'static str = "test/ask-json";
    type Input = ();
    type Answer = Value;
}

struct Sum;

impl Waterfall for Sum {
    const NAME: &'static str = "test/sum";
    type Input = i64;
    type Output = i64;
}

/// A waterfall listener that writes a line before and after it goes on once.
fn pass_on(ctx: &Context, journal: &Journal, name: &str) -> Result<Undo, Error> {
    let (journal, name) = (journal.clone(), name.to_owned());
    ctx.intercept::<Sum>(async move |_, _, next| {
        journal.push(format!("{name} in"));
        let value = next.run().await;
        journal.push(format!("{name} out"));
        value
    })
}

/// A waterfall listener that writes its name and goes on twice.
fn pass_on_twice(ctx: &Context, journal: &Journal, name: &str) -> Result<Undo, Error> {
    let (journal, name) = (journal.clone(), name.to_owned());
    ctx.intercept::<Sum>(async move |_, _, next: Next<Sum>| {
        journal.push(name.clone());
        next.run().await?;
        next.run().await
    })
}

/// Dispatches a `Sum` whose default writes `default` and yields its input.
async fn sum(ctx: &Context, journal: &Journal, input: i64) -> Result<i64, BoxError> {
    let journal = journal.clone();
    let default = async move |input: Rc<i64>| {
        journal.push("default");
        Ok(*input)
    };
    ctx.waterfall::<Sum>(Rc::new(input), default).await
}

/// Bears the name of `Again` and says nothing.
struct Impostor;

impl Emit for Impostor {
    const NAME: &'static str = Again::NAME;
}

#[test]
fn one_name_with_two_payloads_is_refused_to_the_second() {
    kernel(async |test| {
        test.root.on(|_: &Context, _: &Again| ()).unwrap();

        let refused = test.root.on(|_: &Context, _: &Impostor| ());
        test.root.emit(&Impostor);

        assert!(matches!(refused, Err(Error::EventMismatch { event }) if event == Again::NAME));
        assert_eq!(test.root.listener_count(Again::NAME), 1);
        assert!(matches!(test.reports.take_one().what, What::EventMismatch { .. }));
    });
}

#[test]
fn k_105_every_mode_works_without_listeners() {
    kernel(async |test| {
        let root = &test.root;

        root.emit(&Again(0));
        let gathered = root.parallel::<Gather>(Rc::new(())).await;
        let answer = root.serial::<Ask>(Rc::new(())).await.unwrap();
        let value = root.waterfall::<Sum>(Rc::new(7), async |input| Ok(*input)).await.unwrap();

        assert!(gathered.is_ok());
        assert_eq!(answer, None);
        assert_eq!(value, 7);
    });
}
