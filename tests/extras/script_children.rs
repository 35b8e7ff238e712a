//! Children of a script: `ctx.plugin`, its handle, and what they read.

use crate::script_world::run;

#[test]
fn k_067_k_068_k_069_script_a_child_starts_after_the_block_that_mounts_it() {
    run(async |world| {
        world
            .script(
                "mounts.js",
                "export async function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   const handle = ctx.plugin(ctx => { note('child'); ctx.provide('x', { value: 7 }) })
                   note(`parent ${handle.state}`)
                   const child = await handle
                   note(`${child.state} ${ctx.get('x').value}`)
                   await child.dispose()
                   note(`${child.state} ${ctx.get('x')}`)
                 }",
            )
            .await;

        let notes = world.noted();

        assert_eq!(notes, ["parent PENDING", "child", "ACTIVE 7", "DISPOSED undefined"]);
    });
}

#[test]
fn k_070_k_072_k_091_script_awaiting_a_child_that_fails_throws_its_own_error() {
    run(async |world| {
        world
            .script(
                "fails.js",
                "export async function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   const wrong = new Error('wrong')
                   const handle = ctx.plugin({ name: 'child', apply() { throw wrong } })
                   for (const time of [1, 2]) {
                     try { await handle } catch (error) { note(`${error === wrong} ${handle.state}`) }
                   }
                 }",
            )
            .await;

        assert_eq!(world.noted(), ["true FAILED", "true FAILED"]);
        let report = world.take_report();
        assert!(report.starts_with("`fails > child` failed: fails.js:3:"), "{report}");
        assert!(report.ends_with("wrong"), "{report}");
    });
}

#[test]
fn k_071_script_the_config_of_a_child_is_checked() {
    run(async |world| {
        world
            .script(
                "config.ts",
                "import { Schema } from 'cordis'
                 export async function apply(ctx: any) {
                   const note = (text: string) => ctx.emit('cordis/notice', text)
                   class Child {
                     static Config = Schema.object({ times: Schema.number().default(3) })
                     constructor(ctx: any, config: any) { note(`times ${config.times}`) }
                   }
                   await ctx.plugin(Child)
                   await ctx.plugin(Child, { times: 'often' }).then(null, (error: Error) => note(error.message))
                 }",
            )
            .await;

        let notes = world.noted();
        assert_eq!(notes[0], "times 3");
        assert!(notes[1].contains("times: must be a number"), "{notes:?}");
        let report = world.take_report();
        assert!(report.contains("`config > Child` cannot start"), "{report}");
    });
}

#[test]
fn k_080_script_a_child_that_is_unmounted_in_the_same_block_never_runs() {
    run(async |world| {
        world
            .script(
                "never.js",
                "export async function apply(ctx) {
                   const handle = ctx.plugin(() => ctx.emit('cordis/notice', 'ran'))
                   await handle.dispose()
                   ctx.emit('cordis/notice', handle.state)
                 }",
            )
            .await;

        assert_eq!(world.noted(), ["DISPOSED"]);
    });
}

#[test]
fn k_031_k_034_k_036_script_children_start_and_stop_with_their_services() {
    run(async |world| {
        world
            .script(
                "needs.js",
                "export async function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   const user = ctx.plugin({ name: 'user', inject: ['x'], apply(ctx) {
                     note(`starts with ${ctx.x.value}`)
                     return () => note('stops')
                   } })
                   await user
                   note(user.state)
                   const provider = value => ctx.plugin({ name: 'provider', apply: ctx => { ctx.provide('x', { value }) } })
                   const first = await provider(1)
                   await user
                   await first.dispose()
                   await user
                   note(user.state)
                   await provider(2)
                   await user
                   note(user.state)
                 }",
            )
            .await;

        assert_eq!(
            world.noted(),
            ["PENDING", "starts with 1", "stops", "PENDING", "starts with 2", "ACTIVE"]
        );
    });
}

#[test]
fn k_039_to_k_048_script_what_a_plugin_may_read() {
    run(async |world| {
        world
            .script(
                "reads.js",
                "export async function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   const read = (ctx, name) => { try { return ctx[name].value } catch (error) { return error.message } }
                   await ctx.plugin({ name: 'sibling', apply: ctx => { ctx.provide('x', { value: 'x' }) } })
                   await ctx.plugin({ name: 'bare', apply: ctx => note(`${read(ctx, 'x')} | ${ctx.get('x').value} | ${ctx.get('nothing')}`) })
                   await ctx.plugin({ name: 'own', apply: ctx => { ctx.provide('y', { value: 'y' }); note(`${read(ctx, 'y')} | ${ctx.get('y')}`) } })
                   await ctx.plugin({ name: 'outer', inject: { x: { required: true } }, apply: async ctx => {
                     await ctx.plugin({ name: 'inner', apply: ctx => note(read(ctx, 'x')) })
                   } })
                 }",
            )
            .await;

        assert_eq!(
            world.noted(),
            [
                "`reads > bare` reads the service `x` without declaring it | x | undefined",
                "y | undefined",
                "x",
            ]
        );
    });
}

#[test]
fn k_041_script_a_declared_service_that_has_gone_is_an_error_and_not_undefined() {
    run(async |world| {
        world
            .script(
                "gone.js",
                "export async function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   const provider = await ctx.plugin({ name: 'provider', apply: ctx => { ctx.provide('x', { value: 1 }) } })
                   let kept
                   await ctx.plugin({ name: 'user', inject: ['x'], apply: ctx => { kept = ctx } })
                   await provider.dispose()
                   try { kept.x } catch (error) { note(error.message) }
                   note(String(kept.get('x')))
                 }",
            )
            .await;

        assert_eq!(
            world.noted(),
            ["the service `x`, which `gone > user` needs, is not there", "undefined"]
        );
    });
}

#[test]
fn k_050_k_051_script_a_second_provider_of_a_name_is_refused() {
    run(async |world| {
        world
            .script(
                "twice.js",
                "export async function apply(ctx) {
                   await ctx.plugin({ name: 'one', apply: ctx => { ctx.provide('x', { value: 1 }) } })
                   await ctx.plugin({ name: 'two', apply: ctx => { ctx.provide('x', { value: 2 }) } }).then(null, error => ctx.emit('cordis/notice', error.message))
                   ctx.emit('cordis/notice', String(ctx.get('x').value))
                 }",
            )
            .await;

        assert_eq!(world.noted(), ["the service `x` is provided by `twice > one` already", "1"]);
        world.take_report();
    });
}

#[test]
fn the_three_shapes_of_a_plugin_can_be_mounted_and_nothing_else() {
    run(async |world| {
        world
            .script(
                "shapes.js",
                "export async function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   await ctx.plugin(function one(ctx, config) { note(`function ${config.a}`) }, { a: 1 })
                   await ctx.plugin(class Two { constructor(ctx, config) { note(`class ${config.a}`) } }, { a: 2 })
                   await ctx.plugin({ apply(ctx, config) { note(`object ${config.a}`) } }, { a: 3 })
                   for (const it of [5, null, {}, { implement: {} }]) {
                     try { ctx.plugin(it) } catch (error) { note(error.name) }
                   }
                 }",
            )
            .await;

        let notes = world.noted();
        assert_eq!(notes[..3], ["function 1", "class 2", "object 3"]);
        assert_eq!(notes[3..], ["TypeError"; 4]);
    });
}

#[test]
fn k_084_script_a_start_that_awaits_its_own_end_is_given_up_and_its_child_is_gone() {
    run(async |world| {
        world
            .script(
                "waits.js",
                "export async function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   const handle = ctx.plugin({ name: 'child', async apply(ctx) {
                     ctx.effect(() => () => note('undone'))
                     await Promise.resolve()
                     note('waits')
                     await handle.dispose()
                     note('goes on')
                   } })
                   await handle.then(() => {}, error => note(error.message))
                   note(handle.state)
                 }",
            )
            .await;

        let report = world.take_report();
        let notes = world.noted();

        assert!(report.contains("it was told to stop, and its start did not end"), "{report}");
        assert_eq!(notes[..2], ["waits", "undone"]);
        assert!(notes.iter().any(|it| it == "DISPOSED"), "{notes:?}");
    });
}
