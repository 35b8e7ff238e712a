//! Tasks that belong to a plugin.

use nano_cordis::cordis::{BoxError, State, Waited, What};

use crate::support::{Gate, Journal, Kept, define, give, kernel, pass, rest};

#[test]
fn k_214_a_finished_task_leaves_nothing_behind() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let gate = Gate::shut();
        let blocked = gate.clone();
        ctx.spawn("works", async move |_| blocked.pass().await).unwrap();
        rest().await;
        let while_running = plugin.effect_count();

        gate.open();
        rest().await;

        assert_eq!((while_running, plugin.effect_count()), (1, 0));
        assert_eq!(plugin.state(), State::Active);
    });
}

#[test]
fn k_214_a_task_that_fails_is_one_report() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;

        ctx.spawn("works", async |_| Err::<(), _>("boom")).unwrap();
        pass(60_000).await;

        let report = test.reports.take_one();
        assert_eq!(report.plugin, "p");
        assert!(matches!(&report.what, What::TaskFailed { task } if task == "works"), "{report}");
        assert!(report.to_string().contains("boom"), "{report}");
        assert_eq!((plugin.state(), plugin.effect_count()), (State::Active, 0));
    });
}

#[test]
fn k_214_so_is_a_task_that_panics() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;

        ctx.spawn("works", async |_| -> Result<(), BoxError> { panic!("boom") }).unwrap();
        pass(60_000).await;

        let report = test.reports.take_one();
        assert!(matches!(&report.what, What::TaskFailed { task } if task == "works"), "{report}");
        assert!(report.to_string().contains("boom"), "{report}");
        assert_eq!((plugin.state(), plugin.effect_count()), (State::Active, 0));
    });
}

#[test]
fn k_214_a_task_starts_after_the_block_that_spawns_it() {
    kernel(async |test| {
        let (ctx, _) = test.host("p").await;
        let journal = test.journal.clone();

        ctx.spawn("works", async move |_| journal.push("in the task")).unwrap();
        test.journal.push("after the call");
        rest().await;

        assert_eq!(test.journal.take(), ["after the call", "in the task"]);
    });
}

#[test]
fn k_215_an_unload_ends_a_task_in_its_turn() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        ctx.effect(|| test.journal.line("E1")).unwrap();
        let trace = Trace(test.journal.clone());
        ctx.spawn("works", async move |_| {
            let _trace = trace;
            std::future::pending::<()>().await;
        })
        .unwrap();
        ctx.effect(|| test.journal.line("E3")).unwrap();
        rest().await;

        plugin.dispose().await;

        assert_eq!(test.journal.take(), ["E3", "task ended", "E1"]);
    });
}

#[test]
fn k_215_a_task_that_never_began_is_ended_too() {
    kernel(async |test| {
        let (ctx, _plugin) = test.host("p").await;
        let (trace, journal) = (Trace(test.journal.clone()), test.journal.clone());
        let task = async move |_| {
            let _trace = trace;
            journal.push("began");
        };

        let undo = ctx.spawn("works", task).unwrap();
        undo.call().await.unwrap();
        rest().await;

        assert_eq!(test.journal.take(), ["task ended"]);
    });
}

#[test]
fn k_215_an_undo_ends_a_task() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let trace = Trace(test.journal.clone());
        let task = async move |_| {
            let _trace = trace;
            std::future::pending::<()>().await;
        };
        let undo = ctx.spawn("works", task).unwrap();
        rest().await;

        undo.call().await.unwrap();

        assert_eq!(test.journal.take(), ["task ended"]);
        assert_eq!((plugin.state(), plugin.effect_count()), (State::Active, 0));
    });
}

#[test]
fn k_215_a_task_ends_with_the_run_that_spawned_it() {
    kernel(async |test| {
        let (host, _) = test.host("host").await;
        let given = give(&host, "x", "value").unwrap();
        let journal = test.journal.clone();
        test.mount(&define("p", ["x"], async move |ctx| {
            let trace = Trace(journal.clone());
            ctx.spawn("works", async move |_| {
                let _trace = trace;
                std::future::pending::<()>().await;
            })?;
            Ok(())
        }));
        rest().await;

        given.call().await.unwrap();

        assert_eq!(test.journal.take(), ["task ended"]);
    });
}

#[test]
fn k_216_a_task_may_dispose_its_plugin() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let (own, journal) = (plugin.clone(), test.journal.clone());
        ctx.spawn("ends it", async move |_| {
            let waited = own.dispose().await;
            journal.push(format!("{waited:?}"));
        })
        .unwrap();

        rest().await;

        assert_eq!(test.journal.take(), [format!("{:?}", Waited::Requested)]);
        assert_eq!(plugin.state(), State::Disposed);
    });
}

/// A wait of a task is a wait of its plugin: the owner's unload has to join it.
#[test]
fn k_216_nor_is_the_end_of_a_parent_waited_for() {
    kernel(async |test| {
        let (outer, parent) = test.host("parent").await;
        let kept = Kept::default();
        let child = outer.plugin(&define("child", [], kept.context()), serde_json::Value::Null);
        child.unwrap().ready().await.unwrap();
        let (above, journal) = (parent.clone(), test.journal.clone());
        let task = async move |_| journal.push(format!("{:?}", above.dispose().await));
        kept.last().spawn("ends it", task).unwrap();

        rest().await;

        assert_eq!(test.journal.take(), [format!("{:?}", Waited::Requested)]);
        assert_eq!(parent.state(), State::Disposed);
    });
}

/// Says when it is dropped.
struct Trace(Journal);

impl Drop for Trace {
    fn drop(&mut self) {
        self.0.push("task ended");
    }
}
