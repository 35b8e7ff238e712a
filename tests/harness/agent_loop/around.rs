//! Ways round a guard that lead nowhere.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use serde_json::json;
use tokio::sync::Notify;

use nano_cordis::cordis::{BoxError, Builtins, Context, NoConfig, PluginDef, Service, Svc, plugin};
use nano_cordis::harness::agent_loop::RunError;
use nano_cordis::harness::approval::{Answer, ApprovalRequest};
use nano_cordis::harness::builtins;
use nano_cordis::harness::tools::{Order, PreExecute, Tools, Verdict};

use super::composed::composed;
use super::rig::{Model, request, results, tool};

const AGENT: &str = "
- {id: session, name: session}
- {id: prompt, name: prompt, config: {persona: one}}
- {id: llm, name: model}
- {id: tools, name: tools}
- {id: loop, name: agent-loop}
- {id: act, name: act}
";
const APPROVAL: &str = "- {id: approval, name: approval, config: {tools: [act, 'mcp__*']}}\n";

/// The agent with a tool that acts, and how often it did.
fn modules(model: &Model) -> (Builtins, Rc<Cell<u32>>) {
    let acts = Rc::new(Cell::new(0));
    let modules = builtins().with("model", model.plugin()).with("act", acting("act", &acts));
    (modules, acts)
}

fn acting(name: &'static str, acts: &Rc<Cell<u32>>) -> PluginDef {
    let acts = acts.clone();
    plugin(move |_: Context, _: NoConfig, tools: Svc<Tools>| {
        let acts = acts.clone();
        let body = async move |_| {
            acts.set(acts.get() + 1);
            Ok("acted".to_owned())
        };
        std::future::ready(tools.register(tool(name, body)).map(drop).map_err(BoxError::from))
    })
}

/// A service that nobody provides.
struct Lamp;

impl Service for Lamp {
    const NAME: &'static str = "lamp";
}

#[test]
fn a_guard_that_waits_for_a_service_lets_no_turn_begin() {
    let model = Model::default();
    let (modules, acts) = modules(&model);
    let guard =
        plugin(async |_: Context, _: NoConfig, _: Svc<Lamp>| Ok::<(), BoxError>(())).guard();
    composed(
        &format!("{AGENT}- {{id: rules, name: rules}}\n"),
        modules.with("rules", guard),
        async |it| {
            let refused = it.run(&it.session(), "hello").await;

            let Err(RunError::NotReady(problem)) = refused else { panic!("a turn began") };
            assert_eq!(problem, "`rules` waits for `lamp`, which no entry provides");
            assert_eq!(acts.get(), 0);
        },
    );
}

#[test]
fn an_approval_that_failed_lets_no_turn_begin_until_a_good_save() {
    let model = Model::default();
    let (modules, acts) = modules(&model);
    let broken =
        plugin(async |_: Context, _: NoConfig| Err::<(), BoxError>("no rules".into())).guard();
    let failing = format!("{AGENT}- {{id: approval, name: broken}}\n");
    composed(&failing, modules.with("broken", broken), async |it| {
        let session = it.session();
        let refused = it.run(&session, "hello").await.map(drop).unwrap_err().to_string();
        it.take_reports();

        it.save(&format!("{AGENT}{APPROVAL}")).await;
        model.calls(&[("a", "act", "{}")]).says("done");
        it.run(&session, "hello").await.unwrap();

        assert_eq!(refused, "entry `approval`: no rules");
        assert!(results(&session)[0].starts_with("Error: nobody was there to approve"));
        assert_eq!(acts.get(), 0);
    });
}

#[test]
fn a_guard_that_is_made_optional_by_a_save_is_refused_and_still_guards() {
    let model = Model::default();
    let (modules, acts) = modules(&model);
    composed(&format!("{AGENT}{APPROVAL}"), modules, async |it| {
        it.write(&format!("{AGENT}{}", APPROVAL.replace("}}", "}, optional: true}")));
        it.loader().reload();
        let refused = it.loader().applied().await.map(drop).unwrap_err().to_string();
        model.calls(&[("a", "act", "{}")]).says("done");
        it.run(&it.session(), "hello").await.unwrap();

        assert!(refused.contains("a guard cannot be optional"), "{refused}");
        assert_eq!(acts.get(), 0);
    });
}

#[test]
fn a_tool_that_is_registered_in_the_middle_of_a_turn_is_guarded_too() {
    let model = Model::default();
    let (modules, acts) = modules(&model);
    let late = acts.clone();
    let brings = plugin(move |_: Context, _: NoConfig, tools: Svc<Tools>| {
        let late = late.clone();
        let brought = tools.clone();
        let body = async move |_| {
            let late = late.clone();
            let act = async move |_| {
                late.set(late.get() + 1);
                Ok("acted".to_owned())
            };
            brought.register(tool("mcp__late__act", act))?;
            Ok("brought".to_owned())
        };
        std::future::ready(tools.register(tool("bring", body)).map(drop).map_err(BoxError::from))
    });
    let list = format!("{AGENT}{APPROVAL}- {{id: brings, name: brings}}\n");
    composed(&list, modules.with("brings", brings), async |it| {
        let session = it.session();
        model.calls(&[("a", "bring", "{}")]).calls(&[("b", "mcp__late__act", "{}")]).says("done");

        it.run(&session, "hello").await.unwrap();

        let results = results(&session);
        assert_eq!(results[0], "brought");
        assert!(results[1].starts_with("Error: nobody was there to approve"), "{results:?}");
        assert_eq!(acts.get(), 0);
    });
}

#[test]
fn with_two_approvals_both_are_asked_and_one_no_is_enough() {
    let model = Model::default();
    let (modules, acts) = modules(&model);
    let second = APPROVAL.replace("id: approval", "id: another");
    composed(&format!("{AGENT}{APPROVAL}{second}"), modules, async |it| {
        let answers =
            Rc::new(RefCell::new(vec![Answer::No, Answer::Yes, Answer::Yes, Answer::Yes]));
        let left = answers.clone();
        it.root.answer::<ApprovalRequest>(async move |_, _| Ok(left.borrow_mut().pop())).unwrap();
        let session = it.session();
        model.calls(&[("a", "act", "{}"), ("b", "act", "{}")]).says("done");

        it.run(&session, "hello").await.unwrap();

        let results = results(&session);
        assert_eq!(results[0], "acted");
        assert!(results[1].starts_with("Error: the user refused"), "{results:?}");
        assert_eq!((acts.get(), answers.borrow().len()), (1, 0));
    });
}

#[test]
fn a_policy_that_is_asked_first_cannot_answer_for_approval() {
    for verdict in [Verdict::Allow, Verdict::Deny("no".into())] {
        let model = Model::default();
        let (modules, acts) = modules(&model);
        composed(&format!("{AGENT}{APPROVAL}"), modules, async |it| {
            it.root
                .intercept_at::<PreExecute>(Order::DECIDING, async move |_, _, _| {
                    Ok(verdict.clone())
                })
                .unwrap();
            let session = it.session();
            model.calls(&[("a", "act", "{}")]).says("done");

            it.run(&session, "hello").await.unwrap();

            assert!(results(&session)[0].starts_with("Error: "));
            assert_eq!(acts.get(), 0);
        });
    }
}

#[test]
fn a_reload_between_question_and_answer_changes_neither() {
    let model = Model::default();
    let (modules, acts) = modules(&model);
    let (asked, answered) = (Rc::new(Notify::new()), Rc::new(Notify::new()));
    let (bell, gate) = (asked.clone(), answered.clone());
    composed(&format!("{AGENT}{APPROVAL}"), modules, async |it| {
        it.root
            .answer::<ApprovalRequest>(async move |_, _| {
                bell.notify_one();
                gate.notified().await;
                Ok(Some(Answer::No))
            })
            .unwrap();
        let tools = it.root.get::<Tools>().unwrap();

        // Nobody's turn: no hold keeps the save off.
        let call = tools.execute(request("act", &json!({}).to_string()));
        let save = async {
            asked.notified().await;
            it.save(AGENT).await;
            answered.notify_one();
        };
        let (result, ()) = tokio::join!(call, save);

        assert!(result.denied, "{result:?}");
        assert_eq!(acts.get(), 0);
    });
}
