//! Turns and changes of the configuration keep out of each other's way.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use nano_cordis::cordis::{
    BoxError, Builtins, Cleanup, Context, NoConfig, PluginDef, Service, Svc, Undo, plugin,
};
use nano_cordis::harness::agent_loop::RunError;
use nano_cordis::harness::builtins;
use nano_cordis::harness::session::event::Reason;
use nano_cordis::harness::tools::Tools;

use super::composed::composed;
use super::rig::{Model, log, results, tool};

const AGENT: &str = "
- {id: session, name: session}
- {id: prompt, name: prompt, config: {persona: one}}
- {id: llm, name: model}
- {id: tools, name: tools}
- {id: loop, name: agent-loop}
";

#[test]
fn no_turn_begins_while_an_entry_has_failed() {
    let model = Model::default();
    let list = format!("{AGENT}\n- {{id: policy, name: broken}}");
    composed(&list, modules(&model).with("broken", broken()), async |it| {
        let session = it.session();

        let refused = it.run(&session, "hello").await;

        let Err(RunError::NotReady(problem)) = refused else { panic!("a turn began") };
        assert_eq!(problem, "entry `policy`: no policy file");
        assert!(session.is_empty());
        assert_eq!(it.take_reports().len(), 1);
    });
}

#[test]
fn an_optional_entry_that_failed_refuses_no_turn() {
    let model = Model::default();
    let list = format!("{AGENT}\n- {{id: extra, name: broken, optional: true}}");
    composed(&list, modules(&model).with("broken", broken()), async |it| {
        model.says("hi");

        let outcome = it.run(&it.session(), "hello").await.unwrap();

        assert_eq!(outcome.reason, Reason::Completed);
        assert_eq!(it.take_reports().len(), 1);
    });
}

#[test]
fn no_turn_begins_while_an_entry_waits_for_a_service_that_nobody_provides() {
    let model = Model::default();
    let list = format!("{AGENT}\n- {{id: policy, name: needs-lamp}}");
    composed(&list, modules(&model).with("needs-lamp", needs_lamp()), async |it| {
        let refused = it.run(&it.session(), "hello").await;

        let Err(RunError::NotReady(problem)) = refused else { panic!("a turn began") };
        assert_eq!(problem, "`policy` waits for `lamp`, which no entry provides");
    });
}

#[test]
fn a_call_is_refused_and_the_turn_fails_when_the_agent_is_no_longer_whole() {
    let (model, lamp) = (Model::default(), Rc::new(RefCell::new(None)));
    let list = format!("{AGENT}\n- {{id: lamp, name: lamp}}\n- {{id: policy, name: needs-lamp}}");
    let modules = modules(&model)
        .with("lamp", gives_lamp(&lamp))
        .with("needs-lamp", needs_lamp())
        .with("breaks", breaks_lamp(&lamp));
    composed(&format!("{list}\n- {{id: breaks, name: breaks}}"), modules, async |it| {
        let session = it.session();
        model.calls(&[("a", "break", "{}"), ("b", "break", "{}"), ("c", "break", "{}")]);

        let outcome = it.run(&session, "hello").await.unwrap();

        assert_eq!(outcome.reason, Reason::Error);
        assert_eq!(outcome.error.unwrap().code.as_deref(), Some("not-ready"));
        let not_run = "Error: not run: `policy` waits for `lamp`";
        let stopped = "Error: aborted: the turn was stopped";
        assert_eq!(results(&session), ["broken", not_run, stopped]);
        assert_eq!(log(&session)[10..], ["tool/result c", "step/end", "turn/end Error"]);
    });
}

#[test]
fn a_change_waits_for_the_end_of_the_turn_and_says_so() {
    let (model, gate) = (Model::default(), Rc::new(Notify::new()));
    let list = format!("{AGENT}\n- {{id: slow, name: slow}}");
    composed(&list, modules(&model).with("slow", waits_for(&gate)), async |it| {
        let session = it.session();
        model.calls(&[("a", "wait", "{}")]).says("done").says("again");
        it.take_notices();

        let (outcome, during) = tokio::join!(it.run(&session, "hello"), async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            it.write(&list.replace("persona: one", "persona: two"));
            it.loader().reload();
            tokio::time::sleep(Duration::from_secs(1)).await;
            let during = it.take_notices();
            gate.notify_one();
            during
        });
        it.loader().applied().await.unwrap();

        assert_eq!(outcome.unwrap().reason, Reason::Completed);
        let held = "cordis.yml changed; applied when this turn ends (Ctrl-C ends it now)";
        assert_eq!(
            (during, it.take_notices()),
            (vec![held.to_owned()], vec!["applied cordis.yml".to_owned()])
        );
        assert_eq!(model.asked()[1].header.system.as_deref(), Some("one"));
    });
}

#[test]
fn a_turn_that_is_asked_for_during_a_change_begins_after_it() {
    let model = Model::default();
    let list = format!("{AGENT}\n- {{id: slow, name: slow-to-stop}}");
    composed(&list, modules(&model).with("slow-to-stop", slow_to_stop()), async |it| {
        let session = it.session();
        model.says("hi");
        it.write(AGENT);
        it.loader().reload();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(it.loader().problem().unwrap().contains("is being applied"));

        let outcome = it.run(&session, "hello").await.unwrap();

        assert_eq!(outcome.reason, Reason::Completed);
        assert_eq!(it.loader().entries().len(), 5);
    });
}

#[test]
fn a_turn_that_waits_for_a_change_can_be_stopped() {
    let model = Model::default();
    let list = format!("{AGENT}\n- {{id: slow, name: slow-to-stop}}");
    composed(&list, modules(&model).with("slow-to-stop", slow_to_stop()), async |it| {
        let (session, cancel) = (it.session(), CancellationToken::new());
        it.write(AGENT);
        it.loader().reload();
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel();

        let refused = it.agent_loop().unwrap().run(&session, "hello", cancel).await;

        assert!(matches!(refused, Err(RunError::Cancelled)));
        assert!(session.is_empty());
        it.loader().applied().await.unwrap();
    });
}

#[test]
fn a_second_turn_on_a_busy_session_is_refused_even_while_a_change_waits() {
    let (model, gate) = (Model::default(), Rc::new(Notify::new()));
    let list = format!("{AGENT}\n- {{id: slow, name: slow}}");
    composed(&list, modules(&model).with("slow", waits_for(&gate)), async |it| {
        let session = it.session();
        model.calls(&[("a", "wait", "{}")]).says("done");

        let (outcome, second) = tokio::join!(it.run(&session, "one"), async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            it.write(AGENT);
            it.loader().reload();
            tokio::time::sleep(Duration::from_secs(1)).await;
            let second = it.run(&session, "two").await;
            gate.notify_one();
            second
        });

        assert!(matches!(second, Err(RunError::Busy)));
        assert_eq!(outcome.unwrap().reason, Reason::Completed);
    });
}

#[test]
fn a_turn_inside_of_a_turn_does_not_wait_for_a_change_that_waits_for_both() {
    let (model, gate) = (Model::default(), Rc::new(Notify::new()));
    let list = format!("{AGENT}\n- {{id: slow, name: slow}}");
    composed(&list, modules(&model).with("slow", waits_for(&gate)), async |it| {
        let (outer, inner) = (it.session(), it.session());
        model.calls(&[("a", "wait", "{}")]).says("inner").says("outer");

        let (outcome, within) = tokio::join!(it.run(&outer, "one"), async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            it.write(AGENT);
            it.loader().reload();
            tokio::time::sleep(Duration::from_secs(1)).await;
            let within = it.run(&inner, "two").await;
            gate.notify_one();
            within
        });

        assert_eq!((within.unwrap().text, outcome.unwrap().text), ("inner".into(), "outer".into()));
    });
}

#[test]
fn a_name_in_approval_that_guards_nothing_is_told_at_each_apply() {
    let (model, gate) = (Model::default(), Rc::new(Notify::new()));
    let approval = "- {id: approval, name: approval, config: {tools: [wait, bsah, 'mcp__*']}}";
    let list = format!("{approval}{AGENT}\n- {{id: slow, name: slow}}");
    composed(&list, modules(&model).with("slow", waits_for(&gate)), async |it| {
        let idle = "approval: there is no tool named `bsah`";
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(it.take_notices(), [idle]);

        it.save(&list.replace("persona: one", "persona: two")).await;
        tokio::time::sleep(Duration::from_secs(1)).await;

        assert_eq!(it.take_notices(), ["applied cordis.yml", idle]);
    });
}

#[test]
fn h_072_removing_the_approval_entry_lets_the_tool_run_unasked() {
    let (model, gate) = (Model::default(), Rc::new(Notify::new()));
    let list = format!("{AGENT}\n- {{id: slow, name: slow}}");
    let guarded = format!("{list}\n- {{id: approval, name: approval, config: {{tools: [wait]}}}}");
    composed(&guarded, modules(&model).with("slow", waits_for(&gate)), async |it| {
        let session = it.session();
        model.calls(&[("a", "wait", "{}")]).says("one").calls(&[("b", "wait", "{}")]).says("two");
        it.run(&session, "hello").await.unwrap();

        it.save(&list).await;
        gate.notify_one();
        it.run(&session, "again").await.unwrap();

        let results = results(&session);
        assert!(results[0].starts_with("Error: nobody was there"), "{results:?}");
        assert_eq!(results[1], "waited");
    });
}

fn modules(model: &Model) -> Builtins {
    builtins().with("model", model.plugin())
}

fn broken() -> PluginDef {
    plugin(async |_: Context, _: NoConfig| Err::<(), BoxError>("no policy file".into()))
}

/// Something that others may need.
struct Lamp;

impl Service for Lamp {
    const NAME: &'static str = "lamp";
}

fn needs_lamp() -> PluginDef {
    plugin(async |_: Context, _: NoConfig, _: Svc<Lamp>| Ok::<(), BoxError>(()))
}

/// Provides the lamp, and leaves a way to take it back.
fn gives_lamp(undo: &Rc<RefCell<Option<Undo>>>) -> PluginDef {
    let undo = undo.clone();
    plugin(move |ctx: Context, _: NoConfig| {
        let undo = undo.clone();
        async move {
            undo.replace(Some(ctx.provide(Rc::new(Lamp))?));
            Ok::<(), BoxError>(())
        }
    })
}

/// A tool that takes the lamp away.
fn breaks_lamp(undo: &Rc<RefCell<Option<Undo>>>) -> PluginDef {
    let undo = undo.clone();
    with_tool("break", async move || {
        let undo = undo.take().ok_or("it is broken already")?;
        undo.call().await?;
        Ok("broken".to_owned())
    })
}

/// A tool that waits.
fn waits_for(gate: &Rc<Notify>) -> PluginDef {
    let gate = gate.clone();
    with_tool("wait", async move || {
        gate.notified().await;
        Ok("waited".to_owned())
    })
}

fn with_tool(
    name: &'static str,
    body: impl AsyncFn() -> Result<String, BoxError> + 'static,
) -> PluginDef {
    let body = Rc::new(body);
    plugin(move |_: Context, _: NoConfig, tools: Svc<Tools>| {
        let body = body.clone();
        let run = async move |_| body().await;
        std::future::ready(tools.register(tool(name, run)).map(drop).map_err(BoxError::from))
    })
}

/// A plugin whose stop takes four seconds.
fn slow_to_stop() -> PluginDef {
    plugin(async |_: Context, _: NoConfig| {
        Ok::<Cleanup, BoxError>(Cleanup::future(async || {
            tokio::time::sleep(Duration::from_secs(4)).await;
            Ok(())
        }))
    })
}
