//! What a plugin said is secret gets neither into the log nor to the model, whichever way it takes.

use std::rc::Rc;

use serde_json::{Value, json};

use nano_cordis::cordis::{BoxError, Context, NoConfig, Svc, plugin};
use nano_cordis::harness::agent_loop::AgentRequest;
use nano_cordis::harness::env::Env;
use nano_cordis::harness::llm::LlmError;
use nano_cordis::harness::prompt::Prompt;
use nano_cordis::harness::session::event::EventBody;
use nano_cordis::harness::tools::Tool;

use super::rig::{Agent, agent, tool};

const SECRET: &str = "sk-12345/67";

/// A plugin knows a secret from now on.
async fn hide(it: &Agent) {
    it.root.provide(Rc::new(Env::fixed([("MY_KEY", SECRET)]))).unwrap();
    let def = plugin(|_: Context, _: NoConfig, env: Svc<Env>| {
        let hidden = env.hide(SECRET);
        async { hidden.map(drop).map_err(BoxError::from) }
    });
    it.mount("keeper", &def).await;
}

/// All that was logged and all that was sent, but for what the user said.
fn told(it: &Agent) -> Vec<String> {
    let is_own = |it: &EventBody| matches!(it, EventBody::UserMessage { .. });
    let events = it.session.events();
    let logged = events.iter().filter(|it| !is_own(&it.body)).map(|it| it.to_line());
    let sent = it.model.asked().into_iter().map(|it| {
        let own = |it: &&Value| it["role"] != "user";
        let request = serde_json::to_value(&*it).unwrap();
        let messages = request["messages"].as_array().unwrap().iter().filter(own);
        format!("{} {:?}", request["header"], messages.collect::<Vec<_>>())
    });
    logged.chain(sent).collect()
}

#[test]
fn d_24_a_secret_in_the_prompt_is_masked_in_header_and_request_and_the_header_stays_the_same() {
    agent(async |it| {
        hide(it).await;
        it.model.says("one").says("two");
        let section = plugin(|_: Context, _: NoConfig, prompt: Svc<Prompt>| {
            let added = prompt.section("code", 1, format!("Code: {SECRET}."));
            async { added.map(drop).map_err(BoxError::from) }
        });
        it.mount("section", &section).await;

        it.run("hello").await;
        it.run("again").await;

        let header = it.session.header().unwrap();
        assert_eq!(header.system.as_deref(), Some("Be brief.\n\nCode: ***."));
        assert_eq!(it.model.asked()[1].header, header);
        assert_eq!(it.log().iter().filter(|it| *it == "request/header").count(), 1);
    });
}

#[test]
fn d_24_no_plugin_gets_a_secret_into_the_header_nor_sees_one_on_the_way() {
    agent(async |it| {
        hide(it).await;
        it.model.says("one");
        let seen = Rc::new(std::cell::RefCell::new(String::new()));
        let draft = seen.clone();
        it.root
            .intercept::<AgentRequest>(async move |_, asked, next| {
                draft.replace(asked.config.system.clone());
                let mut config = next.run().await?;
                config.model = format!("m-{SECRET}");
                config.system += SECRET;
                Ok(config)
            })
            .unwrap();
        let schema = json!({ "type": "object", "properties": { "a": { "const": SECRET } } });
        let telling = move || {
            Tool::new("t", format!("Knows {SECRET}"), schema.clone(), async |_| Ok(String::new()))
        };
        it.mount_tool(telling).await;

        it.run("hello").await;

        assert!(told(it).iter().all(|it| !it.contains(SECRET)), "{:?}", told(it));
        let header = it.session.header().unwrap();
        assert_eq!(
            (header.model.as_str(), header.system.as_deref()),
            ("m-***", Some("Be brief.***"))
        );
        assert_eq!(*seen.borrow(), "Be brief.");
    });
}

#[test]
fn d_24_replies_calls_results_and_errors_are_masked_whoever_said_them() {
    agent(async |it| {
        hide(it).await;
        it.mount_tool(|| tool("leak", async |_| Ok(format!("it is {SECRET}")))).await;
        let arguments = format!("{{\"text\":\"{SECRET}\"}}");
        it.model
            .replies(&format!("I say {SECRET}"), &[("a", "leak", &arguments)], Some("tool_calls"))
            .fails(LlmError::Scripted(format!("bad key {SECRET}")));

        let outcome = it.run("hello").await;

        assert!(told(it).iter().all(|it| !it.contains(SECRET)), "{:?}", told(it));
        assert_eq!(it.results(), ["it is ***"]);
        assert!(outcome.error.unwrap().message.ends_with("bad key ***"));
    });
}

#[test]
fn d_24_what_the_user_typed_is_logged_and_sent_as_typed() {
    agent(async |it| {
        hide(it).await;
        it.model.says("one");

        it.run(&format!("my key is {SECRET}")).await;

        assert_eq!(it.model.asked()[0].messages[0].text(), format!("my key is {SECRET}"));
        assert_eq!(it.session.messages()[0].text(), format!("my key is {SECRET}"));
    });
}
