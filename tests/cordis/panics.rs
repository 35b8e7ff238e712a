//! A panic in plugin code prints nothing and becomes an error that says what and where (K-225).
#![expect(clippy::panic, reason = "panics are what is tested here")]

use std::error::Error as StdError;
use std::rc::Rc;
use std::thread;

use nano_cordis::cordis::{Context, Error, Panic, Parallel, Report, State, What};

use crate::support::{Ping, Test, alone, define, kernel, pass, rest};

mod drops;

struct Gather;

impl Parallel for Gather {
    const NAME: &'static str = "test/panics";
    type Input = ();
}

/// The panic among an error and its causes.
fn panic_in<'a>(error: &'a (dyn StdError + 'static)) -> &'a Panic {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(panic) = error.downcast_ref() {
            return panic;
        }
        cause = error.source();
    }
    panic!("no panic is behind {error}")
}

/// The message and this file are what a panic keeps.
fn assert_keeps(error: &(dyn StdError + 'static), message: &str) {
    let panic = panic_in(error);
    assert_eq!(panic.message, message);
    let (file, line) = panic.place.split_once(".rs:").expect("file and line");
    assert!(file.contains("panics"), "{file}");
    assert!(line.starts_with(|it: char| it.is_ascii_digit()), "{line}");
    let text = format!("panicked at {}: {message}", panic.place);
    assert_eq!(panic.to_string(), text);
}

fn assert_report_keeps(report: &Report, message: &str) {
    assert_keeps(&**report.error.as_ref().expect("an error"), message);
    assert!(report.to_string().contains(message), "{report}");
    assert_eq!(report.to_string().lines().count(), 1);
}

#[test]
fn k_225_a_panic_of_a_body_is_its_error() {
    kernel(async |test| {
        let mount = test.mount(&define("clumsy", [], async |_| panic!("dropped a plate")));

        let error = mount.ready().await.unwrap_err();

        assert!(matches!(&error, Error::Body { plugin, .. } if plugin == "clumsy"));
        assert_keeps(&error, "dropped a plate");
        assert_eq!(mount.state(), State::Failed);
        let report = test.reports.take_one();
        assert!(matches!(report.what, What::BodyFailed));
        assert_report_keeps(&report, "dropped a plate");
    });
}

#[test]
fn k_225_a_panic_after_a_wait_keeps_its_place_too() {
    kernel(async |test| {
        let body = async |_| {
            pass(5).await;
            let plates = 3;
            panic!("dropped {plates} plates")
        };
        let error = test.mount(&define("clumsy", [], body)).ready().await.unwrap_err();

        assert_keeps(&error, "dropped 3 plates");
        test.reports.take_one();
    });
}

#[test]
fn k_225_a_panic_of_a_listener_is_in_its_report() {
    kernel(async |test| {
        let clumsy = |_: &Context, _: &Ping| -> () { panic!("dropped a plate") };
        test.root.on(clumsy).unwrap();

        test.root.emit(&Ping);

        let report = test.reports.take_one();
        assert!(matches!(&report.what, What::ListenerFailed { event } if event == "test/ping"));
        assert_report_keeps(&report, "dropped a plate");
    });
}

#[test]
fn k_225_a_panic_of_an_async_listener_is_its_error() {
    kernel(async |test| {
        test.root.on_parallel::<Gather>(async |_, _| panic!("dropped a plate")).unwrap();

        let error = test.root.parallel::<Gather>(Rc::new(())).await.unwrap_err();

        assert_keeps(&*error.0[0].source, "dropped a plate");
    });
}

#[test]
fn k_225_a_panic_of_a_cleanup_is_in_its_report() {
    kernel(async |test| {
        let def = define("clumsy", [], async |ctx| {
            ctx.effect(|| || -> () { panic!("dropped a plate") })?;
            Ok(())
        });
        let mount = test.mount(&def);
        mount.ready().await.unwrap();

        mount.dispose().await;

        assert_eq!(mount.state(), State::Disposed);
        let report = test.reports.take_one();
        assert!(matches!(report.what, What::CleanupFailed));
        assert_report_keeps(&report, "dropped a plate");
    });
}

#[test]
fn k_225_a_panic_of_a_setup_goes_to_the_caller() {
    kernel(async |test| {
        let before = test.root.effect_count();

        let error = test.root.effect(|| -> () { panic!("dropped a plate") }).err().unwrap();

        assert!(matches!(error, Error::Setup { .. }), "{error}");
        assert_keeps(&error, "dropped a plate");
        assert_eq!(test.root.effect_count(), before);
    });
}

#[test]
fn k_225_a_panic_of_a_task_is_in_its_report() {
    kernel(async |test| {
        test.root.spawn("carry", async |_| -> () { panic!("dropped a plate") }).unwrap();

        rest().await;

        let report = test.reports.take_one();
        assert!(matches!(&report.what, What::TaskFailed { task } if task == "carry"));
        assert_report_keeps(&report, "dropped a plate");
    });
}

/// Everything that a plugin can run, panicking.
async fn panic_everywhere(test: &Test) {
    let body = async |ctx: Context| {
        ctx.effect(|| || -> () { panic!("in a plugin") })?;
        ctx.effect(|| async || -> () { panic!("in a plugin") })?;
        ctx.on(|_: &Context, _: &Ping| -> () { panic!("in a plugin") })?;
        ctx.on_parallel::<Gather>(async |_, _| panic!("in a plugin"))?;
        ctx.spawn("task", async |_| -> () { panic!("in a plugin") })?;
        assert!(ctx.effect(|| -> () { panic!("in a plugin") }).is_err());
        Ok(())
    };
    let mount = test.mount(&define("clumsy", [], body));
    mount.ready().await.unwrap();
    test.root.emit(&Ping);
    assert!(test.root.parallel::<Gather>(Rc::new(())).await.is_err());
    rest().await;
    mount.dispose().await;
    let failing = test.mount(&define("clumsy", [], async |_| panic!("in a plugin")));
    assert!(failing.ready().await.is_err());
}

#[test]
fn k_225_a_panic_inside_prints_nothing_and_one_outside_prints_as_ever() {
    let test = "panics::k_225_a_panic_inside_prints_nothing_and_one_outside_prints_as_ever";
    let output = alone(test, || {
        kernel(async |test| {
            panic_everywhere(&test).await;
            assert_eq!(test.reports.take().len(), 5);
        });
        thread::spawn(|| panic!("on a thread of nobody")).join().unwrap_err();
    });

    if let Some(output) = output {
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(!printed.contains("in a plugin"), "{printed}");
        assert!(printed.contains("on a thread of nobody"), "{printed}");
    }
}
