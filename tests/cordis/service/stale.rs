//! Views, contexts, timers and suspended methods of a run that is over register nothing, a restart included.

use std::cell::RefCell;
use std::rc::Rc;

use nano_cordis::cordis::{BoxError, Context, Error, Mount, Svc, Undo, plugin};
use serde_json::Value;

use super::{AtDesk, Desk, desk, mount, mount_desk};
use crate::support::{Gate, Test, at_once, give, hear, kernel, poll_once, rest};

/// Mounts a visitor `ada` and returns the view that it got at its first start.
pub(super) async fn mount_keeping_view(test: &Test) -> (Mount, Svc<Desk>) {
    let kept: Rc<RefCell<Option<Svc<Desk>>>> = Rc::default();
    let keep = kept.clone();
    let body = move |_: Context, _: Value, desk: Svc<Desk>| {
        keep.borrow_mut().get_or_insert(desk);
        async { Ok::<(), BoxError>(()) }
    };
    let mount = mount(test, plugin(body).named("ada")).await;
    let view = kept.take().expect("the visitor has started");
    (mount, view)
}

#[test]
fn k_142_a_suspended_method_registers_nothing_after_its_caller_is_gone() {
    kernel(async |test| {
        mount_desk(&test, []).await;
        let (visitor, view) = mount_keeping_view(&test).await;
        let gate = Gate::shut();
        let mut suspended = Box::pin(view.sign_up_slowly(&gate, "late"));
        assert!(poll_once(&mut suspended).await.is_none());

        visitor.dispose().await;
        gate.open();
        let refused = suspended.await;

        assert!(matches!(refused, Err(Error::Inactive { .. })));
        assert_eq!(desk(&test).names(), Vec::<String>::new());
    });
}

#[test]
fn k_142_a_suspended_method_registers_nothing_while_its_caller_is_unloading() {
    kernel(async |test| {
        mount_desk(&test, []).await;
        let (visitor, view) = mount_keeping_view(&test).await;
        let (method, cleanup) = (Gate::shut(), Gate::shut());
        let gate = cleanup.clone();
        view.ctx().effect(|| async move || gate.pass().await).unwrap();
        let mut suspended = Box::pin(view.sign_up_slowly(&method, "late"));
        assert!(poll_once(&mut suspended).await.is_none());

        let disposing = visitor.dispose();
        rest().await;
        method.open();
        let refused = suspended.await;
        cleanup.open();
        disposing.await;

        assert!(matches!(refused, Err(Error::Inactive { .. })));
        assert_eq!(desk(&test).names(), Vec::<String>::new());
    });
}

/// Restarts `ada` and says how many effects its second run has.
async fn restart(test: &Test, visitor: &Mount, front: Mount) -> usize {
    front.dispose().await;
    mount_desk(test, []).await;
    rest().await;
    assert_eq!(visitor.state().to_string(), "ACTIVE");
    visitor.effect_count()
}

#[test]
fn k_212_a_view_of_an_earlier_run_registers_nothing_into_the_new_run() {
    kernel(async |test| {
        let front = mount_desk(&test, []).await;
        let (visitor, view) = mount_keeping_view(&test).await;
        let effects = restart(&test, &visitor, front).await;

        let refused = view.sign_up("late");

        assert!(matches!(refused, Err(Error::Inactive { .. })));
        assert_eq!(visitor.effect_count(), effects);
        assert_eq!(desk(&test).names(), Vec::<String>::new());
    });
}

#[test]
fn k_212_a_context_of_an_earlier_run_registers_nothing_into_the_new_run() {
    kernel(async |test| {
        let front = mount_desk(&test, []).await;
        let (visitor, view) = mount_keeping_view(&test).await;
        let stale = view.ctx().clone();
        let effects = restart(&test, &visitor, front).await;

        let refused: [Result<(), Error>; 5] = [
            stale.effect(|| -> () { unreachable!("the setup runs") }).map(drop::<Undo>),
            hear(&stale, &test.journal, "heard").map(drop),
            give(&stale, "late", "late").map(drop),
            stale.plugin(&test.probe("child").def(), Value::Null).map(drop),
            stale.spawn("task", async |_| ()).map(drop),
        ];
        rest().await;

        assert!(refused.iter().all(|it| matches!(it, Err(Error::Inactive { .. }))), "{refused:?}");
        assert_eq!(visitor.effect_count(), effects);
        assert_eq!(test.root.listener_count("test/ping"), 0);
        assert_eq!(test.root.service_names(), ["desk"]);
        assert_eq!(test.journal.lines(), Vec::<String>::new());
    });
}

#[test]
fn k_212_a_suspended_method_of_an_earlier_run_registers_nothing_into_the_new_run() {
    kernel(async |test| {
        let front = mount_desk(&test, []).await;
        let (visitor, view) = mount_keeping_view(&test).await;
        let gate = Gate::shut();
        let mut suspended = Box::pin(view.sign_up_slowly(&gate, "late"));
        assert!(poll_once(&mut suspended).await.is_none());
        let effects = restart(&test, &visitor, front).await;

        gate.open();
        let refused = suspended.await;

        assert!(matches!(refused, Err(Error::Inactive { .. })));
        assert_eq!(visitor.effect_count(), effects);
    });
}

#[test]
fn k_212_a_timer_of_an_earlier_run_registers_nothing_into_the_new_run() {
    kernel(async |test| {
        let front = mount_desk(&test, []).await;
        let (visitor, view) = mount_keeping_view(&test).await;
        let stale = view.ctx().clone();
        let (journal, gate) = (test.journal.clone(), Gate::shut());
        let timer = gate.clone();
        // The root's task stands for a timer that the plugin did not give to the kernel.
        let tick = async move |_| {
            timer.pass().await;
            let refused = hear(&stale, &journal, "heard").is_err();
            journal.push(format!("refused: {refused}"));
        };
        test.root.spawn("timer", tick).unwrap();
        let effects = restart(&test, &visitor, front).await;

        gate.open();
        rest().await;

        assert_eq!(test.journal.lines(), ["refused: true"]);
        assert_eq!(visitor.effect_count(), effects);
    });
}

#[test]
fn k_212_an_undo_of_an_earlier_run_touches_nothing_of_the_new_run() {
    kernel(async |test| {
        let front = mount_desk(&test, []).await;
        let undos: Rc<RefCell<Vec<Undo>>> = Rc::default();
        let keep = undos.clone();
        let body = move |_: Context, _: Value, desk: Svc<Desk>| {
            keep.borrow_mut().push(desk.sign_up("ada").expect("its body runs"));
            async { Ok::<(), BoxError>(()) }
        };
        let visitor = mount(&test, plugin(body).named("ada")).await;
        let effects = restart(&test, &visitor, front).await;

        let first = undos.borrow()[0].clone();
        let returned = at_once(first.call()).await;

        assert!(returned);
        assert_eq!(visitor.effect_count(), effects);
        assert_eq!(desk(&test).names(), ["ada"]);
    });
}
