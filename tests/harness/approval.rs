//! Approval: who is asked about, and what counts as a yes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use serde_json::{Value, json};

use nano_cordis::cordis::{BoxError, Mount, Warning, plugin};
use nano_cordis::harness::approval::{self, Answer, ApprovalRequest};
use nano_cordis::harness::tools::ToolResult;

use crate::agent_loop::rig::{Agent, agent, tool};

#[test]
fn h_065_a_yes_lets_the_call_run() {
    agent(async |it| {
        let (runs, _) = guarded(it, json!(["rm"])).await;
        answers(it, async || Ok(Answer::from_json(&json!(true))));

        let result = it.call("rm", "{}").await;

        assert_eq!((result, runs.get()), (ToolResult::text("ran"), 1));
    });
}

#[test]
fn h_066_a_no_refuses_the_call() {
    assert_refuses(json!(false));
}

#[test]
fn h_067_the_text_yes_refuses_the_call() {
    assert_refuses(json!("yes"));
}

#[test]
fn h_068_the_number_one_refuses_the_call() {
    assert_refuses(json!(1));
}

#[test]
fn whatever_is_no_literal_true_refuses_the_call() {
    for said in [json!("true"), json!({}), json!([true]), json!(0), json!("")] {
        assert_refuses(said);
    }
}

#[test]
fn h_069_nobody_there_to_answer_refuses_the_call() {
    agent(async |it| {
        let (runs, _) = guarded(it, json!(["rm"])).await;

        let result = it.call("rm", "{}").await;

        assert!(
            result.denied && result.content.starts_with("Error: nobody was there"),
            "{result:?}"
        );
        assert_eq!(runs.get(), 0);
    });
}

#[test]
fn h_070_a_tool_that_is_not_in_the_list_runs_unasked() {
    agent(async |it| {
        let (runs, _) = guarded(it, json!(["bash"])).await;
        let asked = answers(it, async || Ok(Some(Answer::No)));

        it.call("rm", "{}").await;

        assert_eq!((runs.get(), asked.get()), (1, 0));
    });
}

#[test]
fn h_071_an_empty_list_asks_about_nothing() {
    agent(async |it| {
        let (runs, _) = guarded(it, json!([])).await;
        let asked = answers(it, async || Ok(Some(Answer::No)));

        it.call("rm", "{}").await;

        assert_eq!((runs.get(), asked.get()), (1, 0));
    });
}

#[test]
fn h_072_without_the_entry_nobody_asks() {
    agent(async |it| {
        let (runs, approval) = guarded(it, json!(["rm"])).await;
        let asked = answers(it, async || Ok(Some(Answer::No)));

        approval.dispose().await;
        it.call("rm", "{}").await;

        assert_eq!((runs.get(), asked.get()), (1, 0));
    });
}

#[test]
fn h_073_an_answerer_that_fails_refuses_the_call() {
    agent(async |it| {
        let (runs, _) = guarded(it, json!(["rm"])).await;
        answers(it, async || Err("the terminal is gone".into()));

        let result = it.call("rm", "{}").await;

        assert!(result.denied && result.content.contains("the terminal is gone"), "{result:?}");
        assert_eq!(runs.get(), 0);
    });
}

#[test]
fn an_answerer_that_panics_refuses_the_call() {
    agent(async |it| {
        let (runs, _) = guarded(it, json!(["rm"])).await;
        answers(it, async || panic!("boom"));

        let result = it.call("rm", "{}").await;

        assert_eq!((result.denied, runs.get()), (true, 0));
    });
}

#[test]
fn a_call_that_waits_for_its_answer_is_refused_when_approval_is_unmounted() {
    agent(async |it| {
        let (runs, approval) = guarded(it, json!(["rm"])).await;
        let asked = answers(it, async || std::future::pending().await);

        let (result, _) = tokio::join!(it.call("rm", "{}"), async {
            while asked.get() == 0 {
                tokio::task::yield_now().await;
            }
            approval.dispose().await
        });

        let why = "Error: approval was unloaded meanwhile, so this call was refused";
        assert!(result.denied && result.content.starts_with(why), "{result:?}");
        assert_eq!(runs.get(), 0);
    });
}

#[test]
fn a_yes_that_comes_when_approval_is_being_unmounted_is_too_late() {
    agent(async |it| {
        let (runs, approval) = guarded(it, json!(["rm"])).await;
        let said = Rc::new(tokio::sync::Notify::new());
        let heard = said.clone();
        let asked = answers(it, async move || {
            heard.notified().await;
            Ok(Some(Answer::Yes))
        });

        let (result, _) = tokio::join!(it.call("rm", "{}"), async {
            while asked.get() == 0 {
                tokio::task::yield_now().await;
            }
            let unmounting = approval.dispose();
            said.notify_one();
            unmounting.await
        });

        assert_eq!((result.denied, runs.get()), (true, 0));
    });
}

#[test]
fn h_074_no_answer_leaves_the_question_to_the_next_one() {
    agent(async |it| {
        let (runs, _) = guarded(it, json!(["rm"])).await;
        answers(it, async || Ok(Answer::from_json(&Value::Null)));
        answers(it, async || Ok(Some(Answer::Yes)));

        it.call("rm", "{}").await;

        assert_eq!(runs.get(), 1);
    });
}

#[test]
fn h_075_a_no_is_final() {
    agent(async |it| {
        let (runs, _) = guarded(it, json!(["rm"])).await;
        answers(it, async || Ok(Some(Answer::No)));
        let asked = answers(it, async || Ok(Some(Answer::Yes)));

        it.call("rm", "{}").await;

        assert_eq!((runs.get(), asked.get()), (0, 0));
    });
}

#[test]
fn h_076_the_question_has_the_name_and_the_arguments() {
    agent(async |it| {
        guarded(it, json!(["rm"])).await;
        let seen = Rc::new(RefCell::new(String::new()));
        let noted = seen.clone();
        it.root
            .answer::<ApprovalRequest>(async move |_, call| {
                noted.replace(format!("{} {}", call.name, json!(call.arguments)));
                Ok(Some(Answer::Yes))
            })
            .unwrap();

        it.call("rm", r#"{ "text": "a\nb" }"#).await;

        assert_eq!(*seen.borrow(), r#"rm {"text":"a\nb"}"#);
    });
}

#[test]
fn h_077_a_refusal_tells_the_model_who_refused_and_not_to_try_again() {
    agent(async |it| {
        guarded(it, json!(["rm"])).await;
        answers(it, async || Ok(Some(Answer::No)));

        let result = it.call("rm", "{}").await;

        let expected = "the user refused this call; do not try the same command again, ask the user how to go on";
        assert_eq!(result, ToolResult { denied: true, ..ToolResult::error(expected) });
    });
}

#[test]
fn a_08_a_call_that_cannot_run_is_not_asked_about() {
    agent(async |it| {
        guarded(it, json!(["*"])).await;
        let asked = answers(it, async || Ok(Some(Answer::Yes)));

        for (name, arguments) in
            [("Bash", "{}"), ("rm", "not json"), ("rm", "[]"), ("rm", r#"{"text":1}"#)]
        {
            let result = it.call(name, arguments).await;
            assert!(result.is_error && !result.denied, "{name} {arguments}: {result:?}");
        }
        assert_eq!(asked.get(), 0);
    });
}

#[test]
fn a_06_a_cut_call_is_not_asked_about() {
    agent(async |it| {
        let (runs, _) = guarded(it, json!(["rm"])).await;
        let asked = answers(it, async || Ok(Some(Answer::Yes)));
        it.model.replies("", &[("a", "rm", "{}")], Some("length")).says("ok");

        it.run("hello").await;

        assert_eq!((asked.get(), runs.get()), (0, 0));
    });
}

#[test]
fn a_pattern_guards_all_tools_that_fit() {
    agent(async |it| {
        let (runs, _) = guarded(it, json!(["r*"])).await;
        let asked = answers(it, async || Ok(Some(Answer::No)));

        it.call("rm", "{}").await;
        it.call("echo", "{}").await;

        assert_eq!((runs.get(), asked.get()), (0, 1));
    });
}

#[test]
fn leaving_the_list_out_or_misspelling_it_is_an_error() {
    agent(async |it| {
        for config in [
            json!({}),
            json!({ "tools": null }),
            json!({ "tools": "bash" }),
            json!({ "tools": false }),
        ] {
            let mount =
                it.root.plugin(&plugin(approval::apply).named("approval"), config.clone()).unwrap();
            assert!(mount.ready().await.is_err(), "{config}");
            mount.dispose().await;
        }
        assert_eq!(it.take_reports().len(), 4);
    });
}

#[test]
fn a_new_tool_that_no_pattern_covers_is_told_once() {
    agent(async |it| {
        let notices = notices(it);
        guarded(it, json!(["rm", "echo"])).await;
        settle().await;

        let date = it.mount_tool(|| tool("date", async |_| Ok(String::new()))).await;
        it.mount_tool(|| tool("mkdir", async |_| Ok(String::new()))).await;
        settle().await;
        date.dispose().await;
        settle().await;
        it.mount_tool(|| tool("date", async |_| Ok(String::new()))).await;
        settle().await;

        assert_eq!(*notices.borrow(), ["date: runs without asking", "mkdir: runs without asking"]);
    });
}

#[test]
fn the_tools_of_one_server_are_told_in_one_line() {
    agent(async |it| {
        let notices = notices(it);
        guarded(it, json!(["rm", "echo"])).await;

        for name in ["mcp__x__read", "mcp__x__write", "mcp__x__list"] {
            it.tools().register(tool(name, async |_| Ok(String::new()))).unwrap();
        }
        settle().await;

        assert_eq!(*notices.borrow(), ["mcp__x: 3 tools run without asking"]);
    });
}

#[test]
fn a_thousand_tools_cost_one_look_and_not_a_thousand() {
    agent(async |it| {
        let notices = notices(it);
        let (_, approval) = guarded(it, json!(["rm", "echo"])).await;
        settle().await;
        let before = approval.effect_count();

        for number in 0..1000 {
            it.tools()
                .register(tool(&format!("x__{number}"), async |_| Ok(String::new())))
                .unwrap();
        }
        let looking = approval.effect_count() - before;
        settle().await;

        assert_eq!((looking, notices.borrow().len()), (1, 1));
    });
}

#[test]
fn tools_that_were_there_before_approval_are_told_too() {
    agent(async |it| {
        let notices = notices(it);

        guarded(it, json!(["rm"])).await;
        settle().await;

        assert_eq!(*notices.borrow(), ["echo: runs without asking"]);
    });
}

/// Approval for these tools, and a tool `rm` that counts its runs.
async fn guarded(it: &Agent, tools: Value) -> (Rc<Cell<u32>>, Mount) {
    let runs = it.count_runs("rm").await;
    let def = plugin(approval::apply).named("approval");
    let mount =
        crate::agent_loop::rig::mount(&it.root, "approval", &def, json!({ "tools": tools })).await;
    (runs, mount)
}

/// Somebody who answers; the number of times they were asked.
fn answers(
    it: &Agent,
    say: impl AsyncFn() -> Result<Option<Answer>, BoxError> + 'static,
) -> Rc<Cell<u32>> {
    let asked = Rc::new(Cell::new(0));
    let count = asked.clone();
    it.root
        .answer::<ApprovalRequest>(async move |_, _| {
            count.set(count.get() + 1);
            say().await
        })
        .unwrap();
    asked
}

fn assert_refuses(said: Value) {
    agent(async move |it| {
        let (runs, _) = guarded(it, json!(["rm"])).await;
        let answer = Answer::from_json(&said);
        answers(it, async move || Ok(answer.clone()));

        let result = it.call("rm", "{}").await;

        assert!(result.is_error && result.denied, "{said}: {result:?}");
        assert_eq!(runs.get(), 0, "{said}");
    });
}

fn notices(it: &Agent) -> Rc<RefCell<Vec<String>>> {
    let notices = Rc::new(RefCell::new(Vec::new()));
    let noted = notices.clone();
    it.root.on::<Warning, _>(move |_, it| noted.borrow_mut().push(it.0.clone())).unwrap();
    notices
}

/// Waits until nothing moves any more.
async fn settle() {
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
}
