//! Random waterfall chains, compared with a naive recursive model in journal and value.

use std::rc::Rc;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any};

use nano_cordis::cordis::{BoxError, Context, Next, Waterfall};

use super::check;
use crate::support::{Journal, kernel};

const CASES: u32 = 300;

struct Chain;

impl Waterfall for Chain {
    const NAME: &'static str = "test/chain";
    type Input = i64;
    type Output = i64;
}

/// What a listener does: goes on so often, each time with its input or a greater one, then fails or adds up.
#[derive(Clone, Debug)]
struct Listener {
    calls: Vec<bool>,
    fails: bool,
    catches: bool,
}

#[test]
fn random_waterfalls_equal_a_recursive_model() {
    let listener = (vec(any::<bool>(), 0..=2), 0..10u8, any::<bool>())
        .prop_map(|(calls, fate, catches)| Listener { calls, fails: fate == 0, catches });
    check(CASES, &(vec(listener, 0..7), any::<bool>()), |(chain, default_fails)| {
        kernel(async |test| {
            let expected = Journal::default();
            let wanted = model(&expected, &chain, default_fails, 0, 1);
            for (at, listener) in chain.into_iter().enumerate() {
                register(&test.root, &test.journal, at, listener);
            }

            let journal = test.journal.clone();
            let default = async move |input: Rc<i64>| end(&journal, default_fails, *input);
            let value = test.root.waterfall::<Chain>(Rc::new(1), default).await;

            assert_eq!(value.map_err(|err| err.to_string()), wanted);
            assert_eq!(test.journal.lines(), expected.lines());
        });
    });
}

fn register(ctx: &Context, journal: &Journal, at: usize, listener: Listener) {
    let journal = journal.clone();
    let run = async move |_, input: Rc<i64>, next: Next<Chain>| {
        journal.push(format!("{at} in {input}"));
        let mut sum = *input;
        for replaced in &listener.calls {
            let value = match replaced {
                true => next.run_with(Rc::new(*input + 1)).await,
                false => next.run().await,
            };
            sum = add(sum, value, listener.catches)?;
        }
        journal.push(format!("{at} out {sum}"));
        if listener.fails { Err(failure(at)) } else { Ok(sum) }
    };
    ctx.intercept::<Chain>(run).expect("the root accepts listeners");
}

fn model(
    journal: &Journal,
    chain: &[Listener],
    default_fails: bool,
    at: usize,
    input: i64,
) -> Result<i64, String> {
    let Some(listener) = chain.get(at) else {
        return end(journal, default_fails, input).map_err(|err| err.to_string());
    };
    journal.push(format!("{at} in {input}"));
    let mut sum = input;
    for replaced in &listener.calls {
        let value = model(journal, chain, default_fails, at + 1, input + i64::from(*replaced));
        sum = add(sum, value, listener.catches)?;
    }
    journal.push(format!("{at} out {sum}"));
    if listener.fails { Err(failure(at).to_string()) } else { Ok(sum) }
}

/// Adds a value; a failure passes through, or counts as a hundred for a listener that catches it.
fn add<E>(sum: i64, value: Result<i64, E>, catches: bool) -> Result<i64, E> {
    match value {
        Err(_) if catches => Ok(sum + 100),
        other => other.map(|value| sum + value),
    }
}

fn failure(at: usize) -> BoxError {
    format!("listener {at} fails").into()
}

fn end(journal: &Journal, fails: bool, input: i64) -> Result<i64, BoxError> {
    journal.push(format!("default {input}"));
    if fails { Err("the default fails".into()) } else { Ok(input) }
}
