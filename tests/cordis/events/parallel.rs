//! `parallel`: all start before any ends, all end before the call does, failures are gathered in listener order.

use std::rc::Rc;

use tokio::time::Instant;

use nano_cordis::cordis::{BoxError, Context, ParallelError};

use super::Gather;
use crate::support::{Gate, Test, define, kernel, pass};

#[test]
fn k_112_all_listeners_start_before_any_ends() {
    kernel(async |test| {
        let barrier = Gate::of(3);
        for _ in 0..3 {
            let barrier = barrier.clone();
            let waiting = async move |_, _| {
                barrier.pass().await;
                Ok(())
            };
            test.root.on_parallel::<Gather>(waiting).unwrap();
        }

        let gathered = test.root.parallel::<Gather>(Rc::new(())).await;

        assert!(gathered.is_ok());
        assert_eq!(barrier.arrived(), 3);
    });
}

#[test]
fn k_112_listeners_start_in_registration_order() {
    kernel(async |test| {
        for name in ["one", "two", "three"] {
            let journal = test.journal.clone();
            let line = async move |_, _| {
                journal.push(name);
                Ok(())
            };
            test.root.on_parallel::<Gather>(line).unwrap();
        }

        test.root.parallel::<Gather>(Rc::new(())).await.unwrap();

        assert_eq!(test.journal.lines(), ["one", "two", "three"]);
    });
}

#[test]
fn k_113_a_failure_does_not_end_the_call_before_the_others_ended() {
    kernel(async |test| {
        fail_after(&test.root, 0, "at once");
        let journal = test.journal.clone();
        let slow = async move |_, _| {
            pass(50).await;
            journal.push("slow ended");
            Ok(())
        };
        test.root.on_parallel::<Gather>(slow).unwrap();
        let begin = Instant::now();

        let gathered = test.root.parallel::<Gather>(Rc::new(())).await;

        assert_eq!(messages(&gathered), ["at once"]);
        assert_eq!(test.journal.lines(), ["slow ended"]);
        assert!(begin.elapsed().as_millis() >= 50);
    });
}

#[test]
fn k_114_failures_are_gathered_in_listener_order_with_their_plugins() {
    kernel(async |test| {
        mount_failing(&test, "one", 50).await;
        test.root.on_parallel::<Gather>(async |_, _| Ok(())).unwrap();
        mount_failing(&test, "three", 0).await;

        let gathered = test.root.parallel::<Gather>(Rc::new(())).await;

        assert_eq!(messages(&gathered), ["one failed", "three failed"]);
        let members = gathered.unwrap_err().0;
        assert_eq!(members[0].plugin, "one");
        assert_eq!(members[1].plugin, "three");
        assert!(members.iter().all(|it| it.event == "test/gather"));
    });
}

#[test]
fn k_115_one_failure_is_an_aggregate_too() {
    kernel(async |test| {
        fail_after(&test.root, 0, "alone");

        let gathered = test.root.parallel::<Gather>(Rc::new(())).await;

        assert_eq!(messages(&gathered), ["alone"]);
    });
}

#[test]
fn k_115_a_listener_that_panics_is_a_member_of_the_aggregate() {
    kernel(async |test| {
        let at_once = async |_, _| panic!("at once");
        let later = async |_, _| {
            pass(5).await;
            panic!("later")
        };
        test.root.on_parallel::<Gather>(at_once).unwrap();
        test.root.on_parallel::<Gather>(later).unwrap();

        let gathered = test.root.parallel::<Gather>(Rc::new(())).await;

        let messages = messages(&gathered);
        assert_eq!(messages.len(), 2);
        assert!(messages[0].contains("at once") && messages[1].contains("later"), "{messages:?}");
    });
}

#[test]
fn k_109_a_parallel_listener_undone_before_its_turn_is_skipped() {
    kernel(async |test| {
        let barrier = Gate::shut();
        let journal = test.journal.clone();
        let undone = async move |_, _| {
            journal.push("undone");
            Ok(())
        };
        let undo = test.root.on_parallel::<Gather>(undone).unwrap();
        let gate = barrier.clone();
        let waiting = async move |_, _| {
            gate.pass().await;
            Ok(())
        };
        test.root.on_parallel::<Gather>(waiting).unwrap();

        undo.call().await.unwrap();
        barrier.open();
        test.root.parallel::<Gather>(Rc::new(())).await.unwrap();

        assert_eq!(test.journal.lines(), Vec::<String>::new());
        assert_eq!(barrier.arrived(), 1);
    });
}

/// Registers a listener that fails after some time.
fn fail_after(ctx: &Context, milliseconds: u64, message: &'static str) {
    let failing = async move |_, _| {
        if milliseconds > 0 {
            pass(milliseconds).await;
        }
        Err(BoxError::from(message))
    };
    ctx.on_parallel::<Gather>(failing).unwrap();
}

/// Mounts a plugin with one listener that fails after some time.
async fn mount_failing(test: &Test, name: &'static str, milliseconds: u64) {
    let def = define(name, [], async move |ctx| {
        let failing = async move |_, _| {
            pass(milliseconds).await;
            Err(format!("{name} failed").into())
        };
        ctx.on_parallel::<Gather>(failing)?;
        Ok(())
    });
    test.mount(&def).ready().await.unwrap();
}

fn messages(gathered: &Result<(), ParallelError>) -> Vec<String> {
    let members = &gathered.as_ref().expect_err("a listener failed").0;
    members.iter().map(|it| it.source.to_string()).collect()
}
