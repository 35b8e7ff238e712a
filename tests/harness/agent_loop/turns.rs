//! A turn, step by step, as the log shows it.

use std::cell::RefCell;
use std::rc::Rc;

use tokio_util::sync::CancellationToken;

use nano_cordis::harness::agent_loop::{AssistantDelta, RunError};
use nano_cordis::harness::llm::Delta;
use nano_cordis::harness::session::SessionEvent;
use nano_cordis::harness::session::event::{Event, EventBody, Reason};
use nano_cordis::harness::session::message::Message;

use super::rig::{agent, tool};

#[test]
fn h_031_a_turn_of_text_only() {
    agent(async |it| {
        it.model.says("hi");

        let outcome = it.run("hello").await;

        assert_eq!((outcome.reason, outcome.text.as_str()), (Reason::Completed, "hi"));
        let expected = [
            "turn/start 1",
            "step/start 1",
            "user/message hello",
            "request/header",
            "assistant/message",
            "step/end",
            "turn/end Completed",
        ];
        assert_eq!(it.log(), expected);
    });
}

#[test]
fn h_032_a_turn_with_one_call_has_two_steps_and_one_user_message() {
    agent(async |it| {
        it.model.calls(&[("a", "echo", r#"{"text":"x"}"#)]).says("done");

        let outcome = it.run("hello").await;

        assert_eq!((outcome.steps, outcome.tool_calls, outcome.denied), (2, 1, 0));
        let expected = [
            "turn/start 1",
            "step/start 1",
            "user/message hello",
            "request/header",
            "assistant/message",
            "tool/call a",
            "tool/result a",
            "step/end",
            "step/start 2",
            "assistant/message",
            "step/end",
            "turn/end Completed",
        ];
        assert_eq!(it.log(), expected);
    });
}

#[test]
fn h_036_a_resumed_session_with_the_same_header_logs_no_new_one() {
    agent(async |it| {
        it.model.says("one").says("two");
        it.run("hello").await;
        let history = it.session.events().iter().map(|it| (**it).clone()).collect();

        let resumed = it.sessions().restore("resumed", history).unwrap();
        it.turns().run(&resumed, "again", CancellationToken::new()).await.unwrap();

        let kinds: Vec<_> =
            resumed.events().iter().skip(7).map(|it| it.body.kind().to_owned()).collect();
        assert!(!kinds.contains(&"request/header".to_owned()), "{kinds:?}");
    });
}

#[test]
fn h_037_turns_are_numbered_and_steps_start_anew_in_each() {
    agent(async |it| {
        it.model.says("one").says("two");

        it.run("hello").await;
        it.run("again").await;

        assert_eq!(it.last_turn()[..3], ["turn/start 2", "step/start 1", "user/message again"]);
    });
}

#[test]
fn a_log_that_ran_out_of_numbers_can_be_gone_on_with() {
    agent(async |it| {
        it.model.says("one");
        let turn = u32::MAX;
        let start = EventBody::TurnStart { turn, format: 1, cwd: String::new() };
        let end = EventBody::TurnEnd { turn, reason: Reason::Completed, error: None };
        let history = (0..).zip([start, end]).map(|(seq, body)| Event { seq, time: 0, body });

        let resumed = it.sessions().restore("resumed", history.collect()).unwrap();
        let outcome = it.turns().run(&resumed, "again", CancellationToken::new()).await.unwrap();

        assert_eq!((outcome.reason, resumed.turns()), (Reason::Completed, u32::MAX));
    });
}

#[test]
fn h_038_two_calls_of_one_reply_run_one_after_the_other() {
    agent(async |it| {
        it.model.calls(&[("a", "echo", "{}"), ("b", "echo", "{}")]).says("done");

        it.run("hello").await;

        assert_eq!(
            it.log()[5..9],
            ["tool/call a", "tool/result a", "tool/call b", "tool/result b"]
        );
    });
}

#[test]
fn h_039_the_model_sees_the_error_of_a_tool_and_goes_on() {
    agent(async |it| {
        it.mount_tool(|| tool("broken", async |_| Err("no luck".into()))).await;
        it.model.calls(&[("a", "broken", "{}")]).says("I see");

        let outcome = it.run("hello").await;

        assert_eq!(outcome.reason, Reason::Completed);
        assert_eq!(it.model.asked()[1].messages.last().unwrap().text(), "Error: no luck");
    });
}

#[test]
fn h_044_without_calls_there_is_no_tool_event() {
    agent(async |it| {
        let kinds = Rc::new(RefCell::new(Vec::new()));
        let heard = kinds.clone();
        it.root
            .on::<SessionEvent, _>(move |_, it| {
                heard.borrow_mut().push(it.event.body.kind().to_owned());
            })
            .unwrap();
        it.model.says("hi");

        it.run("hello").await;

        assert_eq!(kinds.borrow().len(), it.log().len());
        assert!(kinds.borrow().iter().all(|it| !it.starts_with("tool/")));
    });
}

#[test]
fn h_045_nothing_said_is_refused_before_anything_is_logged() {
    agent(async |it| {
        for text in ["", " ", "\n\t "] {
            let refused = it.try_run(text, &CancellationToken::new()).await;

            assert!(matches!(refused, Err(RunError::Empty)), "{text:?}");
        }
        assert_eq!(it.log(), [""; 0]);
    });
}

#[test]
fn calls_run_even_if_the_server_says_stop() {
    agent(async |it| {
        it.model.replies("", &[("a", "echo", r#"{"text":"x"}"#)], Some("stop")).replies(
            "done",
            &[],
            None,
        );

        let outcome = it.run("hello").await;

        assert_eq!((outcome.reason, it.results()), (Reason::Completed, vec!["x".to_owned()]));
    });
}

#[test]
fn a_07_missing_and_repeated_ids_are_replaced_on_both_sides() {
    agent(async |it| {
        let call = |id, text| (id, "echo", text);
        it.model
            .calls(&[
                call("x", r#"{"text":"1"}"#),
                call("x", r#"{"text":"2"}"#),
                call("", r#"{"text":"3"}"#),
            ])
            .calls(&[call("x", r#"{"text":"4"}"#)])
            .says("done");

        it.run("hello").await;

        let mut ids: Vec<_> = it
            .log()
            .iter()
            .filter_map(|it| it.strip_prefix("tool/result ").map(str::to_owned))
            .collect();
        assert_eq!((it.results().concat().as_str(), ids[0].as_str()), ("1234", "x"));
        let asked: Vec<_> = it.session.messages().iter().filter_map(calls_of).flatten().collect();
        assert_eq!(asked, ids);
        ids.sort();
        ids.dedup();
        assert_eq!((ids.len(), ids.contains(&String::new())), (4, false));
    });
}

#[test]
fn pieces_of_a_reply_are_raised_while_they_come() {
    agent(async |it| {
        let heard = Rc::new(RefCell::new(String::new()));
        let text = heard.clone();
        it.root
            .on::<AssistantDelta, _>(move |_, it| {
                if let Delta::Text(piece) = &it.delta {
                    text.borrow_mut().push_str(piece);
                }
            })
            .unwrap();
        it.model.streams(&["he", "llo"]);

        let outcome = it.run("hello").await;

        assert_eq!((heard.borrow().as_str(), outcome.text.as_str()), ("hello", "hello"));
    });
}

fn calls_of(message: &Message) -> Option<Vec<String>> {
    match message {
        Message::Assistant(message) => {
            Some(message.tool_calls.iter().map(|it| it.id.clone()).collect())
        }
        _ => None,
    }
}
