//! Events that only scripts know: within one script and between two.

use crate::script_world::run;

#[test]
fn k_101_k_102_k_104_script_emit_runs_listeners_in_order_and_reports_what_fails() {
    run(async |world| {
        world
            .script(
                "emit.js",
                "export function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   ctx.on('my/event', (a, b) => note(`one ${a} ${b()}`))
                   ctx.on('my/event', () => { throw new Error('bad luck') })
                   ctx.on('my/event', () => note('three'))
                   ctx.on('my/event', () => note('first'), { order: -1 })
                   note(String(ctx.emit('my/event', 1, () => 2)))
                 }",
            )
            .await;
        let report = world.report().await;

        assert_eq!(world.noted(), ["first", "one 1 2", "three", "undefined"]);
        assert!(report.starts_with("`emit` failed on `my/event`: emit.js:4:"), "{report}");
        assert!(report.ends_with("bad luck"), "{report}");
    });
}

#[test]
fn k_105_script_without_listeners_each_way_of_dispatch_has_its_nothing() {
    run(async |world| {
        world
            .script(
                "none.js",
                "export async function apply(ctx) {
                   const said = [ctx.emit('no/one'), await ctx.parallel('no/one'), await ctx.serial('no/one'), ctx.waterfall('no/one', 1, value => value + 1)]
                   ctx.emit('cordis/notice', said.join())
                 }",
            )
            .await;

        assert_eq!(world.noted(), [",,,2"]);
    });
}

#[test]
fn k_106_k_108_k_109_k_110_k_111_script_listeners_that_come_and_go_during_a_dispatch() {
    run(async |world| {
        world
            .script(
                "change.js",
                "export function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   let undoThird, depth = 0
                   ctx.on('my/event', () => {
                     note('one')
                     undoThird()
                     if (depth++ === 0) { ctx.on('my/event', () => note('new')); ctx.emit('my/event'); note('nested done') }
                   })
                   const twice = () => note('twice')
                   const undo = ctx.on('my/event', twice)
                   ctx.on('my/event', twice)
                   undoThird = ctx.on('my/event', () => note('never'))
                   ctx.emit('my/event')
                   note('--')
                   undo()
                   ctx.emit('my/event')
                 }",
            )
            .await;

        assert_eq!(
            world.noted(),
            [
                "one",
                "one",
                "twice",
                "twice",
                "new",
                "nested done",
                "twice",
                "twice",
                "--",
                "one",
                "twice",
                "new",
            ]
        );
    });
}

#[test]
fn k_112_k_114_k_115_script_parallel_starts_all_and_collects_all_failures() {
    run(async |world| {
        world
            .script(
                "parallel.js",
                "export async function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   let here = 0, open
                   const all = new Promise(done => (open = done))
                   for (const at of [1, 2, 3]) ctx.on('meet', async () => { if (++here === 3) open(); await all })
                   await ctx.parallel('meet')
                   note('met')
                   ctx.on('fail', async () => { await new Promise(done => setTimeout(done, 5)); throw new Error('late') })
                   ctx.on('fail', () => { throw new Error('at once') })
                   await ctx.parallel('fail').catch(error => note(`${error.constructor.name}: ${error.errors.map(it => it.message)}`))
                   ctx.on('fail-one', () => { throw new Error('one') })
                   await ctx.parallel('fail-one').catch(error => note(String(error.errors.length)))
                 }",
            )
            .await;

        assert_eq!(world.noted(), ["met", "AggregateError: late,at once", "1"]);
    });
}

#[test]
fn k_116_to_k_120_script_serial_takes_the_first_meaningful_answer() {
    run(async |world| {
        world
            .script(
                "serial.js",
                "export async function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   const ask = async (...answers) => {
                     const asked = []
                     const undo = answers.map((it, at) => ctx.on('ask', async () => { asked.push(at); if (it instanceof Error) throw it; return it }))
                     const said = await ctx.serial('ask').catch(error => error.message)
                     note(`${JSON.stringify(said)} after ${asked.length}`)
                     await Promise.all(undo.map(it => it()))
                   }
                   await ask(undefined, 'v', 'w')
                   await ask(undefined, null, false)
                   await ask(null, 0, 1)
                   await ask('', 1)
                   await ask([], 1)
                   await ask(new Error('broken'), 1)
                 }",
            )
            .await;

        assert_eq!(
            world.noted(),
            [
                "\"v\" after 2",
                "undefined after 3",
                "0 after 2",
                "\"\" after 1",
                "[] after 1",
                "\"broken\" after 1"
            ]
        );
    });
}

#[test]
fn k_121_to_k_129_script_waterfall_wraps_and_next_means_the_rest() {
    run(async |world| {
        world
            .script(
                "waterfall.js",
                "export async function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   for (const name of ['a', 'b']) ctx.on('walk', (input, next) => { note(`${name} in`); const out = next(); note(`${name} out`); return out })
                   ctx.waterfall('walk', 1, () => note('innermost'))
                   ctx.on('add', (input, next) => input + next())
                   ctx.on('add', (input, next) => input + next())
                   note(String(ctx.waterfall('add', 1, () => 2)))
                   ctx.on('short', (input, next) => `seen ${next()}`)
                   ctx.on('short', () => 'short')
                   ctx.on('short', () => note('never'))
                   note(ctx.waterfall('short', 1, () => 'innermost'))
                   let runs = 0, kept
                   ctx.on('twice', (input, next) => { kept = next; next(); return next() })
                   ctx.on('twice', (input, next) => { next(); return next() })
                   ctx.waterfall('twice', 1, () => runs++)
                   note(`${runs} runs`)
                   kept()
                   note(`${runs} runs`)
                   ctx.on('catch', (input, next) => { try { return next() } catch { return 'caught' } })
                   note(ctx.waterfall('catch', 1, () => { throw new Error('inner') }))
                   try { ctx.waterfall('catch', 1) } catch (error) { note(error.name) }
                 }",
            )
            .await;

        assert_eq!(
            world.noted(),
            [
                "a in",
                "b in",
                "innermost",
                "b out",
                "a out",
                "4",
                "seen short",
                "4 runs",
                "6 runs",
                "caught",
                "TypeError",
            ]
        );
    });
}

#[test]
fn two_scripts_hear_each_other_in_all_four_ways_and_order_holds_across_them() {
    run(async |world| {
        world
            .script(
                "listens.js",
                "export function apply(ctx) {
                   ctx.on('told', value => ctx.emit('cordis/notice', `heard ${JSON.stringify(value)}`))
                   ctx.on('worked', async () => { throw new Error('from afar') })
                   ctx.on('asked', value => (value > 1 ? { twice: value * 2 } : undefined))
                   ctx.on('wrapped', async (value, next) => `<${await next()}>`, -5)
                   ctx.on('toString', value => ctx.emit('cordis/notice', `any name, ${value}`))
                 }",
            )
            .await;
        world
            .script(
                "raises.js",
                "export async function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   ctx.on('wrapped', async (value, next) => `[${await next()}]`)
                   ctx.on('asked', () => 'mine', 1)
                   await ctx.parallel('worked').catch(error => note(error.errors[0].message))
                   note(`${await ctx.serial('asked', 1)} ${JSON.stringify(await ctx.serial('asked', 2))}`)
                   note(await ctx.waterfall('wrapped', 5, value => `in ${value}`))
                   await ctx.parallel('toString', 'too')
                   ctx.emit('told', { a: [1] })
                 }",
            )
            .await;

        let mut notes = world.until("heard {\"a\":[1]}").await;

        assert!(notes.remove(0).ends_with("from afar"));
        assert_eq!(notes, ["mine {\"twice\":4}", "<[in 5]>", "any name, too"]);
    });
}

#[test]
fn a_listener_of_an_unloaded_script_hears_nothing_and_what_cannot_cross_is_named() {
    run(async |world| {
        let gone = world
            .script("gone.js", "export function apply(ctx) { ctx.on('told', () => ctx.emit('cordis/notice', 'gone')) }")
            .await;
        world
            .script("stays.js", "export function apply(ctx) { ctx.on('told', () => ctx.emit('cordis/notice', 'stays')) }")
            .await;
        gone.dispose().await;

        world
            .script(
                "raises.js",
                "export async function apply(ctx) {
                   ctx.emit('told', 1)
                   await ctx.parallel('told', { deep: { f() {} } }).catch(error => ctx.emit('cordis/notice', error.errors[0].message))
                 }",
            )
            .await;
        let notes = world.until("stays").await;
        let all: Vec<_> = notes.into_iter().chain(world.noted()).collect();

        assert!(!all.contains(&"gone".to_owned()), "{all:?}");
        assert!(
            all.iter().any(|it| it.contains("a function, which cannot leave its script")),
            "{all:?}"
        );
    });
}

#[test]
fn k_064_script_events_of_the_agent_are_raised_as_they_are_or_refused_by_name() {
    run(async |world| {
        world
            .script(
                "wrong.js",
                "export async function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   const tries = [
                     () => ctx.emit('tools/pre-execute', {}),
                     () => ctx.serial('session/event', {}),
                     () => ctx.emit('session/event', {}),
                     () => ctx.serial('trust/confirm', {}),
                     () => ctx.on('trust/confirm', () => true),
                     () => ctx.on('env/check', () => {}),
                     () => ctx.on('console/signal', () => {}),
                     () => ctx.parallel('cordis/notice', 'x'),
                     () => ctx.emit('cordis/notice', 5),
                   ]
                   for (const it of tries) try { await it(); note('done') } catch (error) { note(error.message) }
                   ctx.emit('cordis/warning', 'warned')
                 }",
            )
            .await;

        assert_eq!(
            world.noted(),
            [
                "`tools/pre-execute` is raised by `waterfall`, so `emit` cannot be used for it",
                "`session/event` is raised by `emit`, so `serial` cannot be used for it",
                "`session/event` is raised by the agent alone",
                "`trust/confirm` is not for scripts",
                "`trust/confirm` is not for scripts",
                "`env/check` is not for scripts",
                "`console/signal` is not for scripts",
                "`cordis/notice` is raised by `emit`, so `parallel` cannot be used for it",
                "`cordis/notice` wants a text",
                "warned",
            ]
        );
    });
}
