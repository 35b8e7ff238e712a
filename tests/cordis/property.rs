//! Random sequences, compared with simple models.

mod emit;
mod journal;
mod lifecycle;
mod lists;
mod solver;
mod waits;
mod waterfall;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestRunner};

/// Runs a property over so many random cases, the same ones each time, and shrinks one that fails.
fn check<S: Strategy>(cases: u32, strategy: &S, property: impl Fn(S::Value)) {
    let config = Config {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(20_260_513),
        ..Config::default()
    };
    let result = TestRunner::new(config).run(strategy, |case| {
        property(case);
        Ok(())
    });
    let failure = result.err().map(|it| it.to_string());
    assert!(failure.is_none(), "{}", failure.unwrap_or_default());
}
