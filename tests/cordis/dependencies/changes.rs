//! A service that is replaced: nobody rests on the old one.

use nano_cordis::cordis::{Error, State};

use crate::support::{Gate, Kept, define, get, give, kernel, poll_once, read, rest};

#[test]
fn k_054_a_consumer_moves_to_the_new_provider_once() {
    kernel(async |test| {
        let first = test.probe("first").gives("x").mount(&test.root);
        let kept = Kept::default();
        let (keeping, journal) = (kept.clone(), test.journal.clone());
        test.mount(&define("consumer", ["x"], async move |ctx| {
            journal.push(format!("consumer reads {}", read(&ctx, "x")?));
            ctx.effect(|| journal.line("consumer stops"))?;
            keeping.keep(ctx);
            Ok(())
        }));
        rest().await;

        first.dispose().await;
        test.probe("second").gives("x").mount(&test.root);
        rest().await;

        let lines: Vec<_> =
            test.journal.take().into_iter().filter(|it| it.contains("consumer")).collect();
        assert_eq!(lines, ["consumer reads first", "consumer stops", "consumer reads second"]);
        assert_eq!(read(&kept.last(), "x").unwrap(), "second");
    });
}

#[test]
fn k_055_a_service_replaced_while_a_body_runs_is_noticed() {
    kernel(async |test| {
        let gate = Gate::shut();
        let (host, _) = test.host("host").await;
        let given = give(&host, "x", "old").unwrap();
        let kept = Kept::default();
        let (keeping, journal, blocked) = (kept.clone(), test.journal.clone(), gate.clone());
        let consumer = test.mount(&define("consumer", ["x"], async move |ctx| {
            journal.push(format!("starts with {}", read(&ctx, "x")?));
            keeping.keep(ctx);
            blocked.pass().await;
            Ok(())
        }));
        rest().await;

        drop(given.call());
        give(&host, "x", "new").unwrap();
        rest().await;
        gate.open();
        rest().await;

        assert_eq!(test.journal.take(), ["starts with old", "starts with new"]);
        assert_eq!(consumer.state(), State::Active);
        assert_eq!(read(&kept.last(), "x").unwrap(), "new");
    });
}

#[test]
fn k_059_a_failed_consumer_is_not_tried_again() {
    kernel(async |test| {
        let (host, _) = test.host("host").await;
        let given = give(&host, "x", "value").unwrap();
        let consumer = test.probe("consumer").needs("x").fails("boom").mount(&test.root);
        rest().await;

        given.call().await.unwrap();
        rest().await;
        give(&host, "x", "value").unwrap();
        rest().await;

        assert_eq!(test.journal.count("consumer start"), 1);
        assert_eq!(consumer.state(), State::Failed);
        test.reports.take_one();
    });
}

#[test]
fn k_222_a_withdrawal_frees_the_name_at_once() {
    kernel(async |test| {
        let (host, _) = test.host("host").await;
        let given = give(&host, "x", "old").unwrap();

        drop(given.call());
        let again = give(&host, "x", "new");

        assert!(again.is_ok());
        assert_eq!(get(&test.root, "x").as_deref(), Some("new"));
    });
}

#[test]
fn k_222_a_withdrawal_ends_when_every_consumer_rests() {
    kernel(async |test| {
        let gate = Gate::shut();
        let (host, _) = test.host("host").await;
        let given = give(&host, "x", "value").unwrap();
        let consumer = test.probe("consumer").needs("x").cleanup_gate(&gate).mount(&test.root);
        rest().await;

        let mut withdrawing = Box::pin(given.call());
        rest().await;
        let done_early = poll_once(&mut withdrawing).await.is_some();
        gate.open();
        withdrawing.await.unwrap();

        assert!(!done_early);
        assert_eq!(consumer.state(), State::Pending);
    });
}

#[test]
fn k_222_an_unload_holds_the_name_until_its_turn() {
    kernel(async |test| {
        let gate = Gate::shut();
        let (host, provider) = test.host("provider").await;
        let (other, _) = test.host("other").await;
        give(&host, "x", "old").unwrap();
        host.effect(|| test.journal.gated("later effect", &gate)).unwrap();

        let disposing = provider.dispose();
        rest().await;
        let too_early = give(&other, "x", "new");
        gate.open();
        disposing.await;
        let in_time = give(&other, "x", "new");

        assert!(too_early.is_err());
        assert!(in_time.is_ok());
    });
}

/// The provider's unload waits for those who use what is being withdrawn, before it closes anything.
#[test]
fn k_222_a_provider_disposed_during_a_withdrawal_closes_after_its_consumers() {
    kernel(async |test| {
        let (host, provider) = test.host("provider").await;
        let given = give(&host, "x", "value").unwrap();
        host.effect(|| test.journal.line("closed")).unwrap();
        test.probe("consumer")
            .needs("x")
            .cleanup_delay(10)
            .mount(&test.root)
            .ready()
            .await
            .unwrap();

        let withdrawing = given.call();
        provider.dispose().await;
        withdrawing.await.unwrap();

        let expected = ["consumer start", "consumer stopping", "consumer stop", "closed"];
        assert_eq!(test.journal.take(), expected);
    });
}

#[test]
fn k_222_what_is_being_withdrawn_is_not_ones_own_any_more() {
    kernel(async |test| {
        let (host, _) = test.host("provider").await;
        let given = give(&host, "x", "value").unwrap();
        test.probe("consumer")
            .needs("x")
            .cleanup_delay(10)
            .mount(&test.root)
            .ready()
            .await
            .unwrap();

        let withdrawing = given.call();
        let read = read(&host, "x");
        withdrawing.await.unwrap();

        assert!(matches!(read, Err(Error::Undeclared { .. })));
    });
}
