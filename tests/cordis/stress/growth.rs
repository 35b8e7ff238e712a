//! What comes and goes a million times leaves no memory behind. Resident memory belongs to a whole process, so each
//! of these runs in a process of its own.
#![cfg(target_os = "linux")]

use std::fs;
use std::time::Duration;

use serde_json::Value;

use nano_cordis::cordis::{Context, Emit, Undo};

use crate::support::{Ping, Test, alone, define, hear, kernel, pass};

/// Far below what a single word for each of the rounds would take.
const MAY_GROW: u64 = 1 << 20;

#[test]
fn a_million_effects_undone_leave_no_memory() {
    alone("stress::growth::a_million_effects_undone_leave_no_memory", effects);
}

fn effects() {
    kernel(async |test| {
        let effect = || test.root.effect(|| || ()).unwrap();
        let count = test.root.effect_count();

        assert_steady(500_000, || drop(effect().call()));
        let mut window: Vec<Undo> = (0..10).map(|_| effect()).collect();
        assert_steady(500_000, || {
            window.push(effect());
            drop(window.remove(0).call());
        });

        assert_eq!(test.root.effect_count(), count + window.len());
    });
}

#[test]
fn a_million_listeners_undone_leave_no_memory() {
    alone("stress::growth::a_million_listeners_undone_leave_no_memory", listeners);
}

fn listeners() {
    kernel(async |test| {
        let listener = || hear(&test.root, &test.journal, "heard").unwrap();

        assert_steady(500_000, || drop(listener().call()));
        let mut window: Vec<Undo> = (0..10).map(|_| listener()).collect();
        assert_steady(500_000, || {
            window.push(listener());
            drop(window.remove(0).call());
        });
        test.root.emit(&Ping);

        assert_eq!(test.root.listener_count(Ping::NAME), window.len());
        assert_eq!(test.journal.lines().len(), window.len());
    });
}

#[test]
fn a_hundred_thousand_plugins_disposed_of_leave_no_memory() {
    alone("stress::growth::a_hundred_thousand_plugins_disposed_of_leave_no_memory", plugins);
}

fn plugins() {
    kernel(async |test| {
        let effects = test.root.effect_count();

        come_and_go(&test, 10_000).await;
        let before = resident();
        come_and_go(&test, 100_000).await;
        let after = resident();

        assert!(after < before + MAY_GROW, "{before} bytes have become {after}");
        assert_eq!(test.root.effect_count(), effects);
        assert_eq!(test.root.listener_count(Ping::NAME), 0);
    });
}

async fn come_and_go(test: &Test, times: usize) {
    let journal = test.journal.clone();
    let def = define("mayfly", [], async move |ctx| {
        hear(&ctx, &journal, "heard")?;
        Ok(())
    });
    for _ in 0..times {
        let mount = test.mount(&def);
        mount.ready().await.unwrap();
        mount.dispose().await;
    }
}

#[test]
fn ten_thousand_kernels_shut_down_leave_no_memory() {
    alone("stress::growth::ten_thousand_kernels_shut_down_leave_no_memory", kernels);
}

fn kernels() {
    kernel(async |_| {
        set_up_and_shut_down(1_000).await;
        let before = resident();
        for _ in 0..10 {
            set_up_and_shut_down(1_000).await;
        }
        let after = resident();

        assert!(after < before + MAY_GROW, "{before} bytes have become {after}");
    });
}

async fn set_up_and_shut_down(times: usize) {
    let def = define("p", [], async |ctx| {
        ctx.on(|_: &Context, _: &Ping| ())?;
        Ok(())
    });
    for _ in 0..times {
        let root = Context::root_with(|_| {});
        root.plugin(&def, Value::Null).unwrap().ready().await.unwrap();
        root.shutdown(Duration::from_secs(1)).await;
    }
    // Who watches for long waits ends a little later.
    pass(6_000).await;
}

/// Rounds enough to be warm, then as many as are asked for: the second part must not take more memory.
fn assert_steady(rounds: usize, mut round: impl FnMut()) {
    for _ in 0..10_000 {
        round();
    }
    let before = resident();
    for _ in 0..rounds {
        round();
    }
    let after = resident();
    assert!(after < before + MAY_GROW, "{before} bytes have become {after}");
}

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let numbers = fs::read_to_string("/proc/self/statm").expect("a Linux system");
    let pages = numbers.split_whitespace().nth(1).expect("the second number");
    pages.parse::<u64>().expect("a number") * 4096
}
