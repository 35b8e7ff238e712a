//! A body that fails: who learns of it, how often, and what it leaves behind.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use nano_cordis::cordis::{BoxError, Context, Error, Panic, PluginDef, State, What, plugin};

use crate::support::{
    Gate, Journal, Ping, define, give, hear, kernel, listeners, pass, rest, states,
};

#[test]
fn k_070_the_error_of_a_body_comes_back() {
    kernel(async |test| {
        let plugin = test.probe("p").fails("boom").mount(&test.root);

        let outcome = plugin.ready().await;

        let Err(Error::Body { plugin: name, source }) = outcome else { panic!("not {outcome:?}") };
        assert_eq!((name.as_str(), source.to_string().as_str()), ("p", "boom"));
        assert_eq!(plugin.state(), State::Failed);
        assert!(matches!(test.reports.take_one().what, What::BodyFailed));
    });
}

#[derive(Deserialize, JsonSchema)]
struct Config {
    /// How many.
    count: u32,
}

#[test]
fn k_071_a_plugin_with_invalid_config_never_runs() {
    kernel(async |test| {
        let journal = test.journal.clone();
        let def = plugin(move |_: Context, config: Config| {
            journal.push(format!("ran with {}", config.count));
            async { Ok::<_, BoxError>(()) }
        });
        let plugin = test.root.plugin(&def.named("p"), json!({ "count": "many" })).unwrap();
        let when_mounted = plugin.state();
        rest().await;
        let after_a_tick = plugin.state();

        let outcome = plugin.ready().await;

        let Err(Error::Config(refusal)) = outcome else { panic!("not {outcome:?}") };
        assert_eq!((refusal.plugin.as_str(), refusal.faults[0].path.as_str()), ("p", "count"));
        assert_eq!((when_mounted, after_a_tick), (State::Pending, State::Failed));
        assert!(test.journal.take().is_empty());
        assert!(matches!(test.reports.take_one().what, What::ConfigRefused));
    });
}

#[test]
fn k_072_a_failure_comes_back_at_every_wait() {
    kernel(async |test| {
        let plugin = test.probe("p").fails("boom").mount(&test.root);
        let first = plugin.ready().await.unwrap_err();
        pass(60_000).await;

        let second = plugin.ready().await.unwrap_err();

        assert!(matches!(second, Error::Body { .. }), "not {second:?}");
        assert_eq!(first.to_string(), second.to_string());
        test.reports.take_one();
    });
}

#[test]
fn k_073_a_failure_nobody_waits_for_is_one_report() {
    kernel(async |test| {
        let (other, _) = test.host("other").await;
        hear(&other, &test.journal, "other hears").unwrap();

        test.probe("p").fails("boom").mount(&test.root);
        pass(60_000).await;
        test.root.emit(&Ping);

        let report = test.reports.take_one();
        assert_eq!(report.plugin, "p");
        assert!(matches!(report.what, What::BodyFailed), "{report}");
        assert_eq!(test.journal.count("other hears"), 1);
    });
}

#[test]
fn k_074_two_mounts_of_one_plugin_fail_separately() {
    kernel(async |test| {
        let def = fails_if_told(&test.journal);
        let good = test.root.plugin(&def, json!({ "fail": false })).unwrap();
        let bad = test.root.plugin(&def, json!({ "fail": true })).unwrap();
        rest().await;

        test.root.emit(&Ping);

        assert_eq!((good.state(), bad.state()), (State::Active, State::Failed));
        assert_eq!(test.journal.take(), ["heard"]);
        test.reports.take_one();
    });
}

fn fails_if_told(journal: &Journal) -> PluginDef {
    let journal = journal.clone();
    PluginDef::dynamic("p", &json!([]), None, move |ctx, config| {
        let journal = journal.clone();
        Box::pin(async move {
            hear(&ctx, &journal, "heard")?;
            if config["fail"] == Value::Bool(true) {
                return Err("told to".into());
            }
            Ok(None)
        })
    })
    .unwrap()
}

#[test]
fn k_094_a_panic_in_a_body_is_an_error() {
    kernel(async |test| {
        let journal = test.journal.clone();
        let plugin = test.mount(&define("p", [], async move |ctx| {
            ctx.effect(|| journal.line("unwound"))?;
            panic!("boom")
        }));

        let outcome = plugin.ready().await;

        let Err(Error::Body { source, .. }) = outcome else { panic!("not {outcome:?}") };
        let caught = source.downcast_ref::<Panic>().expect("a caught panic");
        assert_eq!(caught.message, "boom");
        assert!(caught.place.contains("failures.rs"), "{}", caught.place);
        assert_eq!(plugin.state(), State::Failed);
        assert_eq!(test.journal.take(), ["unwound"]);
        assert!(matches!(test.reports.take_one().what, What::BodyFailed));
    });
}

/// Not only inside the future: the function that makes the future may panic too.
#[test]
fn k_094_so_is_a_panic_before_the_first_await() {
    kernel(async |test| {
        let def = PluginDef::dynamic("p", &json!([]), None, |_, _| panic!("boom")).unwrap();
        let plugin = test.mount(&def);

        let outcome = plugin.ready().await;

        assert!(matches!(outcome, Err(Error::Body { .. })), "not {outcome:?}");
        assert_eq!(plugin.state(), State::Failed);
        test.reports.take_one();
    });
}

#[test]
fn k_220_a_body_that_fails_because_its_service_vanished_has_not_failed() {
    kernel(async |test| {
        let gate = Gate::shut();
        let (host, _) = test.host("host").await;
        let given = give(&host, "x", "value").unwrap();
        let plugin =
            test.probe("p").needs("x").body_gate(&gate).fails("x is gone").mount(&test.root);
        let seen = states(&plugin);
        rest().await;

        drop(given.call());
        gate.open();
        rest().await;

        assert_eq!(seen.take(), ["PENDING", "LOADING", "UNLOADING", "PENDING"]);
        assert_eq!(test.journal.take(), ["p start", "p stop"]);
        let report = test.reports.take_one();
        assert_eq!(report.plugin, "p");
        assert!(matches!(report.what, What::Superseded), "{report}");
    });
}

#[test]
fn k_220_it_starts_again_when_the_service_returns() {
    kernel(async |test| {
        let gate = Gate::shut();
        let (host, _) = test.host("host").await;
        let given = give(&host, "x", "value").unwrap();
        let (blocked, journal) = (gate.clone(), test.journal.clone());
        let plugin = test.mount(&define("p", ["x"], async move |_| {
            journal.push("start");
            match blocked.arrived() {
                0 => blocked.pass().await,
                _ => return Ok(()),
            }
            Err("x is gone".into())
        }));
        rest().await;

        drop(given.call());
        give(&host, "x", "again").unwrap();
        gate.open();
        rest().await;

        assert_eq!(plugin.state(), State::Active);
        assert_eq!(test.journal.take(), ["start", "start"]);
        assert!(matches!(test.reports.take_one().what, What::Superseded));
    });
}

#[test]
fn k_220_a_body_that_fails_while_it_is_disposed_has_not_failed() {
    kernel(async |test| {
        let gate = Gate::shut();
        let plugin = test.probe("p").body_gate(&gate).fails("no more").mount(&test.root);
        let seen = states(&plugin);
        rest().await;

        let disposing = plugin.dispose();
        gate.open();
        disposing.await;

        assert_eq!(seen.take(), ["PENDING", "LOADING", "UNLOADING", "DISPOSED"]);
        assert!(matches!(test.reports.take_one().what, What::Superseded));
        assert_eq!(listeners(&test.root), 0);
    });
}
