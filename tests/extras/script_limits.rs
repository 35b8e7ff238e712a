//! A script that does not end, hoards, or does not keep up: it is stopped, the agent lives, and the next call works.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::script::{run, tool};

const OVERRUN: &str = "it ran for more than 1000 ms without a pause and was stopped";
const MEMORY: &str = "it needed more than 64 MiB of memory";

/// A script with a tool `probe` that does this, and one `after` that still works.
fn with_after(body: &str) -> String {
    let after = "  ctx.tools.register('after', 'Works.', { type: 'object' }, () => 'still works')";
    tool(body).replacen("  ctx.tools", &format!("{after}\n  ctx.tools"), 1)
}

#[test]
fn a_tool_that_does_not_end_is_stopped_and_the_next_call_works() {
    stopped(&[
        ("while (true) {}", OVERRUN),
        ("for (;;) await null", OVERRUN),
        ("/^(a+)+$/.test('a'.repeat(64) + 'b')", OVERRUN),
        ("return { get x() { while (true) {} } }", OVERRUN),
        ("return { toJSON() { while (true) {} } }", OVERRUN),
        ("try { while (true) {} } catch { return 'caught' } finally { while (true) {} }", OVERRUN),
        ("for (;;) ctx.get('nothing')", OVERRUN),
    ]);
}

/// Where that takes many small steps, most of the memory goes at once: what meets one limit is far from the other.
#[test]
fn a_tool_that_hoards_or_goes_too_deep_is_stopped_and_the_next_call_works() {
    stopped(&[
        ("const f = () => f(); f()", "RangeError: Maximum call stack size exceeded"),
        ("JSON.parse('['.repeat(1e6))", "Error"),
        (
            "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a",
            "more than 100 levels deep",
        ),
        ("const all = []; for (;;) all.push('x'.repeat(1e6) + all.length)", MEMORY),
        ("const all = []; for (;;) all.push({})", MEMORY),
        (
            "const most = new ArrayBuffer(60 << 20)
             const f = () => Promise.resolve().then(f)
             await f()
             return most.byteLength",
            "no memory left",
        ),
        ("return new ArrayBuffer(1e9)", MEMORY),
        ("return new Uint8Array(1e8).length", MEMORY),
        ("let s = 'x'; for (;;) s += s", "Error"),
        ("const s = 'x'.repeat(1e6); return Array(100).fill(s)", "larger than 16 MiB"),
        ("return new Array(4e9)", "larger than 16 MiB"),
        ("let a = 1; for (let i = 0; i < 60; i++) a = [a, a]; return a", "larger than 16 MiB"),
        (
            "const most = new ArrayBuffer(60 << 20)
             return JSON.stringify(Array(1e5).fill('x'.repeat(1e4))) + most.byteLength",
            MEMORY,
        ),
        ("for (let i = 0; i < 1e6; i++) setTimeout(() => {}, 1e6)", "10000 timers are set already"),
    ]);
}

/// Each of these bodies is stopped with these words.
fn stopped(cases: &[(&str, &str)]) {
    run(async |app| {
        app.tools().await;
        for (body, expected) in cases {
            let mount = app.mount(&with_after(body)).await;

            let said = app.call("probe").await;
            let after = app.call("after").await;
            mount.dispose().await;

            assert!(said.starts_with("Error: ") && said.contains(expected), "{body}\n{said}");
            let refused = after.contains("cannot go on, saving its file starts it again")
                || after.contains(MEMORY)
                || after.contains("no memory left");
            assert!(after == "still works" || refused, "{body}\n{after}");
            app.reports();
        }
    });
}

#[test]
fn where_a_run_was_stopped_is_said() {
    run(async |app| {
        app.tools().await;
        app.mount(&tool("\n\n  const x: number = 1\n  while (x) {}")).await;

        let said = app.call("probe").await;

        assert!(
            said.starts_with("Error: probe.ts:6:") || said.starts_with("Error: probe.ts:3:"),
            "{said}"
        );
    });
}

#[test]
fn a_loop_in_apply_or_in_a_cleanup_ends_and_is_reported() {
    run(async |app| {
        let def = app.def("export function apply() {\n  for (;;) {}\n}").unwrap();
        let mount = app.root.plugin_named("probe", &def, json!(null)).unwrap();
        let apply = mount.ready().await.unwrap_err().to_string();
        mount.dispose().await;
        let reports = app.reports();
        let cleanup =
            app.mount("export function apply() {\n  return () => { for (;;) {} }\n}").await;
        cleanup.dispose().await;
        let effect = app.mount("export function apply(ctx) {\n  ctx.effect(() => async () => { throw new Error('bad') })\n}").await;
        effect.dispose().await;

        assert!(apply.contains(OVERRUN), "{apply}");
        assert_eq!(reports.len(), 1, "{reports:?}");
        let reports = app.reports();
        assert!(reports[0].contains(OVERRUN), "{reports:?}");
        assert!(reports[1].contains("probe.ts:2:"), "{reports:?}");
        assert_eq!(reports.len(), 2);
    });
}

#[test]
fn what_fails_when_nobody_waits_is_reported_once_with_its_place() {
    run(async |app| {
        for (body, expected) in [
            ("setTimeout(() => { throw new Error('tick') }, 1)", "probe.ts:2:"),
            ("setTimeout(() => { for (;;) {} }, 1)", OVERRUN),
            ("Promise.reject(new Error('lost'))", "a promise failed and nobody asked: lost"),
            (
                "setTimeout(async () => { await null; throw new Error('later') }, 1)",
                "a promise failed and nobody asked: later",
            ),
        ] {
            let mount = app.mount(&format!("export function apply(ctx) {{\n  {body}\n}}")).await;
            let heard = app.hears(expected).await;
            mount.dispose().await;

            assert_eq!(heard.len(), 1, "{heard:?}");
            assert!(
                heard[0].contains("`probe` failed in its task `script`: probe.ts:2:"),
                "{heard:?}"
            );
        }
        app.mount("export async function apply() { const it = Promise.reject(1); try { await it } catch {} }").await;
    });
}

#[test]
fn a_timer_comes_when_it_should_and_not_when_it_is_cleared() {
    run(async |app| {
        app.tools().await;
        let body = "
  const seen = []
  const never = setTimeout(() => seen.push('never'), 1)
  clearTimeout(never); clearTimeout(undefined); clearTimeout('x')
  let rounds = 0
  await new Promise(done => { const every = setInterval(a => { seen.push(a + ++rounds); if (rounds === 3) { clearInterval(every); done() } }, 1, 'r') })
  await new Promise(done => setImmediate(done))
  for (let i = 0; i < 30000; i++) clearTimeout(setTimeout(() => {}, 1e9))
  return seen.join()";
        app.mount(&tool(body)).await;

        assert_eq!(app.call("probe").await, "r1,r2,r3");
    });
}

#[test]
fn unloading_ends_whatever_the_script_does() {
    run(async |app| {
        app.tools().await;
        for body in [
            "while (true) {}",
            "for (;;) await null",
            "await new Promise(() => {})",
            "for (;;) ctx.get('nothing')",
            "/^(a+)+$/.test('a'.repeat(64) + 'b')",
        ] {
            let mount = app.mount(&tool(body)).await;
            let call = app.call("probe");
            let begin = Instant::now();
            let end = async {
                tokio::task::yield_now().await;
                mount.dispose().await;
            };

            let (said, ()) = tokio::join!(call, end);

            assert!(said.starts_with("Error: "), "{body}: {said}");
            assert!(begin.elapsed() < Duration::from_secs(5), "{body}: {:?}", begin.elapsed());
            app.reports();
        }
    });
}

#[test]
fn an_engine_that_cannot_even_be_interrupted_is_left_behind_and_said() {
    run(async |app| {
        app.tools().await;
        let mount = app.mount(&tool("Array.prototype.indexOf.call({ length: 2 ** 33 }, 1)")).await;
        let call = app.call("probe");
        let end = async {
            tokio::task::yield_now().await;
            mount.dispose().await;
        };

        let (said, ()) = tokio::join!(call, end);

        assert!(said.starts_with("Error: "), "{said}");
        let reports = app.reports();
        assert!(
            reports.iter().all(|it| it.contains("its engine cannot be stopped")),
            "{reports:?}"
        );
    });
}
