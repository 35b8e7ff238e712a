//! The end of it all.

use std::time::Duration;

use tokio::time::Instant;

use nano_cordis::cordis::Error;

use crate::support::{Gate, at_once, hear, kernel, listeners, rest};

const GRACE: Duration = Duration::from_secs(2);

#[test]
fn k_099_a_shutdown_ends_everything_once() {
    kernel(async |test| {
        let (host, _) = test.host("host").await;
        hear(&host, &test.journal, "heard").unwrap();
        test.probe("provider").gives("x").cleanup_delay(50).mount(&test.root);
        test.probe("consumer").needs("x").mount(&test.root);
        test.probe("child").mount(&host);
        rest().await;
        test.journal.take();

        let first = test.root.shutdown(GRACE).await;
        let second = at_once(test.root.shutdown(GRACE)).await;

        assert!(first.hung.is_empty() && first.failures.is_empty());
        assert!(second);
        assert_eq!(listeners(&test.root), 0);
        assert!(test.root.service_names().is_empty());
        assert!(test.root.fibers().is_empty());
        let mut lines = test.journal.take();
        lines.sort();
        assert_eq!(lines, ["child stop", "consumer stop", "provider stop", "provider stopping"]);
    });
}

#[test]
fn k_099_a_shutdown_returns_what_failed() {
    kernel(async |test| {
        let (ctx, _) = test.host("p").await;
        ctx.effect(|| test.journal.line("E1")).unwrap();
        ctx.effect(|| || Err::<(), _>("boom")).unwrap();

        let shutdown = test.root.shutdown(GRACE).await;

        let [Error::Cleanup { plugin, source }] = shutdown.failures.as_slice() else {
            panic!("one failure was expected, not {:?}", shutdown.failures)
        };
        assert_eq!((plugin.as_str(), source.to_string().as_str()), ("p", "boom"));
        assert_eq!(test.journal.take(), ["E1"]);
        test.reports.take_one();
    });
}

#[test]
fn k_099_what_failed_before_is_not_told_again() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        ctx.effect(|| || Err::<(), _>("boom")).unwrap();
        plugin.dispose().await;
        test.reports.take_one();

        let shutdown = test.root.shutdown(GRACE).await;

        assert!(shutdown.failures.is_empty(), "{:?}", shutdown.failures);
    });
}

#[test]
fn k_099_a_root_that_was_shut_down_mounts_nothing() {
    kernel(async |test| {
        test.root.shutdown(GRACE).await;

        let outcome = test.root.plugin(&test.probe("p").def(), serde_json::Value::Null);

        assert!(matches!(outcome, Err(Error::Inactive { .. })));
    });
}

#[test]
fn k_219_a_shutdown_does_not_wait_longer_than_its_grace() {
    kernel(async |test| {
        test.probe("stuck").body_gate(&Gate::shut()).mount(&test.root);
        test.probe("hangs").cleanup_gate(&Gate::shut()).mount(&test.root);
        test.probe("good").mount(&test.root);
        rest().await;
        let begun = Instant::now();

        let mut shutdown = test.root.shutdown(GRACE).await;

        assert_eq!(begun.elapsed(), GRACE);
        shutdown.hung.sort();
        assert_eq!(shutdown.hung, ["hangs", "stuck"]);
        assert_eq!(test.journal.count("good stop"), 1);
    });
}
