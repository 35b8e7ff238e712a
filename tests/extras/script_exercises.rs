//! The exercises of the original and what its readers try first, in TypeScript as they would write it.

use std::rc::Rc;

use nano_cordis::harness::{
    agent_loop::AgentLoop,
    session::{Session, Sessions, event::Reason},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::script_world::{World, run};

/// A whole agent with a scripted model, and a session.
async fn agent(world: &World, script: Value) -> Rc<Session> {
    world.plugins(&["session", "prompt", "tools"]).await;
    world.plugin("llm-fake", json!({ "script": script })).await;
    world.plugin("shell-local", json!({ "graceMs": 50 })).await;
    world.plugins(&["tool-bash", "agent-loop"]).await;
    world.root.get::<Sessions>().unwrap().create().unwrap()
}

async fn turn(world: &World, session: &Rc<Session>) -> Reason {
    let agent_loop = world.root.get::<AgentLoop>().unwrap();
    Box::pin(agent_loop.run(session, "go", CancellationToken::new())).await.unwrap().reason
}

fn result(session: &Session) -> String {
    session.messages()[2].text().to_owned()
}

fn calls(name: &str, arguments: &Value) -> Value {
    json!([{ "tool": name, "args": arguments }, { "content": "done" }])
}

#[test]
fn the_first_exercise_a_tool_that_gives_the_date_stands_in_the_next_header() {
    run(async |world| {
        let session = agent(world, calls("date", &json!({}))).await;
        world
            .script(
                "tool-date.ts",
                "import type { Context } from 'cordis'
                 export const name = 'tool-date'
                 export const inject = ['tools']
                 export function apply(ctx: any) {
                   ctx.tools.register({
                     name: 'date',
                     description: 'The date of today.',
                     parameters: { type: 'object', properties: {} },
                     async execute() { return new Date(86400000).toISOString().slice(0, 10) },
                   })
                 }",
            )
            .await;

        let reason = turn(world, &session).await;

        let tools: Vec<_> =
            session.header().unwrap().tools.iter().map(|it| it.function.name.clone()).collect();
        assert_eq!(reason, Reason::Completed);
        assert_eq!(tools, ["bash", "date"]);
        assert_eq!(result(&session), "1970-01-02");
    });
}

#[test]
fn the_third_exercise_a_policy_that_refuses_rm_rf() {
    run(async |world| {
        let session =
            agent(world, calls("bash", &json!({ "command": "echo rm -rf /nowhere" }))).await;
        world
            .script(
                "no-rm.ts",
                "export const name = 'no-rm'
                 export const inject = ['tools']
                 export function apply(ctx: any) {
                   ctx.on('tools/pre-execute', async (call: any, next: any) => {
                     if (call.name === 'bash' && String(call.arguments.command).includes('rm -rf')) {
                       return { kind: 'deny', reason: 'rm -rf is not allowed' }
                     }
                     return next()
                   })
                 }",
            )
            .await;

        turn(world, &session).await;
        let other = world.call("bash", json!({ "command": "echo fine" })).await;

        assert_eq!(result(&session), "Error: rm -rf is not allowed");
        assert_eq!(other.content, "fine\n\n[exit code: 0]");
    });
}

#[test]
fn everything_else_that_a_plugin_of_the_original_does() {
    run(async |world| {
        let session = agent(world, calls("bash", &json!({ "command": "echo hello" }))).await;
        world.plugin("approval", json!({ "tools": ["bash"] })).await;
        world
            .script(
                "all.ts",
                "export const inject = ['prompt', 'tools', 'session']
                 export function apply(ctx: any) {
                   ctx.prompt.section('polite', 10, 'Be polite.')
                   ctx.on('approval/request', async (call: any) => call.arguments.command === 'echo hello')
                   ctx.on('tools/post-execute', async (call: any, result: any, next: any) => {
                     const { content, ...rest } = await next()
                     return { ...rest, content: content.replace('hello', 'goodbye') }
                   })
                   ctx.on('agent/request', async (draft: any, next: any) => ({ ...(await next()), model: `${draft.config.model}-adjusted` }))
                   ctx.on('session/event', (session: any, event: any) => {
                     if (event.type === 'turn/end') ctx.emit('cordis/notice', `ended ${event.data.reason}`)
                   })
                 }",
            )
            .await;

        turn(world, &session).await;

        let header = session.header().unwrap();
        assert_eq!(result(&session), "goodbye\n\n[exit code: 0]");
        assert!(header.model.ends_with("-adjusted"), "{header:?}");
        assert!(header.system.unwrap().ends_with("Be polite."));
        world.until("ended completed").await;
    });
}

#[test]
fn the_tutorial_registers_its_tool_when_it_is_ready_and_takes_it_back() {
    run(async |world| {
        world.plugin("tools", json!({})).await;
        let mount = world
            .script(
                "echo.ts",
                "import { Context, Service, defineProperty } from 'cordis'
                 export const inject = ['tools']
                 export function apply(ctx: any) {
                   ctx.on('ready', () => {
                     ctx.tools.register('echo', 'Gives the text back.', { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }, async (args: any) => `echo: ${args.text}`)
                   })
                   ctx.on('dispose', () => { ctx.tools.unregister('echo') })
                   const it: any = {}
                   defineProperty(it, 'hidden', 5)
                   ctx.emit('cordis/notice', `${it.hidden} ${Object.keys(it).length} ${typeof Service} ${typeof Context}`)
                 }",
            )
            .await;

        let result = world.call("echo", json!({ "text": "hi" })).await;
        mount.dispose().await;

        assert_eq!(result.content, "echo: hi");
        assert_eq!(world.noted(), ["5 0 function function"]);
    });
}

#[test]
fn nothing_of_the_machine_is_there_but_what_the_host_gives() {
    run(async |world| {
        world
            .script(
                "globals.js",
                "export function apply(ctx) {
                   const names = ['std', 'os', 'bjson', 'process', 'require', 'module', 'Deno', 'Bun', 'Buffer', 'XMLHttpRequest', 'Worker', 'WebAssembly', '__host', 'print', 'scriptArgs', 'load', 'importScripts']
                   ctx.emit('cordis/notice', names.filter(it => typeof globalThis[it] !== 'undefined').join())
                   const given = ['console', 'setTimeout', 'setInterval', 'clearTimeout', 'fetch', 'Headers', 'AbortController', 'TextEncoder', 'TextDecoder', 'structuredClone', 'queueMicrotask', 'crypto']
                   ctx.emit('cordis/notice', given.filter(it => typeof globalThis[it] === 'undefined').join())
                 }",
            )
            .await;

        assert_eq!(world.noted(), ["", ""]);
    });
}

#[test]
fn the_helpers_of_the_web_do_what_they_do_elsewhere() {
    run(async |world| {
        world
            .script(
                "helpers.js",
                "export async function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   const text = 'aé€😀'
                   const bytes = new TextEncoder().encode(text)
                   note(`${bytes.length} ${new TextDecoder().decode(bytes) === text} ${new TextDecoder().decode(Uint8Array.of(0x61, 0xff, 0xe2, 0x82)).length}`)
                   const loop = { map: new Map([[1, new Set([2])]]), date: new Date(5), list: [1, { a: 2 }] }
                   loop.self = loop
                   const copy = structuredClone(loop)
                   note(`${copy !== loop} ${copy.self === copy} ${copy.map.get(1).has(2)} ${copy.date.getTime()} ${copy.list[1].a}`)
                   try { structuredClone(() => {}) } catch (error) { note(error.name) }
                   note(String(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())))
                   const order = []
                   await new Promise(done => { queueMicrotask(() => { order.push('later'); done() }); order.push('now') })
                   note(order.join())
                   note(`${new Headers(new Map([['A', 'b']])).get('a')} ${new Headers({ A: 'b' }).get('a')} ${new Headers(new Headers([['A', 'b']])).get('a')}`)
                   const stop = new AbortController()
                   stop.abort()
                   stop.abort('again')
                   note(stop.signal.reason.name)
                   const other = new AbortController()
                   other.abort(5)
                   try { other.signal.throwIfAborted() } catch (reason) { note(String(reason)) }
                   note(new TextDecoder().decode(Uint8Array.of(0xef, 0xbb, 0xbf, 0x61)))
                   try { new TextDecoder('gbk') } catch (error) { note(error.message) }
                 }",
            )
            .await;

        assert_eq!(
            world.noted(),
            [
                "10 true 3",
                "true true true 5 2",
                "TypeError",
                "true",
                "now,later",
                "b b b",
                "AbortError",
                "5",
                "a",
                "`gbk` is not known here; bytes are read as UTF-8",
            ]
        );
    });
}
