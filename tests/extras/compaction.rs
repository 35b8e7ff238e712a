//! Compaction: the model is shown a summary of what went before, and the log keeps all of it.

use std::{cell::RefCell, rc::Rc};

use nano_cordis::harness::{
    llm::Request,
    llm_fake::FakeRequest,
    session::{
        Session, Sessions,
        event::{EventBody, Reason},
        message::Message,
    },
};
use serde_json::{Value, json};

use crate::hooks::rig::{Rig, agent};

/// An agent whose model says these lines one after the other, whoever asks.
fn list(script: &[Value], config: &Value) -> String {
    format!(
        "
- {{id: session, name: session}}
- {{id: prompt, name: prompt, config: {{persona: You are nano.}}}}
- {{id: tools, name: tools}}
- {{id: echo, name: echo}}
- {{id: llm, name: llm-fake, config: {{script: {}, repeat: error}}}}
- {{id: loop, name: agent-loop}}
- {{id: compaction, name: compaction, config: {config}}}
",
        json!(script)
    )
}

fn small_window() -> Value {
    json!({ "contextWindow": 1000 })
}

fn says(text: &str) -> Value {
    json!({ "content": text })
}

/// About 900 tokens.
fn long() -> String {
    "word ".repeat(720)
}

/// What the model is asked from now on.
fn requests(rig: &Rig) -> Rc<RefCell<Vec<Rc<Request>>>> {
    let requests = Rc::<RefCell<Vec<Rc<Request>>>>::default();
    let seen = requests.clone();
    rig.root.on(move |_, it: &FakeRequest| seen.borrow_mut().push(it.0.clone())).unwrap();
    requests
}

/// Role and text of each message.
fn told(messages: &[Message]) -> Vec<(String, String)> {
    let role = |it: &Message| match it {
        Message::System { .. } => "system",
        Message::User { .. } => "user",
        Message::Assistant(_) => "assistant",
        Message::Tool { .. } => "tool",
    };
    messages.iter().map(|it| (role(it).to_owned(), it.text().to_owned())).collect()
}

fn pair(role: &str, text: &str) -> (String, String) {
    (role.to_owned(), text.to_owned())
}

const HEADING: &str =
    "[Summary of the conversation up to here. What it stands for is not shown any more.]\n\n";

fn summaries(session: &Session) -> Vec<(u64, u64, Vec<u64>)> {
    let summary = |body: &EventBody| match body {
        EventBody::CompactionSummary { from, to, keep, .. } => Some((*from, *to, keep.clone())),
        _ => None,
    };
    session.events().iter().filter_map(|it| summary(&it.body)).collect()
}

/// What the log says was asked, and what was asked, are the same.
fn agrees(session: &Session, requests: &[Rc<Request>]) {
    let hash = |body: &EventBody| match body {
        EventBody::AssistantMessage { request_hash, .. } => request_hash.clone(),
        EventBody::Ignorable { kind, data } if kind == "compaction/request" => {
            data["requestHash"].as_str().map(str::to_owned)
        }
        _ => None,
    };
    let logged: Vec<_> = session.events().iter().filter_map(|it| hash(&it.body)).collect();
    assert_eq!(logged, requests.iter().map(|it| it.hash()).collect::<Vec<_>>());
}

#[test]
fn a_conversation_that_nears_the_window_is_shortened_before_the_next_request() {
    let script = [says(&long()), says("Short."), says("Done.")];
    agent(&list(&script, &small_window()), async |rig| {
        let (session, requests) = (rig.session(), requests(rig));
        rig.turn(&session).await;

        rig.turn(&session).await;

        let asked = requests.borrow();
        let last = told(&asked.last().unwrap().messages);
        let summary = format!("{HEADING}Short.");
        assert_eq!(
            last,
            [pair("user", "hello"), pair("assistant", &summary), pair("user", "hello")]
        );
        assert_eq!(summaries(&session).len(), 1);
        agrees(&session, &asked);
        let told = rig.take_notices();
        assert!(told[0].starts_with("compacting the conversation: about 9"), "{told:?}");
        assert!(told[1].starts_with("compacted 1 messages (about 904 tokens)"), "{told:?}");
    });
}

#[test]
fn the_request_for_a_summary_begins_like_the_one_before_it_and_ends_with_the_instruction() {
    let script = [says(&long()), says("Short."), says("Done.")];
    agent(&list(&script, &small_window()), async |rig| {
        let (session, requests) = (rig.session(), requests(rig));
        rig.turn(&session).await;

        rig.turn(&session).await;

        let asked = requests.borrow();
        assert_eq!(asked[1].header, asked[0].header);
        assert_eq!(asked[1].header.system.as_deref(), Some("You are nano."));
        assert_eq!(asked[1].messages[..1], asked[0].messages);
        assert!(asked[1].messages[2].text().starts_with("Summarise this conversation"));
    });
}

#[test]
fn within_a_turn_calls_keep_their_results_and_what_the_user_wants_stays() {
    let call = json!({ "tool": "echo", "args": { "text": long() } });
    let script = [
        call.clone(),
        says("Short."),
        json!({ "tool": "echo", "args": { "text": "b" } }),
        says("Done."),
    ];
    agent(&list(&script, &small_window()), async |rig| {
        let (session, requests) = (rig.session(), requests(rig));

        let outcome = rig.turn(&session).await;

        assert_eq!(outcome.reason, Reason::Completed);
        let asked = requests.borrow();
        let summary = format!("{HEADING}Short.");
        assert_eq!(told(&asked[2].messages), [pair("user", "hello"), pair("user", &summary)]);
        let rest = told(&asked[3].messages);
        assert_eq!(rest[2..], [pair("assistant", ""), pair("tool", "b")]);
        agrees(&session, &asked);
    });
}

#[test]
fn what_came_last_stays_as_it_is_and_a_second_summary_is_made_of_the_first() {
    let script = [says(&long()), says("First."), says(&long()), says("Second."), says("Done.")];
    agent(&list(&script, &small_window()), async |rig| {
        let (session, requests) = (rig.session(), requests(rig));
        rig.turn(&session).await;
        rig.turn(&session).await;

        rig.turn(&session).await;

        let asked = requests.borrow();
        let first = format!("{HEADING}First.");
        assert_eq!(told(&asked[3].messages)[1], pair("assistant", &first));
        let last = told(&asked[4].messages);
        assert_eq!(last[1], pair("assistant", &format!("{HEADING}Second.")));
        assert_eq!(last.len(), 3);
        assert_eq!(summaries(&session).len(), 2);
        agrees(&session, &asked);
    });
}

#[test]
fn the_log_keeps_everything_and_a_resumed_session_shows_the_model_the_same() {
    let script = [says(&long()), says("Short."), says("Done.")];
    agent(&list(&script, &small_window()), async |rig| {
        let session = rig.session();
        rig.turn(&session).await;
        rig.turn(&session).await;

        let lines: Vec<_> = session.events().iter().map(|it| it.to_line()).collect();
        let events = lines.iter().map(|it| nano_cordis::harness::session::event::Event::parse(it));
        let history: Vec<_> = events.map(|it| it.unwrap()).collect();
        let again = rig.service::<Sessions>().restore("again", history).unwrap();

        assert!(lines.iter().any(|it| it.contains("word word")));
        assert_eq!(again.messages(), session.messages());
    });
}

#[test]
fn a_summary_that_fails_is_told_once_and_the_turn_goes_on() {
    let script = [says(&long()), json!({ "error": "no" }), says("Done.")];
    agent(&list(&script, &small_window()), async |rig| {
        let session = rig.session();
        rig.turn(&session).await;

        let outcome = rig.turn(&session).await;

        assert_eq!((outcome.reason, outcome.text.as_str()), (Reason::Completed, "Done."));
        assert_eq!(summaries(&session), []);
        let told = rig.take_notices();
        assert_eq!(told[1], "compaction failed, the turn goes on without: no");
    });
}

#[test]
fn a_call_in_place_of_a_summary_is_asked_for_once_more_and_then_given_up() {
    let call = json!({ "tool": "echo", "args": {} });
    let script = [says(&long()), call.clone(), call, says("Done.")];
    agent(&list(&script, &small_window()), async |rig| {
        let session = rig.session();
        rig.turn(&session).await;

        rig.turn(&session).await;

        assert_eq!((summaries(&session), rig.runs.get()), (vec![], 0));
        let told = rig.take_notices();
        assert!(told[1].ends_with("the model called a tool instead"), "{told:?}");
    });
}

#[test]
fn a_summary_that_is_longer_than_what_it_replaces_is_refused() {
    let script = [says(&long()), says(&long().repeat(2)), says("Done.")];
    agent(&list(&script, &small_window()), async |rig| {
        let session = rig.session();
        rig.turn(&session).await;

        rig.turn(&session).await;

        assert_eq!(summaries(&session), []);
        let told = rig.take_notices();
        assert!(told[1].ends_with("is no shorter than what it is to replace"), "{told:?}");
    });
}

#[test]
fn what_the_service_counted_weighs_more_than_an_estimate() {
    let reply = json!({ "content": "x ".repeat(400), "usage": { "prompt_tokens": 900, "completion_tokens": 1 } });
    let script = [reply, says("Short."), says("Done.")];
    agent(&list(&script, &small_window()), async |rig| {
        let session = rig.session();
        rig.turn(&session).await;

        rig.turn(&session).await;

        assert_eq!(summaries(&session).len(), 1);
    });
}

#[test]
fn without_a_window_nothing_is_done_unasked() {
    let script = [says(&long()), says("Done.")];
    agent(&list(&script, &json!({})), async |rig| {
        let session = rig.session();
        rig.turn(&session).await;

        rig.turn(&session).await;

        assert_eq!(summaries(&session), []);
    });
}

#[test]
fn a_window_of_nothing_is_refused_by_name() {
    agent(&list(&[says("Done.")], &json!({})), async |rig| {
        let saved = rig.save(&list(&[says("Done.")], &json!({ "contextWindow": 0 }))).await;

        let why = saved.unwrap_err();
        assert!(why.contains("config.contextWindow"), "{why}");
        rig.take_notices();
    });
}

#[test]
fn a_cancelled_turn_ends_the_request_for_a_summary() {
    let slow = json!({ "content": "Short.", "delayMs": 60_000 });
    let script = [says(&long()), slow];
    agent(&list(&script, &small_window()), async |rig| {
        let session = rig.session();
        rig.turn(&session).await;
        let cancel = rig.cancel.clone();
        let told = async {
            while rig.take_notices().is_empty() {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        };

        let (outcome, ()) = tokio::join!(rig.turn(&session), told);

        assert_eq!((outcome.reason, summaries(&session)), (Reason::Aborted, vec![]));
        rig.take_notices();
    });
}

#[test]
fn a_summary_that_would_part_a_call_from_its_result_is_no_event_of_a_log() {
    let script = [json!({ "tool": "echo", "args": {} }), says("Done.")];
    agent(&list(&script, &json!({})), async |rig| {
        let session = rig.session();
        rig.turn(&session).await;
        let is_call = |body: &EventBody| matches!(body, EventBody::ToolCall { .. });
        let call = session.events().iter().find(|it| is_call(&it.body)).unwrap().seq;

        let (keep, message) = (Vec::new(), Message::user("summary"));
        let summary = |to| EventBody::CompactionSummary {
            from: 0,
            to,
            keep: keep.clone(),
            message: message.clone(),
            usage: None,
            request_hash: None,
        };
        let refused = session.append(summary(call)).unwrap_err().to_string();
        let ahead = session.append(summary(9999)).unwrap_err().to_string();

        assert!(refused.ends_with("is not the end of a step or turn"), "{refused}");
        assert!(ahead.contains("event 9999"), "{ahead}");
    });
}
