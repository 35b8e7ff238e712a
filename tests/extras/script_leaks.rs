//! Engines come and go, and nothing is left of them. Each test has a process of its own, so that nobody else's threads
//! and memory are counted.

use std::{env, fs, future::poll_fn, task::Poll, time::Duration};

use serde_json::json;

use crate::script::{alone, tool};

/// Threads, open files, and resident memory in KiB.
pub(crate) fn held() -> (u64, u64, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let number = |key: &str| {
        let line = status.lines().find_map(|it| it.strip_prefix(key)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    let files = fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    (number("Threads:"), files, number("VmRSS:"))
}

#[test]
fn five_hundred_reloads_leak_nothing() {
    alone("script_leaks::five_hundred_reloads_leak_nothing", async |app| {
        app.write("lib.ts", "export const what = 0");
        app.write(
            "probe.ts",
            format!("import {{ what }} from './lib.ts'\n{}", tool("return what")),
        );
        let loader = app.start(&["./probe.ts"]).await;

        let mut marks = Vec::new();
        for version in 1..=500 {
            app.write("lib.ts", format!("export const what = {version}"));
            loader.saved(&app.file("lib.ts"));
            loader.applied().await.unwrap();
            assert_eq!(app.call("probe").await, version.to_string());
            app.told();
            if version == 100 || version == 500 {
                marks.push(held());
            }
        }

        let [(threads, files, memory), after] = marks[..] else { unreachable!() };
        assert_eq!((after.0, after.1), (threads, files));
        assert!(after.2 * 100 <= memory * 105, "{memory} KiB and then {} KiB", after.2);
    });
}

#[test]
fn a_thousand_engines_one_after_the_other_leak_nothing() {
    alone("script_leaks::a_thousand_engines_one_after_the_other_leak_nothing", async |app| {
        let all = "import { LocalShell, Schema } from 'cordis'
export const Config = Schema.object({ word: Schema.string().default('hi') })
export class Shell extends LocalShell {}
export function apply() {}";
        app.write("probe.ts", all);

        let mut marks = Vec::new();
        for round in 1..=1000 {
            drop(app.load("./probe.ts").unwrap());
            if round == 200 || round == 1000 {
                marks.push(held());
            }
        }

        let [before, after] = marks[..] else { unreachable!() };
        // The last one may still be on its way out.
        assert!(after.0 <= before.0 + 1 && after.1 == before.1, "{before:?} and then {after:?}");
        assert!(after.2 * 100 <= before.2 * 110, "{before:?} and then {after:?}");
    });
}

#[test]
fn engines_may_go_at_any_moment() {
    alone("script_leaks::engines_may_go_at_any_moment", async |app| {
        app.tools().await;
        let waits = tool("await new Promise(done => setTimeout(done, 1)); return { a: [1, {}] }");
        let loops = tool("for (;;) { await null; ctx.get('nothing') }");
        let defs = [waits, loops].map(|it| app.def(it).unwrap());
        let mut dice: u64 = env::var("NANO_SEED").map_or(1, |it| it.parse().unwrap());
        for round in 0..300 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let roll = |sides: u64, shift: u32| (dice >> shift) % sides;
            let def = &defs[usize::from(roll(4, 20) == 0)];
            let mount = app.root.plugin_named("probe", def, json!(null)).unwrap();
            let is_ready = roll(3, 30) > 0 && mount.ready().await.is_ok();
            let calls = if is_ready { roll(5, 40) } else { 0 };
            let calls = all((0..calls).map(|_| app.call("probe")).collect());
            let end = async {
                tokio::time::sleep(Duration::from_micros(roll(2500, 33))).await;
                mount.dispose().await;
            };

            tokio::join!(calls, end);
            assert_eq!(
                app.root.service::<nano_cordis::harness::tools::Tools>().unwrap().names(),
                [""; 0],
                "round {round}"
            );
        }
        app.reports();
        assert!(held().0 < 5, "threads are left: {:?}", held());
    });
}

/// Polls all of them until they are done.
async fn all<F: Future<Output = String>>(calls: Vec<F>) {
    let mut calls: Vec<_> = calls.into_iter().map(Box::pin).collect();
    poll_fn(|cx| {
        calls.retain_mut(|it| it.as_mut().poll(cx).is_pending());
        if calls.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
