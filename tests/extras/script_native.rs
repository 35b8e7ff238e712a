//! Events of the agent in scripts: what a listener gets, what counts of what it says, and how long it is waited for.

use std::cell::Cell;
use std::rc::Rc;

use nano_cordis::{
    cordis::Context,
    harness::{
        agent_loop::{AgentRequest, RequestConfig, RequestDraft},
        approval::{Answer, ApprovalRequest},
        env::Env,
        session::{Sessions, event::EventBody},
        shell::child_env,
        tools::{Call, Tool, Tools},
    },
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::script_world::{World, run};

async fn with_echo(world: &World) {
    world.plugin("tools", json!({})).await;
    let tools = world.root.get::<Tools>().unwrap();
    let body = async |call: Rc<Call>| Ok(format!("ran {}", call.arguments["text"]));
    tools.register(Tool::new("echo", "", json!({ "type": "object" }), body)).unwrap();
}

#[test]
fn d_31_a_verdict_of_a_script_counts_only_if_it_is_clear() {
    run(async |world| {
        with_echo(world).await;
        for (body, wanted) in [
            ("next()", "ran \"hi\""),
            ("({ kind: 'deny', reason: `no ${call.arguments.text}` })", "Error: no hi"),
            ("({ kind: 'deny' })", "Error: a plugin refused this call"),
            ("undefined", "Error: a plugin gave no verdict on this call, so it was refused"),
            ("null", "Error: a plugin gave no verdict on this call, so it was refused"),
            ("true", "Error: a plugin gave no verdict on this call, so it was refused"),
            ("'allow'", "Error: a plugin gave no verdict on this call, so it was refused"),
            (
                "({ kind: 'ALLOW' })",
                "Error: a plugin gave no verdict on this call, so it was refused",
            ),
            ("({ kind: 'allow' })", "Error: a plugin allowed this call without calling next()"),
        ] {
            let source = format!(
                "export function apply(ctx) {{ ctx.on('tools/pre-execute', async (call, next) => {body}) }}"
            );
            let policy = world.script("policy.js", &source).await;

            let result = world.call("echo", json!({ "text": "hi" })).await;

            assert_eq!(result.content, wanted, "for {body}");
            policy.dispose().await;
        }
    });
}

#[test]
fn d_31_a_policy_that_throws_or_returns_what_cannot_cross_refuses() {
    run(async |world| {
        with_echo(world).await;
        for (body, wanted) in [
            ("{ throw new Error('confused') }", "confused"),
            ("{ return () => {} }", "a function, which cannot leave its script"),
        ] {
            let source = format!(
                "export function apply(ctx) {{ ctx.on('tools/pre-execute', (call, next) => {body}) }}"
            );
            let policy = world.script("policy.js", &source).await;

            let result = world.call("echo", json!({ "text": "hi" })).await;

            assert!(result.is_error && result.denied, "{result:?}");
            assert!(result.content.contains(wanted), "{result:?}");
            policy.dispose().await;
        }
    });
}

#[test]
fn policies_of_scripts_stand_in_order_and_see_the_call() {
    run(async |world| {
        with_echo(world).await;
        world
            .script(
                "order.ts",
                "import { Order } from 'cordis'
                 export function apply(ctx: any) {
                   const watch = (name: string) => async (call: any, next: any) => {
                     ctx.emit('cordis/notice', `${name} ${call.name} ${call.id} ${call.signal.aborted}`)
                     return next()
                   }
                   ctx.on('tools/pre-execute', watch('asking'), { order: Order.ASKING })
                   ctx.on('tools/pre-execute', watch('deciding'), { order: Order.DECIDING })
                 }",
            )
            .await;

        world.call("echo", json!({})).await;

        assert_eq!(world.noted(), ["deciding echo call_1 false", "asking echo call_1 false"]);
    });
}

#[test]
fn a_listener_that_was_undone_while_it_was_called_is_as_good_as_none() {
    run(async |world| {
        world.plugin("tools", json!({})).await;
        world
            .script(
                "undoes.js",
                "export const inject = ['tools']
                 export function apply(ctx) {
                   const undo = [ctx.on('tools/pre-execute', (call, next) => next()), ctx.on('tools/post-execute', (call, result, next) => next())]
                   ctx.tools.register('busy', '', undefined, () => {
                     ctx.emit('cordis/notice', 'busy')
                     for (const end = Date.now() + 300; Date.now() < end; );
                     for (const it of undo) it()
                   })
                   ctx.tools.register('other', '', undefined, () => 'ran')
                 }",
            )
            .await;

        let other = async {
            world.until("busy").await;
            world.call("other", json!({})).await
        };
        let (_, other) = tokio::join!(world.call("busy", json!({})), other);

        assert_eq!(other.content, "ran");
    });
}

#[test]
fn a_listener_that_never_answers_is_left_when_the_turn_is_stopped() {
    run(async |world| {
        with_echo(world).await;
        world
            .script(
                "mute.js",
                "export function apply(ctx) {
                   ctx.on('tools/pre-execute', call => new Promise(() => {
                     call.signal.addEventListener('abort', () => ctx.emit('cordis/notice', 'aborted'))
                     ctx.emit('cordis/notice', 'asked')
                   }))
                 }",
            )
            .await;
        let cancel = CancellationToken::new();

        let call = world.call_until("echo", json!({}), cancel.clone(), None);
        let stop = async {
            world.until("asked").await;
            cancel.cancel();
        };
        let (result, ()) = tokio::join!(call, stop);

        assert_eq!(result.content, "Error: aborted: the turn was stopped");
        world.until("aborted").await;
    });
}

#[test]
fn a_listener_that_never_answers_is_left_when_its_plugin_unloads() {
    run(async |world| {
        with_echo(world).await;
        let mute = world
            .script(
                "mute.js",
                "export function apply(ctx) {
                   ctx.on('tools/pre-execute', () => { ctx.emit('cordis/notice', 'asked'); return new Promise(() => {}) })
                 }",
            )
            .await;

        let unload = async {
            world.until("asked").await;
            mute.dispose().await;
        };
        let (result, ()) = tokio::join!(world.call("echo", json!({})), unload);

        assert!(result.denied, "{result:?}");
        assert!(result.content.contains("unloaded before it answered"), "{result:?}");
    });
}

#[test]
fn a_next_that_is_called_after_its_call_is_over_is_an_error() {
    run(async |world| {
        with_echo(world).await;
        world
            .script(
                "late.js",
                "export function apply(ctx) {
                   let kept
                   ctx.on('tools/pre-execute', (call, next) => { kept = next; return next() })
                   ctx.on('again', () => kept().catch(error => ctx.emit('cordis/notice', error.message)))
                   ctx.on('tools/post-execute', async (call, result, next) => { ctx.setTimeout(() => ctx.emit('again'), 1); return next() })
                 }",
            )
            .await;

        world.call("echo", json!({})).await;

        world.until("`next` was called after its call was over").await;
    });
}

#[test]
fn the_result_of_a_call_can_be_rewritten_and_nonsense_is_an_error() {
    run(async |world| {
        with_echo(world).await;
        for (body, content, is_error) in [
            ("{ ...await next(), content: 'mine' }", "mine", false),
            ("{ content: `${result.content}!`, isError: true }", "ran \"hi\"!", true),
            (
                "{ content: 5 }",
                "Error: a plugin failed on the result, which is lost: a result is `{ content, isError }`, and `content` is a text",
                true,
            ),
        ] {
            let source = format!(
                "export function apply(ctx) {{ ctx.on('tools/post-execute', async (call, result, next) => ({body})) }}"
            );
            let plugin = world.script("rewrite.js", &source).await;

            let result = world.call("echo", json!({ "text": "hi" })).await;

            assert_eq!(
                (result.content.as_str(), result.is_error),
                (content, is_error),
                "for {body}"
            );
            plugin.dispose().await;
        }
    });
}

#[test]
fn d_32_only_a_literal_true_of_a_script_approves() {
    run(async |world| {
        for (body, wanted) in [
            ("true", Some(Answer::Yes)),
            ("false", Some(Answer::No)),
            ("'yes'", Some(Answer::No)),
            ("1", Some(Answer::No)),
            ("({})", Some(Answer::No)),
            ("null", None),
            ("undefined", None),
        ] {
            let source = format!(
                "export function apply(ctx) {{ ctx.on('approval/request', async call => {body}) }}"
            );
            let answerer = world.script("answer.js", &source).await;

            let answer = world.root.serial::<ApprovalRequest>(Rc::new(a_call())).await.unwrap();

            assert_eq!(answer, wanted, "for {body}");
            answerer.dispose().await;
        }
    });
}

#[test]
fn d_32_an_answerer_that_fails_is_a_no() {
    run(async |world| {
        with_echo(world).await;
        world.plugin("approval", json!({ "tools": ["*"] })).await;
        world
            .script("answer.js", "export function apply(ctx) { ctx.on('approval/request', () => { throw new Error('lost') }) }")
            .await;

        let result = world.call("echo", json!({})).await;

        assert!(result.denied && result.content.contains("lost"), "{result:?}");
        world.noted();
    });
}

#[test]
fn session_events_come_in_order_as_they_are_in_the_log() {
    run(async |world| {
        world.plugins(&["session"]).await;
        world
            .script(
                "listen.js",
                "export function apply(ctx) {
                   ctx.on('session/event', (session, event) => {
                     ctx.emit('cordis/notice', `${event.seq} ${event.type} ${event.data.turn} ${session.id.length} ${session.turns} ${session.events.length >= event.seq}`)
                   })
                 }",
            )
            .await;
        let session = world.root.get::<Sessions>().unwrap().create().unwrap();

        session.append(EventBody::TurnStart { turn: 1, format: 1, cwd: "/".into() }).unwrap();
        session.append(EventBody::StepStart { turn: 1, step: 1 }).unwrap();

        let before = world.until("1 step/start 1 22 1 true").await;
        assert_eq!(before, ["0 turn/start 1 22 1 true"]);
    });
}

#[test]
fn a_request_can_be_adjusted_and_half_an_answer_is_refused() {
    run(async |world| {
        world.plugins(&["session"]).await;
        let session = world.root.get::<Sessions>().unwrap().create().unwrap();
        let ask = async || {
            let config = RequestConfig { model: "m".into(), system: "s".into() };
            let draft = RequestDraft { session: session.clone(), turn: 1, step: 2, config };
            let innermost = async |draft: Rc<RequestDraft>| Ok(draft.config.clone());
            world.root.waterfall::<AgentRequest>(Rc::new(draft), innermost).await
        };
        let change = world
            .script(
                "change.js",
                "export function apply(ctx) {
                   ctx.on('agent/request', async ({ session, turn, step, config }, next) => {
                     const { model, system } = await next()
                     return { model: `${model}+`, system: `${system} ${turn}.${step} ${config.model}` }
                   })
                 }",
            )
            .await;

        let config = ask().await.unwrap();
        change.dispose().await;
        world
            .script(
                "half.js",
                "export function apply(ctx) { ctx.on('agent/request', () => ({ model: 'x' })) }",
            )
            .await;
        let refused = ask().await.unwrap_err().to_string();

        assert_eq!((config.model.as_str(), config.system.as_str()), ("m+", "s 1.2 m"));
        assert_eq!(refused, "`agent/request` wants `{ model, system }`, two texts");
    });
}

#[test]
fn variables_of_commands_are_seen_by_name_taken_out_and_never_put_in() {
    run(async |world| {
        world
            .script(
                "env.js",
                "export function apply(ctx) {
                   ctx.on('shell/env', async (names, next) => {
                     ctx.emit('cordis/notice', `${names} ${await next()}`)
                     return [...names.filter(it => it !== 'MINE'), 'NEW']
                   })
                 }",
            )
            .await;
        let env = Env::fixed([("MINE", "1"), ("OTHER", "2"), ("A_TOKEN", "3")]);

        let vars = child_env(&Context::clone(&world.root), &env, &[]).await.unwrap();

        assert_eq!(world.noted(), ["MINE,OTHER MINE,OTHER"]);
        assert_eq!(vars.into_iter().collect::<Vec<_>>(), [("OTHER".into(), "2".into())]);
    });
}

#[test]
fn a_told_event_that_a_script_fails_on_is_reported_with_its_place() {
    run(async |world| {
        with_echo(world).await;
        let mount = world
            .script("fails.js", "export function apply(ctx) {\n  ctx.on('tools/changed', () => { throw new Error('bad') })\n}")
            .await;
        let tools = world.root.get::<Tools>().unwrap();
        let body = async |_: Rc<Call>| Ok("");

        tools.register(Tool::new("another", "", json!({ "type": "object" }), body)).unwrap();

        assert_eq!(world.report().await, "`fails` failed on `tools/changed`: fails.js:2:45: bad");
        mount.dispose().await;
    });
}

fn a_call() -> Call {
    Call {
        id: "call_1".into(),
        name: "bash".into(),
        raw: "{}".into(),
        arguments: serde_json::Map::new(),
        problem: None,
        preview: None,
        cancel: CancellationToken::new(),
        session: None,
        turn: 1,
        step: 1,
        must_ask: Cell::default(),
    }
}
