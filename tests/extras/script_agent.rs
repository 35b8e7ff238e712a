//! The loader, saved sessions and the end of a turn in scripts; and what of a script is never shown.

use std::rc::Rc;

use nano_cordis::{
    cordis::{Builtins, Loader, LoaderOptions, loader, plugin},
    extras::script::Scripts,
    harness::{
        agent_loop::{Stopping, TurnStopping},
        env::Env,
        persistence,
        session::Sessions,
        tools,
    },
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::script_world::run;

#[test]
fn a_script_sees_the_entries_of_the_list_and_can_have_it_read_again() {
    run(async |world| {
        let options = LoaderOptions {
            file: None,
            text: "- id: t\n  name: tools\n- id: off\n  name: tools\n  disabled: true\n",
            modules: Rc::new(Scripts::new(Builtins::new().with("tools", plugin(tools::apply)))),
            env: Rc::new(|_| None),
            set: Vec::new(),
            disable: Vec::new(),
        };
        world.root.plugin(&loader::plugin(options), Value::Null).unwrap().ready().await.unwrap();

        world
            .script(
                "list.js",
                "export const inject = ['loader']
                 export function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   for (const { id, name, state } of ctx.loader.entries()) note(`${id} ${name} ${state}`)
                   note(String(ctx.loader.problem()))
                   ctx.loader.reload()
                 }",
            )
            .await;
        world.root.get::<Loader>().unwrap().applied().await.unwrap();

        assert_eq!(world.noted(), ["t tools ACTIVE", "off tools DISABLED", "undefined"]);
    });
}

#[test]
fn a_script_sees_what_is_saved() {
    run(async |world| {
        world.plugin("session", json!({})).await;
        let folder = tempfile::tempdir().unwrap();
        let def = plugin(persistence::apply);
        let config = json!({ "dir": folder.path().join("sessions") });
        world.root.plugin(&def, config).unwrap().ready().await.unwrap();
        let session = world.root.get::<Sessions>().unwrap().create().unwrap();
        session
            .append(nano_cordis::harness::session::event::EventBody::TurnStart {
                turn: 1,
                format: 1,
                cwd: "/".into(),
            })
            .unwrap();

        world
            .script(
                "saved.js",
                "export const inject = ['persistence']
                 export function apply(ctx) {
                   const [{ id, turns, state }] = ctx.persistence.list()
                   ctx.emit('cordis/notice', `${id} ${turns} ${state}`)
                 }",
            )
            .await;

        assert_eq!(world.noted(), [format!("{} 1 open", session.id())]);
    });
}

#[test]
fn a_script_can_let_a_turn_go_on() {
    run(async |world| {
        world.plugin("session", json!({})).await;
        let session = world.root.get::<Sessions>().unwrap().create().unwrap();
        world
            .script(
                "more.js",
                "export function apply(ctx) {
                   ctx.on('agent/turn-stopping', ({ session, turn, text, wasContinued }) => (wasContinued ? false : `${turn} ${text} ${session.id.length}`))
                 }",
            )
            .await;
        let ask = async |was_continued| {
            let (session, text, cancel) = (session.clone(), "bye".into(), CancellationToken::new());
            let stopping = Stopping { session, turn: 1, step: 2, text, was_continued, cancel };
            world.root.serial::<TurnStopping>(Rc::new(stopping)).await.unwrap()
        };

        let (first, second) = (ask(false).await, ask(true).await);

        assert_eq!((first.as_deref(), second), (Some("1 bye 22"), None));
    });
}

#[test]
fn what_a_plugin_calls_secret_leaves_no_script_by_any_way() {
    run(async |world| {
        world.plugin("tools", json!({})).await;
        world.root.get::<Env>().unwrap().hide("geheim").unwrap();
        world
            .script(
                "tells.js",
                "export const inject = ['tools']
                 export function apply(ctx) {
                   const secret = ['ge', 'heim'].join('')
                   ctx.tools.register('says', '', undefined, () => ({ a: [secret] }))
                   ctx.tools.register('throws', '', undefined, () => { throw new Error(secret) })
                   ctx.emit('cordis/notice', `it is ${secret}`)
                   ctx.on('my/event', () => { throw new Error(secret) })
                   ctx.emit('my/event')
                 }",
            )
            .await;

        let said = world.call("says", json!({})).await.content;
        let thrown = world.call("throws", json!({})).await.content;
        let report = world.report().await;

        assert_eq!(world.noted(), ["it is ***"]);
        assert_eq!(said, "{\"a\":[\"***\"]}");
        assert!(thrown.starts_with("Error: tells.js:5:") && thrown.ends_with(": ***"), "{thrown}");
        assert!(report.ends_with(": ***"), "{report}");
    });
}

#[test]
fn a_secret_that_may_be_a_word_hides_no_words() {
    run(async |world| {
        let source = "export const Config = { type: 'object', properties: { key: { type: 'string', writeOnly: true }, word: { type: 'string', writeOnly: true } } }
             export function apply(ctx, config) { ctx.emit('cordis/notice', `${config.word} ${config.key}`) }";

        let config = json!({ "key": "sk-12345", "word": "ollama" });
        world.script_with("says.js", source, config).await;

        assert_eq!(world.noted(), ["ollama ***"]);
    });
}

#[test]
fn a_cleanup_that_never_ends_is_reported_and_the_plugin_ends() {
    run(async |world| {
        let mount = world
            .script(
                "stuck.js",
                "export function apply(ctx) {
                   ctx.effect(() => () => ctx.emit('cordis/notice', 'after'))
                   ctx.effect(() => () => new Promise(() => {}))
                 }",
            )
            .await;

        mount.dispose().await;

        assert_eq!(world.noted(), ["after"]);
        assert_eq!(
            world.report().await,
            "`stuck` failed to clean up: a cleanup did not end within 5 s"
        );
    });
}
