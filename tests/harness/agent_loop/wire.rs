//! The whole agent before a server that looks closely: what is sent in a turn, and what becomes of odd answers.

use std::{cell::RefCell, collections::HashSet, rc::Rc};

use nano_cordis::harness::{
    builtins,
    session::{
        Session, Sessions,
        event::{Event, EventBody, Reason},
    },
};
use serde_json::{Value, json};

use super::{
    composed::{Composed, composed_in_real_time},
    rig::{log, results},
};
use crate::server::{Answer, Server};

const AGENT: &str = include_str!("../../fixtures/agent.cordis.yml");
const NO_SHELL: &str = "- id: bash\n  name: tool-bash\n\n";

/// What a test works with: everything is approved.
struct Wire<'a> {
    agent: &'a Composed,
    server: Server,
    session: RefCell<Rc<Session>>,
    list: String,
}

fn wire(answers: &[Answer], test: impl AsyncFnOnce(&Wire<'_>)) {
    composed_in_real_time(AGENT, builtins(), async |agent| {
        let server = Server::start(answers.to_vec()).await;
        let url = server.url("/v1");
        let adapter =
            format!("name: llm-openai\n  config: {{baseUrl: '{url}', model: m, retries: 1}}");
        let list = AGENT.replace("name: llm-fake", &adapter);
        agent.save(&list).await;
        agent.approve();
        let session = RefCell::new(agent.session());
        let it = Wire { agent, server, session, list };
        test(&it).await;
        it.server.received().iter().for_each(|it| assert_strict(&it.json()));
    });
}

impl Wire<'_> {
    async fn run(&self, text: &str) -> Reason {
        let session = self.session.borrow().clone();
        self.agent.run(&session, text).await.unwrap().reason
    }

    fn results(&self) -> Vec<String> {
        results(&self.session.borrow())
    }

    /// The messages of a request.
    fn sent(&self, number: usize) -> Vec<Value> {
        self.server.received()[number].json()["messages"].as_array().unwrap().clone()
    }
}

/// What strict servers demand of every request.
fn assert_strict(body: &Value) {
    assert!(body.get("tools") != Some(&json!([])));
    let (mut ids, mut open) = (HashSet::new(), Vec::new());
    for message in body["messages"].as_array().unwrap() {
        assert!(message["content"].is_string(), "{message}");
        if message["role"] == "tool" {
            assert_ne!(message["content"], "");
            assert_eq!(open.first(), message.get("tool_call_id"), "{body}");
            open.remove(0);
            continue;
        }
        assert_eq!(open, Vec::<Value>::new(), "{body}");
        let calls = message.get("tool_calls").map(|it| it.as_array().unwrap().clone());
        assert!(calls.as_ref().is_none_or(|it| !it.is_empty()));
        for call in calls.into_iter().flatten() {
            let arguments = call["function"]["arguments"].as_str().unwrap();
            assert!(serde_json::from_str::<Value>(arguments).unwrap().is_object());
            assert!(ids.insert(call["id"].as_str().unwrap().to_owned()), "{call}");
            open.push(call["id"].clone());
        }
    }
    assert_eq!(open, Vec::<Value>::new(), "{body}");
}

fn bash(id: &Value, command: &str) -> Value {
    let arguments = json!({ "command": command }).to_string();
    json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": arguments}})
}

fn calling(calls: &[Value]) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

/// The message in one piece or as a stream.
fn both(message: &Value, finish: &str) -> [Answer; 2] {
    let chunk = json!({"choices": [{"delta": message}]}).to_string();
    let stop = json!({"choices": [{"delta": {}, "finish_reason": finish}]}).to_string();
    [Answer::message(message, finish), Answer::stream(&[&chunk, &stop, "[DONE]"])]
}

#[test]
fn a_03_reasoning_goes_back_within_the_turn_and_after_a_resume() {
    let mut message = calling(&[bash(&json!("c1"), "echo hi")]);
    message["reasoning_content"] = json!("R1");
    for first in both(&message, "tool_calls") {
        wire(&[first, Answer::reply("done"), Answer::reply("again")], async |it| {
            it.run("hello").await;
            let lines = it.session.borrow().events().into_iter().map(|it| it.to_line());
            let events = lines.map(|it| Event::parse(&it).unwrap()).collect();
            let sessions = it.agent.root.get::<Sessions>().unwrap();
            it.session.replace(sessions.restore("resumed", events).unwrap());
            it.run("one more").await;

            for number in [1, 2] {
                let sent = it.sent(number);
                assert_eq!(
                    (&sent[2]["reasoning_content"], &sent[2]["content"]),
                    (&json!("R1"), &json!(""))
                );
            }
            assert!(it.sent(2)[4].get("reasoning_content").is_none());
        });
    }
}

#[test]
fn a_04_nothing_empty_is_sent_after_a_silent_command_and_without_tools() {
    for first in both(&calling(&[bash(&json!("c1"), "true")]), "tool_calls") {
        wire(&[first, Answer::reply("done"), Answer::reply("hello")], async |it| {
            it.run("do nothing").await;
            it.agent.save(&it.list.replace(NO_SHELL, "")).await;

            let reason = it.run("hello").await;

            assert_eq!((reason, it.server.received().len()), (Reason::Completed, 3));
            assert!(it.server.received()[2].json().get("tools").is_none());
        });
    }
}

#[test]
fn a_06_a_cut_call_that_looks_complete_does_not_run() {
    for reason in ["length", "max_tokens"] {
        for first in both(&calling(&[bash(&json!("c1"), "echo ran")]), reason) {
            wire(&[first, Answer::reply("ok")], async |it| {
                assert_eq!(it.run("hello").await, Reason::Completed);

                assert!(it.results().iter().all(|it| it.contains("cut") && !it.contains("ran\n")));
                assert_eq!(it.results().len(), 1);
            });
        }
    }
}

#[test]
fn a_06_calls_of_a_filtered_reply_do_not_run_either_and_the_turn_ends() {
    for first in both(&calling(&[bash(&json!("c1"), "echo ran")]), "content_filter") {
        wire(&[first], async |it| {
            assert_eq!(it.run("hello").await, Reason::Error);

            assert!(it.results().iter().all(|it| !it.contains("ran\n")));
        });
    }
}

#[test]
fn a_07_ids_that_are_missing_or_used_twice_are_replaced_on_both_sides() {
    let first = calling(&[
        bash(&json!("x"), "echo 1"),
        bash(&json!("x"), "echo 2"),
        bash(&Value::Null, "echo 3"),
    ]);
    let second = calling(&[bash(&json!("x"), "echo 4")]);
    for (first, second) in both(&first, "stop").into_iter().zip(both(&second, "stop")) {
        wire(&[first, second, Answer::reply("done")], async |it| {
            assert_eq!(it.run("hello").await, Reason::Completed);

            let numbers: String = it.results().iter().map(|it| it[..1].to_owned()).collect();
            assert_eq!(numbers, "1234");
        });
    }
}

#[test]
fn h_108_a_request_that_was_retried_leaves_one_message_in_the_log() {
    let busy = Answer::head(429, &[("retry-after-ms", "1"), ("Content-Length", "0")]);
    wire(&[busy, Answer::reply("done")], async |it| {
        assert_eq!(it.run("hello").await, Reason::Completed);

        let log = log(&it.session.borrow());
        assert_eq!(log.iter().filter(|it| it.starts_with("assistant/message")).count(), 1);
        assert_eq!(it.server.received()[0].body, it.server.received()[1].body);
    });
}

#[test]
fn h_119_a_reply_that_failed_is_not_in_the_log_and_its_request_can_be_told() {
    let chunk = r#"{"choices":[{"delta":{"content":"half"}}]}"#;
    let error = r#"{"error":{"message":"overloaded","code":400}}"#;
    wire(&[Answer::stream(&[chunk, error])], async |it| {
        assert_eq!(it.run("hello").await, Reason::Error);

        let session = it.session.borrow();
        let events = session.events();
        assert!(!log(&session).iter().any(|it| it.starts_with("assistant/message")));
        let Some(EventBody::TurnEnd { error: Some(error), .. }) = events.last().map(|it| &it.body)
        else {
            panic!("no error in {:?}", events.last());
        };
        assert!(error.message.ends_with(": overloaded"), "{error:?}");
        assert_eq!(
            (error.status, error.request_hash.as_deref().map(str::len)),
            (Some(400), Some(64))
        );
    });
}
