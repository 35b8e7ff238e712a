//! The request: its header is logged before it is sent, and only when it changed.

use std::rc::Rc;

use serde_json::json;

use nano_cordis::cordis::{BoxError, Context, NoConfig, plugin};
use nano_cordis::harness::agent_loop::{AgentRequest, RequestConfig};
use nano_cordis::harness::llm::LlmError;
use nano_cordis::harness::prompt;
use nano_cordis::harness::session::message::Header;

use super::rig::{Agent, agent, mount, tool};

#[test]
fn h_020_the_header_is_in_the_log_before_the_model_is_asked() {
    agent(async |it| {
        it.model.fails(LlmError::Scripted("broken".into()));

        it.run("hello").await;

        let header = it.session.header().unwrap();
        assert_eq!((header.model.as_str(), header.system.as_deref()), ("fake", Some("Be brief.")));
        assert_eq!(tools_of(&header), ["echo"]);
    });
}

#[test]
fn h_021_an_unchanged_header_is_not_logged_again() {
    agent(async |it| {
        it.model.calls(&[("a", "echo", "{}")]).says("one").says("two");

        it.run("hello").await;
        it.run("hello").await;

        assert_eq!(headers(it), 1);
    });
}

#[test]
fn h_022_a_tool_that_was_added_is_in_the_next_header() {
    agent(async |it| {
        it.model.says("one").says("two");
        it.run("hello").await;

        it.mount_tool(|| tool("date", async |_| Ok("today".into()))).await;
        it.run("hello").await;

        assert_eq!(headers(it), 2);
        assert_eq!(tools_of(&it.session.header().unwrap()), ["date", "echo"]);
    });
}

#[test]
fn h_023_a_tool_that_was_removed_is_not_in_the_next_header() {
    agent(async |it| {
        it.model.says("one").says("two");
        let date = it.mount_tool(|| tool("date", async |_| Ok("today".into()))).await;
        it.run("hello").await;

        date.dispose().await;
        it.run("hello").await;

        assert_eq!(headers(it), 2);
        assert_eq!(tools_of(&it.session.header().unwrap()), ["echo"]);
    });
}

#[test]
fn h_024_a_changed_persona_is_in_the_next_header() {
    agent(async |it| {
        it.model.says("one").says("two");
        it.run("hello").await;

        it.prompt.dispose().await;
        mount(&it.root, "prompt", &plugin(prompt::apply), json!({ "persona": "Be rude." })).await;
        it.turns.ready().await.unwrap();
        it.run("hello").await;

        assert_eq!(headers(it), 2);
        assert_eq!(it.session.header().unwrap().system.as_deref(), Some("Be rude."));
    });
}

#[test]
fn h_025_a_listener_changes_the_model_in_the_log_and_in_the_request() {
    agent(async |it| {
        it.model.says("one");
        rewrite(it, |config| config.model = "other".into()).await;

        it.run("hello").await;

        assert_eq!(it.session.header().unwrap().model, "other");
        assert_eq!(it.model.asked()[0].header.model, "other");
    });
}

#[test]
fn h_026_a_listener_changes_the_system_text_in_the_log_and_in_the_request() {
    agent(async |it| {
        it.model.says("one");
        rewrite(it, |config| config.system.push_str(" Or else.")).await;

        it.run("hello").await;

        assert_eq!(it.session.header().unwrap().system.as_deref(), Some("Be brief. Or else."));
        assert_eq!(it.model.asked()[0].header, it.session.header().unwrap());
    });
}

#[test]
fn h_027_a_listener_that_only_watches_changes_nothing() {
    agent(async |it| {
        it.model.says("one").says("two");
        it.run("hello").await;

        rewrite(it, |_| ()).await;
        it.run("hello").await;

        assert_eq!(headers(it), 1);
    });
}

#[test]
fn h_028_every_request_is_the_newest_header_and_the_messages_of_the_log() {
    agent(async |it| {
        let seen = Rc::new(std::cell::RefCell::new(Vec::new()));
        it.model.calls(&[("a", "echo", r#"{"text":"x"}"#)]).says("one").says("two");
        watch_requests(it, &seen).await;

        it.run("hello").await;
        it.mount_tool(|| tool("date", async |_| Ok("today".into()))).await;
        it.run("again").await;

        let asked = it.model.asked();
        assert_eq!(asked.len(), 3);
        for (request, messages) in asked.iter().zip(seen.borrow().iter()) {
            assert_eq!(request.messages, *messages);
        }
        let newest = it.session.header().unwrap();
        assert_eq!([asked[0].header == newest, asked[2].header == newest], [false, true]);
    });
}

#[test]
fn h_029_without_sections_and_tools_both_are_absent_from_the_header() {
    agent(async |it| {
        it.model.says("one");
        rewrite(it, |config| config.system.clear()).await;
        it.without_tools().await;

        it.run("hello").await;

        let logged = serde_json::to_value(it.session.header().unwrap()).unwrap();
        assert_eq!(logged, json!({ "model": "fake" }));
    });
}

#[test]
fn h_030_the_order_of_registration_does_not_change_the_header() {
    agent(async |it| {
        it.model.says("one").says("two");
        let first = it.mount_tool(|| tool("alpha", async |_| Ok(String::new()))).await;
        let second = it.mount_tool(|| tool("beta", async |_| Ok(String::new()))).await;
        it.run("hello").await;

        first.dispose().await;
        second.dispose().await;
        it.mount_tool(|| tool("beta", async |_| Ok(String::new()))).await;
        it.mount_tool(|| tool("alpha", async |_| Ok(String::new()))).await;
        it.run("hello").await;

        assert_eq!(headers(it), 1);
    });
}

fn headers(it: &Agent) -> usize {
    it.log().iter().filter(|it| *it == "request/header").count()
}

fn tools_of(header: &Header) -> Vec<&str> {
    header.tools.iter().map(|it| it.function.name.as_str()).collect()
}

/// A plugin that changes what `next` says.
async fn rewrite(it: &Agent, change: impl Fn(&mut RequestConfig) + Clone + 'static) {
    let def = plugin(move |ctx: Context, _: NoConfig| {
        let change = change.clone();
        async move {
            ctx.intercept::<AgentRequest>(async move |_, _, next| {
                let mut config = next.run().await?;
                change(&mut config);
                Ok(config)
            })?;
            Ok::<(), BoxError>(())
        }
    });
    it.mount("rewrite", &def).await;
}

/// A plugin that writes down what the log derives at the moment of each request.
async fn watch_requests(
    it: &Agent,
    seen: &Rc<std::cell::RefCell<Vec<Vec<nano_cordis::harness::session::message::Message>>>>,
) {
    let seen = seen.clone();
    let def = plugin(move |ctx: Context, _: NoConfig| {
        let seen = seen.clone();
        async move {
            ctx.intercept::<AgentRequest>(async move |_, draft, next| {
                seen.borrow_mut().push(draft.session.messages());
                next.run().await
            })?;
            Ok::<(), BoxError>(())
        }
    });
    it.mount("watch", &def).await;
}
