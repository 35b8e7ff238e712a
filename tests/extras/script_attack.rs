//! Scripts that do anything at any time: random operations, in an order that a seed decides, on a running agent. Whatever
//! they do, nothing panics, nothing hangs, and when they are gone nothing is left of them.

use std::{env, time::Duration};

use nano_cordis::{
    cordis::{Context, Mount, Svc},
    harness::{prompt, tools::Tools},
};
use serde_json::{Value, json};

use crate::{
    script::{App, alone},
    script_leaks::held,
};

/// Each call of the tool does some random things; those that take time go on when it has answered.
const SOURCE: &str = include_str!("script_attack.ts");

/// A random number below another one.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// All that scripts could leave behind.
fn left(root: &Context) -> (Vec<String>, Vec<String>, usize, Vec<usize>) {
    let plugins = root.fibers().iter().map(|it| format!("{} {}", it.path, it.state)).collect();
    let events =
        ["x/one", "x/two", "x/three", "tools/changed", "cordis/notice", "tools/pre-execute"];
    let listeners = events.map(|it| root.listener_count(it)).to_vec();
    (plugins, root.service_names(), root.effect_count(), listeners)
}

#[test]
fn whatever_scripts_do_nothing_hangs_and_nothing_is_left_of_them() {
    alone(
        "script_attack::whatever_scripts_do_nothing_hangs_and_nothing_is_left_of_them",
        async |app| {
            app.tools().await;
            let prompt =
                app.root.plugin(&nano_cordis::cordis::plugin(prompt::apply), Value::Null).unwrap();
            prompt.ready().await.unwrap();
            for name in ["a", "b"] {
                app.write(&format!("{name}.ts"), format!("const me = '{name}'\n{SOURCE}"));
            }
            let number =
                |name: &str, usual: u64| env::var(name).map_or(usual, |it| it.parse().unwrap());
            let (first, count) = (number("NANO_SEED", 1), number("NANO_SEEDS", 25));
            let (before, threads) = (left(&app.root), held().0);
            for seed in first..first + count {
                one(app, seed).await;

                assert_eq!(left(&app.root), before, "seed {seed}");
                let tools: Svc<Tools> = app.root.get().unwrap();
                assert_eq!(tools.names(), [""; 0], "seed {seed}");
                let reports = app.reports();
                let is_ours =
                    |it: &&String| it.contains("panicked") || it.contains("this promise is");
                assert_eq!(reports.iter().find(is_ours), None, "seed {seed}");
                app.told();
            }
            // An engine that was never started ends when it likes.
            while held().0 > threads {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        },
    );
}

/// Two scripts at a time, each of which may be unloaded and loaded again at any moment.
async fn one(app: &App, seed: u64) {
    let mut dice = Dice(seed);
    let defs = ["./a.ts", "./b.ts"].map(|it| app.load(it).unwrap());
    let mut running: [Option<Mount>; 2] = [None, None];
    for _ in 0..=dice.roll(12) {
        let at = usize::from(dice.roll(2) == 0);
        match &running[at] {
            None => {
                let config = json!({ "seed": dice.roll(1 << 30) });
                let mount = app.root.plugin_named(["a", "b"][at], &defs[at], config).unwrap();
                if dice.roll(4) > 0 {
                    mount.settled().await;
                }
                running[at] = Some(mount);
            }
            Some(mount) if dice.roll(4) == 0 => {
                let disposing = mount.dispose();
                if dice.roll(3) > 0 {
                    disposing.await;
                }
                running[at] = None;
            }
            Some(_) => {
                let arguments = json!({ "seed": dice.roll(1 << 30), "steps": dice.roll(12) });
                act(app, ["act_a", "act_b"][at], &arguments, dice.roll(20_000)).await;
            }
        }
    }
    for mount in running.into_iter().flatten() {
        mount.dispose().await;
    }
    while app.root.fibers().iter().any(|it| ["a", "b"].contains(&&*it.path)) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Calls the tool, and waits for its answer so many microseconds.
async fn act(app: &App, tool: &str, arguments: &Value, micros: u64) {
    let arguments = arguments.to_string();
    let call = app.call_with(tool, &arguments);
    drop(tokio::time::timeout(Duration::from_micros(micros), call).await);
}
