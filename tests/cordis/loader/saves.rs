//! What happens between two states of the file: order, one at a time, failures, holds.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use tokio::time::timeout;

use nano_cordis::cordis::loader::{Cause, Change, Standing};
use nano_cordis::cordis::{
    Applied, BeforeApply, BoxError, Context, Loader, NoConfig, State, Svc, What, plugin,
};

use super::stage::Stage;
use crate::support::{Gate, Kept, define, kernel, pass, read, rest};

#[test]
fn k_139_what_is_mounted_on_request_of_a_plugin_outlives_it() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a"]);
        stage.start("[]").await.unwrap();
        let view = Kept::<Svc<Loader>>::default();
        let kept = view.clone();
        let asker = test.mount(&plugin(move |_: Context, _: NoConfig, loader: Svc<Loader>| {
            kept.keep(loader);
            async { Ok::<(), BoxError>(()) }
        }));
        asker.ready().await.unwrap();

        stage.write("cordis.yml", "[{ id: a, name: a }]");
        view.last().reload();
        view.last().applied().await.unwrap();
        asker.dispose().await;

        assert_eq!(stage.children(), ["a ACTIVE"]);
    });
}

#[test]
fn k_175_a_service_moves_from_one_entry_to_another_in_one_save() {
    kernel(async |test| {
        let stage = Stage::new(&test);
        stage.module("a", test.probe("a").gives("x").cleanup_delay(50).def());
        stage.module("b", test.probe("b").gives("x").def());
        stage.start("[{ id: a, name: a }]").await.unwrap();

        stage.save("[{ id: b, name: b }]").await.unwrap();

        assert_eq!(stage.took_place(), ["a start", "a stopping", "a stop", "b start"]);
        assert_eq!(stage.children(), ["b ACTIVE"]);
    });
}

#[test]
fn k_176_a_consumer_changed_with_its_provider_starts_once_on_the_new_one() {
    kernel(async |test| {
        let stage = Stage::new(&test);
        let reads = test.journal.clone();
        let consumer = define("user", ["x"], async move |ctx| {
            reads.push(read(&ctx, "x")?);
            Ok(())
        });
        stage.module("old", test.probe("old").gives("x").def());
        stage.module("new", test.probe("new").gives("x").def());
        stage.module("user", consumer);
        stage
            .start("[{ id: p, name: old }, { id: c, name: user, config: { n: 1 } }]")
            .await
            .unwrap();
        stage.took_place();

        stage
            .save("[{ id: p, name: new }, { id: c, name: user, config: { n: 2 } }]")
            .await
            .unwrap();

        assert_eq!(stage.took_place(), ["old stop", "new start", "new"]);
    });
}

#[test]
fn k_177_reloads_run_one_after_the_other_and_the_last_content_wins() {
    kernel(async |test| {
        let stage = Stage::new(&test);
        stage.module("slow", test.probe("slow").cleanup_delay(1000).def());
        stage.module("b", test.probe("b").def());
        stage.module("c", test.probe("c").def());
        let loader = stage.start("[{ id: a, name: slow }]").await.unwrap();
        stage.took_place();

        stage.write("cordis.yml", "[{ id: b, name: b }]");
        loader.reload();
        pass(200).await;
        stage.write("cordis.yml", "[{ id: c, name: c }]");
        loader.reload();
        loader.reload();
        loader.applied().await.unwrap();

        // `b` was unmounted in the moment of its mount, before its body could run.
        assert_eq!(stage.took_place(), ["slow stopping", "slow stop", "c start"]);
        assert_eq!(stage.children(), ["c ACTIVE"]);
        assert_eq!(stage.told(), ["applied cordis.yml", "applied cordis.yml"]);
    });
}

#[test]
fn k_178_a_failed_body_is_not_run_again_by_time_or_by_the_same_bytes() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["b"]);
        stage.module("a", test.probe("a").fails("boom").def());
        let list = "[{ id: a, name: a }, { id: b, name: b }]";
        stage.start(list).await.unwrap();
        assert_eq!(test.reports.take_one().what, What::BodyFailed);

        pass(10_000).await;
        stage.save(list).await.unwrap();

        assert_eq!(stage.took_place(), ["a start", "a stop", "b start"]);
        assert_eq!(stage.entry("a").standing, Standing::Mounted(State::Failed));
        assert_eq!(stage.entry("a").error.as_deref(), Some("boom"));
        assert_eq!(stage.told(), [""; 0]);
    });
}

#[test]
fn k_179_a_failed_entry_starts_afresh_with_a_better_config() {
    kernel(async |test| {
        let stage = Stage::new(&test);
        let body = |_: Context, config: serde_json::Value| async move {
            config["ok"].as_bool().map(drop).ok_or_else(|| BoxError::from("not ok"))
        };
        stage.module("a", plugin(body));
        stage.start("[{ id: a, name: a, config: { ok: maybe } }]").await.unwrap();
        assert_eq!(test.reports.take_one().what, What::BodyFailed);

        stage.save("[{ id: a, name: a, config: { ok: true } }]").await.unwrap();

        assert_eq!(stage.entry("a").standing, Standing::Mounted(State::Active));
    });
}

#[test]
fn k_181_a_list_that_was_refused_is_not_up_to_date_when_it_is_saved_again() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a", "b"]);
        stage.start("[{ id: a, name: a }]").await.unwrap();
        let bad = "[{ id: b, name: b }, { id: b, name: b }]";

        let first = stage.save(bad).await.map(drop).map_err(|err| err.to_string());
        let second = stage.save(bad).await.map(drop).map_err(|err| err.to_string());
        stage.save("[{ id: a, name: a }]").await.unwrap();

        assert!(first.is_err());
        assert_eq!(first, second);
        assert_eq!(stage.took_place(), ["a start"]);
        let told = stage.told();
        assert_eq!((told.len(), &*told[2]), (3, "applied cordis.yml (no entry changed)"));
    });
}

#[test]
fn k_224_any_accepted_change_of_the_file_tries_a_failed_entry_again() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["b"]);
        stage.module("a", test.probe("a").fails("boom").def());
        stage.start("[{ id: a, name: a }, { id: b, name: b }]").await.unwrap();
        test.reports.take_one();
        stage.took_place();

        stage.save("# another comment\n[{ id: a, name: a }, { id: b, name: b }]").await.unwrap();

        assert_eq!(stage.took_place(), ["a start", "a stop"]);
        assert_eq!(test.reports.take_one().what, What::BodyFailed);
        assert_eq!(stage.told(), ["applied cordis.yml"]);
    });
}

#[test]
fn k_227_a_handler_that_holds_a_change_may_ask_for_a_reload() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a"]);
        let loader = stage.start("[]").await.unwrap();
        let (view, times) = (loader.clone(), Rc::new(Cell::new(0)));
        let count = times.clone();
        test.root
            .on_parallel::<BeforeApply>(async move |_, _| {
                count.set(count.get() + 1);
                view.reload();
                Ok(())
            })
            .unwrap();

        stage.save("[{ id: a, name: a }]").await.unwrap();

        assert_eq!(stage.children(), ["a ACTIVE"]);
        assert_eq!(times.get(), 1);
    });
}

#[test]
fn a_held_change_is_applied_when_the_hold_ends_and_until_then_nothing_moves() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a", "b"]);
        let gate = hold(&test.root);
        let loader = stage.start("[]").await.unwrap();
        stage.write("cordis.yml", "[{ id: a, name: a }]");
        loader.reload();
        rest().await;

        let (during, problem) = (stage.children(), loader.problem());
        gate.open();
        loader.applied().await.unwrap();

        assert!(during.is_empty());
        assert_eq!(problem, None);
        assert_eq!(stage.children(), ["a ACTIVE"]);
        assert_eq!(stage.told(), ["cordis.yml changed; applied later", "applied cordis.yml"]);
    });
}

#[test]
fn what_is_applied_after_a_hold_is_the_newest_content() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a", "b"]);
        let gate = hold(&test.root);
        let loader = stage.start("[]").await.unwrap();
        stage.write("cordis.yml", "[{ id: a, name: a }]");
        loader.reload();
        rest().await;

        stage.write("cordis.yml", "[{ id: b, name: b }]");
        gate.open();
        loader.applied().await.unwrap();

        assert_eq!(stage.took_place(), ["b start"]);
    });
}

#[test]
fn a_listener_that_fails_refuses_the_change() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a"]);
        stage.start("[]").await.unwrap();
        let no = async |_, _| Err::<(), _>("approval would guard nothing".into());
        test.root.on_parallel::<BeforeApply>(no).unwrap();

        let refused = stage.save("[{ id: a, name: a }]").await.unwrap_err();

        assert!(matches!(refused.cause, Cause::Refused(_)));
        assert!(stage.children().is_empty());
        assert_eq!(stage.told(), ["cordis.yml not applied: approval would guard nothing"]);
    });
}

#[test]
fn a_change_says_what_it_would_do() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["a", "b", "c"]);
        stage.module("guard", test.probe("guard").def().guard());
        stage
            .start("[{ id: a, name: a }, { id: b, name: b }, { id: g, name: guard }]")
            .await
            .unwrap();
        let seen = Rc::new(RefCell::new(Vec::new()));
        let heard = seen.clone();
        let listen = async move |_, change: Rc<Change>| {
            let lines = change.entries.iter().map(|it| {
                let sides = (it.before.is_some(), it.after.is_some());
                format!("{} {sides:?} {}", it.id(), it.guard)
            });
            heard.borrow_mut().extend(lines);
            Ok(())
        };
        test.root.on_parallel::<BeforeApply>(listen).unwrap();

        let list = "[{ id: b, name: b, optional: true }, { id: c, name: c }]";
        stage.save(list).await.unwrap();

        let seen = seen.take();
        let expected = [
            "b (true, true) false",
            "c (false, true) false",
            "a (true, false) false",
            "g (true, false) true",
        ];
        assert_eq!(seen, expected);
    });
}

#[test]
fn a_body_that_never_ends_does_not_keep_others_from_being_reloaded() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["b"]);
        stage.module("hung", test.probe("hung").body_gate(&Gate::shut()).def());
        stage.write("cordis.yml", "[{ id: h, name: hung }]");
        let starting = stage.start_on(Some(stage.file("cordis.yml")));
        timeout(Duration::from_secs(1), starting)
            .await
            .map(drop)
            .expect_err("`hung` does not rest");

        stage.write("cordis.yml", "[{ id: h, name: hung }, { id: b, name: b }]");
        stage.loader().reload();
        rest().await;

        assert_eq!(stage.children(), ["h LOADING", "b ACTIVE"]);
        assert_eq!(stage.loader().problem().as_deref(), Some("entry `h` is still starting"));
    });
}

#[test]
fn applied_is_raised_once_when_everything_rests_also_at_the_start() {
    kernel(async |test| {
        let stage = Stage::new(&test);
        let gate = Gate::shut();
        stage.module("slow", test.probe("slow").body_gate(&gate).def());
        stage.module("b", test.probe("b").def());
        let seen = test.journal.clone();
        test.root.on(move |_: &Context, it: &Applied| seen.push(it.changed.join(" "))).unwrap();
        stage.start("[{ id: b, name: b }]").await.unwrap();

        stage.write("cordis.yml", "[{ id: b, name: b }, { id: s, name: slow }]");
        stage.loader().reload();
        stage.loader().reload();
        rest().await;
        let before = stage.took_place();
        gate.open();
        stage.loader().applied().await.unwrap();
        rest().await;

        assert_eq!(before, ["b start", "b", "slow start"]);
        assert_eq!(stage.took_place(), ["s"]);
    });
}

#[test]
fn a_module_that_panics_while_it_is_loaded_or_checked_is_one_that_failed() {
    kernel(async |test| {
        let stage = Stage::with_probes(&test, &["b"]);
        stage.module("./a.ts", test.probe("a").def());
        stage.start("[{ id: a, name: ./a.ts }, { id: b, name: b, config: 1 }]").await.unwrap();
        stage.module("./a.ts", plugin(async |_: Context, _: Panics| Ok::<(), BoxError>(())));
        stage.forget();

        stage.save_module("a.ts").await.unwrap();

        assert_eq!(stage.took_place(), [""; 0]);
        let told = stage.told().concat();
        assert!(
            told.starts_with("./a.ts not applied: entry `a` (line 1): config: panicked at "),
            "{told}"
        );
        assert!(told.ends_with(": no config is good enough"), "{told}");
    });
}

#[derive(JsonSchema)]
struct Panics {}

impl<'de> Deserialize<'de> for Panics {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        unreachable!("no config is good enough")
    }
}

/// Holds every change until the gate is open, and says so.
fn hold(root: &Context) -> Gate {
    let gate = Gate::shut();
    let at = gate.clone();
    root.on_parallel::<BeforeApply>(async move |ctx: Context, change: Rc<Change>| {
        if change.entries.is_empty() || ctx.get::<Loader>().is_none() {
            return Ok(());
        }
        ctx.emit(&change.held("applied later"));
        at.pass().await;
        Ok(())
    })
    .unwrap();
    gate
}
