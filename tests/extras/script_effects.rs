//! What a script registers, and how it goes. A row of the kernel that a script can show has its number here, too.

use nano_cordis::cordis::State;
use serde_json::json;

use crate::script_world::run;

#[test]
fn k_001_k_004_script_cleanups_run_in_reverse_the_returned_one_first() {
    run(async |world| {
        let mount = world
            .script(
                "order.js",
                "export function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   for (const name of ['one', 'two', 'three']) ctx.effect(() => () => note(name))
                   ctx.on('dispose', () => note('dispose'))
                   return () => note('returned')
                 }",
            )
            .await;

        mount.dispose().await;

        assert_eq!(world.noted(), ["returned", "dispose", "three", "two", "one"]);
    });
}

#[test]
fn k_003_script_a_cleanup_that_takes_time_is_waited_for() {
    run(async |world| {
        let mount = world
            .script(
                "slow.js",
                "export function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   ctx.effect(() => () => note('one'))
                   ctx.effect(() => async () => {
                     note('two begins')
                     await new Promise(done => setTimeout(done, 20))
                     note('two ends')
                   })
                 }",
            )
            .await;

        mount.dispose().await;

        assert_eq!(world.noted(), ["two begins", "two ends", "one"]);
    });
}

#[test]
fn k_005_k_006_k_007_k_008_k_009_script_an_undo_runs_once_and_only_its_first_call_waits() {
    run(async |world| {
        let mount = world
            .script(
                "undo.js",
                "export async function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   let open
                   const gate = new Promise(done => (open = done))
                   const undo = ctx.effect(() => async () => {
                     note('begins')
                     await undo()
                     await gate
                     note('ends')
                   })
                   const first = undo().then(() => note('first'))
                   await undo()
                   note('second')
                   open()
                   await first
                   await undo()
                   note('third')
                 }",
            )
            .await;
        assert_eq!(mount.effect_count(), 2, "the engine and the task that serves it");

        mount.dispose().await;

        let notes = world.noted();
        assert_eq!(notes.iter().filter(|it| *it == "ends").count(), 1);
        assert_eq!(notes[notes.len() - 3..], ["ends", "first", "third"]);
        assert!(notes[..2].contains(&"second".to_owned()), "{notes:?}");
    });
}

#[test]
fn k_013_script_a_cleanup_that_throws_is_reported_once_and_the_others_run() {
    run(async |world| {
        let mount = world
            .script(
                "throws.js",
                "export function apply(ctx) {
                   ctx.effect(() => () => ctx.emit('cordis/notice', 'one'))
                   ctx.effect(() => () => { throw new Error('no such luck') })
                   ctx.effect(() => () => ctx.emit('cordis/notice', 'three'))
                 }",
            )
            .await;

        mount.dispose().await;

        assert_eq!(world.noted(), ["three", "one"]);
        let report = world.take_report();
        assert!(report.contains("`throws` failed to clean up: throws.js:3:"), "{report}");
        assert!(report.ends_with("no such luck"), "{report}");
    });
}

#[test]
fn k_015_k_016_script_errors_of_setup_and_of_an_undo_by_hand_are_the_callers() {
    run(async |world| {
        let mount = world
            .script(
                "hand.js",
                "export async function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   const wrong = new Error('wrong')
                   try { ctx.effect(() => { throw wrong }) } catch (error) { note(String(error === wrong)) }
                   try { ctx.effect(() => 5) } catch (error) { note(error.message) }
                   await ctx.effect(() => () => { throw wrong })().catch(error => note(String(error === wrong)))
                 }",
            )
            .await;

        let notes = world.noted();

        assert_eq!(notes, ["true", "an effect must return its cleanup, a function", "true"]);
        mount.dispose().await;
    });
}

#[test]
fn k_002_script_what_a_setup_registers_is_undone_before_the_effect() {
    run(async |world| {
        let mount = world
            .script(
                "inner.js",
                "export function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   ctx.effect(() => {
                     ctx.effect(() => () => note('inner'))
                     return () => note('outer')
                   })
                 }",
            )
            .await;

        mount.dispose().await;

        assert_eq!(world.noted(), ["inner", "outer"]);
    });
}

#[test]
fn k_018_script_nothing_is_registered_while_it_unloads() {
    run(async |world| {
        let mount = world
            .script(
                "late.js",
                "export function apply(ctx) {
                   ctx.effect(() => () => {
                     let ran = false
                     const tries = [
                       () => ctx.effect(() => { ran = true; return () => {} }),
                       () => ctx.on('some/event', () => {}),
                       () => ctx.provide('late', {}),
                       () => ctx.plugin(() => {}),
                       () => ctx.setTimeout(() => {}, 1),
                     ]
                     for (const it of tries) {
                       try { it(); ctx.emit('cordis/notice', 'accepted') } catch (error) { ctx.emit('cordis/notice', error.message) }
                     }
                   })
                 }",
            )
            .await;

        mount.dispose().await;

        let notes = world.noted();
        assert_eq!(notes.len(), 5);
        for note in notes {
            assert_eq!(note, "`late` is not running, so nothing can be registered on it");
        }
    });
}

#[test]
fn k_212_script_a_context_of_an_earlier_start_registers_nothing() {
    run(async |world| {
        let mount = world
            .script(
                "stale.js",
                "export function apply(ctx) {
                   const old = []
                   let withdraw = ctx.provide('x', { value: 1 })
                   const child = { name: 'child', inject: ['x'], apply(ctx) { old.push(ctx) } }
                   const handle = ctx.plugin(child)
                   ctx.on('go', async () => {
                     await handle
                     await withdraw()
                     withdraw = ctx.provide('x', { value: 2 })
                     await handle
                     ctx.emit('cordis/notice', `${old.length} ${handle.state}`)
                     try { old[0].effect(() => () => {}) } catch (error) { ctx.emit('cordis/notice', error.message) }
                     old[1].effect(() => () => {})
                     ctx.emit('cordis/notice', 'end')
                   })
                   ctx.setTimeout(() => ctx.emit('go'), 1)
                 }",
            )
            .await;

        let notes = world.until("end").await;

        assert_eq!(
            notes,
            ["2 ACTIVE", "`stale > child` is not running, so nothing can be registered on it"]
        );
        mount.dispose().await;
    });
}

#[test]
fn timers_go_with_the_plugin_and_leave_nothing_when_they_have_fired() {
    run(async |world| {
        let mount = world
            .script(
                "timers.js",
                "export function apply(ctx) {
                   let times = 0
                   const stop = ctx.setInterval(async () => {
                     if (++times === 3) { await stop(); ctx.emit('cordis/notice', 'three') }
                   }, 1)
                   ctx.setTimeout(text => ctx.emit('cordis/notice', text), 1, 'fired')
                   ctx.setTimeout(() => ctx.emit('cordis/notice', 'never'), 1e6)
                 }",
            )
            .await;

        world.until("three").await;
        world
            .script("other.js", "export function apply(ctx) { ctx.emit('cordis/notice', 'end') }")
            .await;
        world.until("end").await;
        let left = mount.effect_count();
        mount.dispose().await;

        assert_eq!(left, 3, "the engine, its task, and the timer that has not fired");
        assert_eq!(world.noted(), [""; 0]);
    });
}

#[test]
fn ready_listeners_run_after_the_body_and_at_once_when_it_has_ended() {
    run(async |world| {
        world
            .script(
                "ready.js",
                "export async function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   ctx.on('ready', () => note('ready'))
                   note('body')
                   ctx.setTimeout(() => ctx.on('ready', () => note('end')), 1)
                 }",
            )
            .await;

        let notes = world.until("end").await;

        assert_eq!(notes, ["body", "ready"]);
    });
}

#[test]
fn a_context_cannot_be_made_and_its_parts_cannot_be_set_or_offered() {
    run(async |world| {
        world
            .script(
                "names.ts",
                "import { Context } from 'cordis'
                 export function apply(ctx: any) {
                   const tries = [() => new Context(), () => (ctx.x = 1), () => ctx.provide('emit', {}), () => ctx.provide('setTimeout', {}), () => ctx.provide('then', {})]
                   for (const it of tries) try { it() } catch (error) { ctx.emit('cordis/notice', error.message) }
                   ctx.emit('cordis/notice', 'end')
                 }",
            )
            .await;

        let notes = world.until("end").await;

        assert_eq!(notes.len(), 5, "{notes:?}");
        assert!(notes[0].contains("first argument of `apply`"), "{notes:?}");
        assert!(notes[1].contains("`ctx.x` cannot be set"), "{notes:?}");
        for (note, name) in notes[2..].iter().zip(["emit", "setTimeout", "then"]) {
            assert!(note.starts_with(&format!("a service cannot be called `{name}`")), "{note}");
        }
    });
}

#[test]
fn a_start_that_never_ends_does_not_keep_the_plugin() {
    run(async |world| {
        let mount =
            world.mount("never.js", "export const apply = () => new Promise(() => {})", json!({}));
        tokio::task::yield_now().await;

        mount.dispose().await;

        assert_eq!(mount.state(), State::Disposed);
        let report = world.take_report();
        assert!(report.contains("`never`"), "{report}");
    });
}
