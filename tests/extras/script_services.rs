//! Services: those of the agent as scripts use them, and those that scripts provide.

use nano_cordis::{
    cordis::{BoxError, Context, NoConfig, State, Svc, plugin},
    harness::{prompt::Prompt, tools::Tools},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::script_world::run;

const SCHEMA: &str =
    "{ type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }";

#[test]
fn a_tool_of_a_script_is_in_the_table_as_long_as_the_script_runs() {
    run(async |world| {
        world.plugin("tools", json!({})).await;
        let mount = world
            .script(
                "echo.js",
                &format!(
                    "export const inject = ['tools']
                     export function apply(ctx) {{
                       ctx.tools.register({{ name: 'echo', description: 'Says it again.', parameters: {SCHEMA}, execute: ({{ text }}, call) => `${{call.name}}: ${{text}}` }})
                       ctx.tools.register('shout', 'Louder.', {SCHEMA}, async args => args.text.toUpperCase())
                       try {{ ctx.tools.register('shout', '', {SCHEMA}, () => '') }} catch (error) {{ ctx.emit('cordis/notice', error.message) }}
                     }}"
                ),
            )
            .await;

        let echoed = world.call("echo", json!({ "text": "hi" })).await;
        let shouted = world.call("shout", json!({ "text": "hi" })).await;
        let refused = world.call("echo", json!({ "text": 5 })).await;
        mount.dispose().await;

        assert_eq!(world.noted(), ["there is a tool named `shout` already"]);
        assert_eq!((echoed.content.as_str(), shouted.content.as_str()), ("echo: hi", "HI"));
        assert!(refused.content.contains("`text` must be of type string"), "{refused:?}");
        assert_eq!(world.root.get::<Tools>().unwrap().names(), [""; 0]);
    });
}

#[test]
fn what_a_tool_of_a_script_returns_becomes_the_text_that_the_model_reads() {
    run(async |world| {
        world.plugin("tools", json!({})).await;
        for (returned, content, is_error) in [
            ("'text'", "text", false),
            ("undefined", "", false),
            ("null", "", false),
            ("{ content: 'fine' }", "fine", false),
            ("{ content: 'went wrong', isError: true }", "Error: went wrong", true),
            ("{ a: [1, 'two'] }", "{\"a\":[1,\"two\"]}", false),
            ("5", "5", false),
            ("(() => { throw new Error('no luck') })()", "Error: it.js:2:: no luck", true),
            ("Promise.reject(new TypeError('later'))", "Error: it.js:2:: TypeError: later", true),
            (
                "(() => { throw { f() {} } })()",
                "Error: it.js:2:: something (`f` is a function, which cannot leave its script) was thrown, which is no Error",
                true,
            ),
            (
                "({ f() {} })",
                "Error: it.js:2:: what it returned: `f` is a function, which cannot leave its script",
                true,
            ),
        ] {
            let source = format!(
                "export const inject = ['tools']
                 export function apply(ctx) {{ ctx.tools.register('it', '', {{ type: 'object' }}, async () => ({returned})) }}"
            );
            let mount = world.script("it.js", &source).await;

            let result = world.call("it", json!({})).await;

            // The column is the engine's to say.
            let shown: String = match result.content.split_once("it.js:2:") {
                None => result.content.clone(),
                Some((before, rest)) => {
                    format!(
                        "{before}it.js:2:{}",
                        rest.trim_start_matches(|it: char| it.is_ascii_digit())
                    )
                }
            };
            assert_eq!((shown.as_str(), result.is_error), (content, is_error), "{returned}");
            mount.dispose().await;
        }
    });
}

#[test]
fn a_tool_of_a_script_hears_that_it_is_cancelled() {
    run(async |world| {
        world.plugin("tools", json!({})).await;
        world
            .script(
                "wait.js",
                "export const inject = ['tools']
                 export function apply(ctx) {
                   ctx.tools.register('wait', '', { type: 'object' }, (args, call) => new Promise(done => {
                     call.signal.addEventListener('abort', () => done('stopped in order'))
                     ctx.emit('cordis/notice', 'waits')
                   }))
                 }",
            )
            .await;
        let cancel = CancellationToken::new();

        let stop = async {
            world.until("waits").await;
            cancel.cancel();
        };
        let (result, ()) =
            tokio::join!(world.call_until("wait", json!({}), cancel.clone(), None), stop);

        assert_eq!(result.content, "stopped in order");
    });
}

#[test]
fn a_tool_whose_schema_is_none_is_refused_where_it_is_registered() {
    run(async |world| {
        world.plugin("tools", json!({})).await;

        for (tool, problem) in [
            (
                "'bad', '', { type: 'sausage' }, () => ''",
                "tool `bad`: its schema is of type \"sausage\"",
            ),
            ("'bad', '', 'text', () => ''", "tool `bad`: its schema is no JSON Schema object"),
            (
                "'bad', '', { required: 'a' }, () => ''",
                "tool `bad`: its schema is no JSON Schema: ",
            ),
            (
                "'bad', '', { text: { type: 'string' } }, () => ''",
                "tool `bad`: its schema is no JSON Schema: `text` is none of its words; fields stand under `properties`",
            ),
            (
                "'bad', '', { type: 'object', properties: { a: { type: 'strin' } } }, () => ''",
                "tool `bad`: its schema is no JSON Schema: ",
            ),
            ("{ execute: () => '' }", "the name of a tool must be a text, not null"),
            ("'bad', '', {}", "tool `bad`: `execute` is no function"),
        ] {
            let source = format!(
                "export const inject = ['tools']
                 export function apply(ctx) {{
                   ctx.tools.register({tool})
                 }}"
            );
            let err = world.failing("bad.js", &source).await;

            assert!(err.contains("bad.js:3:") && err.contains(problem), "{tool}: {err}");
        }
    });
}

#[test]
fn a_tool_can_be_unregistered_by_name_and_run_by_a_script_through_all_policies() {
    run(async |world| {
        world.plugin("tools", json!({})).await;
        world
            .script(
                "both.js",
                "export const inject = ['tools']
                 export async function apply(ctx) {
                   const note = value => ctx.emit('cordis/notice', typeof value === 'string' ? value : JSON.stringify(value))
                   ctx.tools.register('echo', 'Again.', undefined, args => args.text)
                   ctx.on('tools/pre-execute', (call, next) => (call.arguments.text === 'no' ? { kind: 'deny', reason: 'not that' } : next()))
                   note(ctx.tools.names())
                   note(ctx.tools.schemas()[0].function.name)
                   note(await ctx.tools.execute('echo', { text: 'yes' }))
                   note(await ctx.tools.execute('echo', { text: 'no' }))
                   await ctx.tools.unregister('echo')
                   note(ctx.tools.names())
                   await ctx.tools.unregister('echo')
                 }",
            )
            .await;

        assert_eq!(
            world.noted(),
            [
                "[\"echo\"]",
                "echo",
                "{\"content\":\"yes\",\"isError\":false,\"denied\":false}",
                "{\"content\":\"Error: not that\",\"isError\":true,\"denied\":true}",
                "[]",
            ]
        );
    });
}

#[test]
fn a_section_of_a_script_is_in_the_prompt_as_long_as_the_script_runs() {
    run(async |world| {
        world.plugin("prompt", json!({ "persona": "You are." })).await;
        let mount = world
            .script(
                "greet.js",
                "export const inject = ['prompt']
                 export function apply(ctx) {
                   ctx.prompt.section('greet', 10, 'Greet first.')
                   ctx.emit('cordis/notice', ctx.prompt.render())
                 }",
            )
            .await;

        let with = world.root.get::<Prompt>().unwrap().render();
        mount.dispose().await;
        let without = world.root.get::<Prompt>().unwrap().render();

        assert_eq!((with.as_str(), without.as_str()), ("You are.\n\nGreet first.", "You are."));
        assert_eq!(world.noted(), [with]);
    });
}

#[test]
fn k_039_script_a_service_of_the_agent_must_be_declared_to_be_read() {
    run(async |world| {
        world.plugin("tools", json!({})).await;
        world
            .script(
                "bare.js",
                "export function apply(ctx) {
                   const read = name => { try { return typeof ctx[name] } catch (error) { return error.message } }
                   ctx.emit('cordis/notice', `${read('tools')} | ${typeof ctx.get('tools')} | ${ctx.get('prompt')} | ${read('prompt')}`)
                   try { ctx.get('env') } catch (error) { ctx.emit('cordis/notice', error.message) }
                 }",
            )
            .await;

        assert_eq!(
            world.noted(),
            [
                "`bare` reads the service `tools` without declaring it | object | undefined | `bare` reads the service `prompt` without declaring it",
                "the service `env` is not for scripts",
            ]
        );
    });
}

#[test]
fn k_131_to_k_138_script_a_service_of_a_script_registers_for_its_caller() {
    run(async |world| {
        world
            .script(
                "callers.ts",
                "import { Context, Service } from 'cordis'
                 export async function apply(ctx: any) {
                   const note = (text: string) => ctx.emit('cordis/notice', text)
                   class Things extends Service {
                     static inject = ['u']
                     list: string[] = []
                     constructor(ctx: Context) { super(ctx, 'things') }
                     add(name: string) { this.list.push(name); return (this as any).ctx.effect(() => () => { note(`gone ${name}`) }) }
                     own() { return (this as any).ctx.u.value }
                     foreign() { return (this as any).ctx.v.value }
                   }
                   for (const name of ['u', 'v']) await ctx.plugin({ name, apply: (ctx: any) => { ctx.provide(name, { value: name }) } })
                   const things = await ctx.plugin(Things)
                   let view: any
                   const user = (name: string) => ctx.plugin({ name, inject: ['things', 'v'], apply: (ctx: any) => { ctx.things.add(name); view = ctx.things } })
                   const one = await user('one'), two = await user('two')
                   note(`${view.list} ${view.own()}`)
                   try { view.foreign() } catch (error: any) { note(error.message) }
                   await two.dispose()
                   try { view.add('late') } catch (error: any) { note(error.message) }
                   await things.dispose()
                 }",
            )
            .await;

        let notes = world.noted();
        assert_eq!(notes[0], "one,two u");
        assert_eq!(notes[1], "`callers > Things` reads the service `v` without declaring it");
        assert_eq!(notes[2], "gone two");
        assert!(
            notes[3].ends_with("is not running, so nothing can be registered on it")
                || notes[3].contains("unloaded"),
            "{notes:?}"
        );
        assert_eq!(notes[4..], ["gone one"]);
    });
}

#[test]
fn k_137_script_what_is_written_through_a_view_is_written_to_the_object() {
    run(async |world| {
        world
            .script(
                "state.js",
                "export async function apply(ctx) {
                   const object = { value: 1 }
                   ctx.provide('x', object)
                   const user = apply => ctx.plugin({ inject: ['x'], apply })
                   ctx.on('ready', () => ctx.setTimeout(async () => {
                     await user(ctx => { ctx.x.value = 2 })
                     await user(ctx => ctx.emit('cordis/notice', String(ctx.x.value)))
                     ctx.emit('cordis/notice', String(object.value))
                     ctx.emit('cordis/notice', 'end')
                   }, 1))
                 }",
            )
            .await;

        assert_eq!(world.until("end").await, ["2", "2"]);
    });
}

#[test]
fn a_service_of_another_script_has_methods_that_return_promises() {
    run(async |world| {
        let provider = world
            .script(
                "clock.js",
                "export function apply(ctx) {
                   ctx.provide('clock', {
                     hidden: 5,
                     now: zone => ({ zone, time: 12 }),
                     fail() { throw new Error('stopped') },
                     nothing() {},
                   })
                   class Deep { constructor(ctx) { this.ctx = ctx; ctx.provide('deep', this) } register(name) { this.ctx.effect(() => () => ctx.emit('cordis/notice', `undone ${name}`)) } }
                   new Deep(ctx)
                 }",
            )
            .await;
        let user = world
            .script(
                "user.js",
                "export const inject = ['clock', 'deep']
                 export async function apply(ctx) {
                   const note = value => ctx.emit('cordis/notice', JSON.stringify(value) ?? 'undefined')
                   note(await ctx.clock.now('UTC'))
                   note(await ctx.clock.nothing())
                   note(Object.keys(ctx.clock))
                   await ctx.clock.fail().catch(error => note(error.message))
                   await ctx.deep.register('mine')
                 }",
            )
            .await;

        user.dispose().await;

        let notes = world.noted();
        assert_eq!(
            notes[..3],
            ["{\"zone\":\"UTC\",\"time\":12}", "undefined", "[\"now\",\"fail\",\"nothing\"]"]
        );
        assert!(notes[3].contains("clock.js:5:") && notes[3].contains("stopped"), "{notes:?}");
        assert_eq!(notes[4..], ["undone mine"]);
        provider.dispose().await;
    });
}

#[test]
fn k_034_script_a_script_stops_and_starts_with_the_service_of_another() {
    run(async |world| {
        let provider = "export function apply(ctx) { ctx.provide('clock', { now: () => 12 }) }";
        let first = world.script("clock.js", provider).await;
        let user = world
            .script(
                "user.js",
                "export const inject = ['clock']
                 export async function apply(ctx) {
                   ctx.emit('cordis/notice', `starts ${await ctx.clock.now()}`)
                   return () => ctx.emit('cordis/notice', 'stops')
                 }",
            )
            .await;

        first.dispose().await;
        user.settled().await;
        let state = user.state();
        world.script("clock.js", provider).await;
        user.ready().await.unwrap();

        assert_eq!(state, State::Pending);
        assert_eq!(user.state(), State::Active);
        assert_eq!(world.noted(), ["starts 12", "stops", "starts 12"]);
    });
}

#[test]
fn k_064_script_a_script_that_takes_the_name_of_a_service_of_the_agent_is_told_to_its_users() {
    run(async |world| {
        world
            .script(
                "mine.js",
                "export function apply(ctx) { ctx.provide('tools', { register() {} }) }",
            )
            .await;
        let user = plugin(async |_: Context, _: NoConfig, _: Svc<Tools>| Ok::<(), BoxError>(()));

        let mount = world.root.plugin_named("user", &user, json!({})).unwrap();
        let err = mount.ready().await.unwrap_err().to_string();

        assert!(
            err.contains("the service `tools` is not of the type that `user` expects"),
            "{err}"
        );
        world.take_report();
    });
}
