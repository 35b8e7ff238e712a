//! One name, one provider.

use nano_cordis::cordis::{Error, State, What};

use crate::support::{Kept, define, get, give, kernel, rest};

#[test]
fn k_050_a_name_that_is_held_cannot_be_provided_again() {
    kernel(async |test| {
        let (holder, _) = test.host("holder").await;
        give(&holder, "x", "first").unwrap();
        let (other, _) = test.host("other").await;

        let outcome = give(&other, "x", "second");

        let Err(Error::DuplicateService { service, owner }) = outcome.map(drop) else {
            panic!("the second provision was accepted")
        };
        assert_eq!((service.as_str(), owner.as_str()), ("x", "holder"));
        assert_eq!(get(&test.root, "x").as_deref(), Some("first"));
    });
}

#[test]
fn k_051_a_body_that_fails_on_a_held_name_disturbs_nobody() {
    kernel(async |test| {
        let holder = test.probe("holder").gives("x").mount(&test.root);
        let consumer = test.probe("consumer").needs("x").mount(&test.root);
        rest().await;

        let loser = test.probe("loser").gives("x").mount(&test.root);
        rest().await;

        let lines = test.journal.take();
        assert_eq!(lines, ["holder start", "consumer start", "loser start", "loser stop"]);
        let states = [holder.state(), consumer.state(), loser.state()];
        assert_eq!(states, [State::Active, State::Active, State::Failed]);
        assert!(matches!(test.reports.take_one().what, What::BodyFailed));
    });
}

#[test]
fn k_052_the_loser_stays_failed_when_the_name_is_free() {
    kernel(async |test| {
        let holder = test.probe("holder").gives("x").mount(&test.root);
        rest().await;
        let loser = test.probe("loser").gives("x").mount(&test.root);
        rest().await;

        holder.dispose().await;
        rest().await;

        assert_eq!(loser.state(), State::Failed);
        assert_eq!(get(&test.root, "x"), None);
        assert_eq!(test.journal.count("loser start"), 1);
        test.reports.take_one();
    });
}

#[test]
fn k_053_a_name_is_free_after_its_provider_is_disposed() {
    kernel(async |test| {
        let first = test.probe("first").gives("x").mount(&test.root);
        rest().await;
        first.dispose().await;

        let second = test.probe("second").gives("x").mount(&test.root);
        rest().await;

        assert_eq!(second.state(), State::Active);
        assert_eq!(get(&test.root, "x").as_deref(), Some("second"));
    });
}

/// The same when the loser catches the error: it runs on without the service.
#[test]
fn k_050_a_body_may_catch_the_refusal() {
    kernel(async |test| {
        test.probe("holder").gives("x").mount(&test.root);
        rest().await;
        let refusals = Kept::default();
        let keeping = refusals.clone();

        let plugin = test.mount(&define("careful", [], async move |ctx| {
            keeping.keep(give(&ctx, "x", "mine").is_err());
            Ok(())
        }));
        rest().await;

        assert!(refusals.last());
        assert_eq!(plugin.state(), State::Active);
        assert_eq!(get(&test.root, "x").as_deref(), Some("holder"));
    });
}
