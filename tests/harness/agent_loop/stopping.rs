//! The end of a turn, when somebody has something to say about it.

use std::cell::RefCell;
use std::rc::Rc;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use nano_cordis::cordis::BoxError;
use nano_cordis::harness::agent_loop::{Stopping, TurnStopping};
use nano_cordis::harness::session::event::Reason;
use nano_cordis::harness::session::message::Message;

use super::rig::{Agent, agent};

/// Answers with these texts, one after the other, and notes what it was asked about.
fn answers(
    it: &Agent,
    texts: &'static [Result<Option<&'static str>, &'static str>],
) -> Rc<RefCell<Vec<(u32, bool, String)>>> {
    let asked = Rc::<RefCell<Vec<_>>>::default();
    let seen = asked.clone();
    let listener = async move |_, turn: Rc<Stopping>| {
        let at = seen.borrow().len();
        seen.borrow_mut().push((turn.step, turn.was_continued, turn.text.clone()));
        match texts.get(at).copied().unwrap_or(Ok(None)) {
            Ok(text) => Ok(text.map(str::to_owned)),
            Err(err) => Err(BoxError::from(err)),
        }
    };
    it.root.answer::<TurnStopping>(listener).unwrap();
    asked
}

#[test]
fn an_answer_is_logged_as_the_users_message_of_a_next_step_before_it_is_sent() {
    agent(async |it| {
        it.model.says("one").says("two");
        let asked = answers(it, &[Ok(Some("go on"))]);

        let outcome = it.run("hello").await;

        let expected = [
            "turn/start 1",
            "step/start 1",
            "user/message hello",
            "request/header",
            "assistant/message",
            "step/end",
            "step/start 2",
            "user/message go on",
            "assistant/message",
            "step/end",
            "turn/end Completed",
        ];
        assert_eq!(it.log(), expected);
        assert_eq!((outcome.text.as_str(), outcome.steps), ("two", 2));
        assert_eq!(*asked.borrow(), [(1, false, "one".into()), (2, true, "two".into())]);
        let sent = it.model.asked()[1].messages.clone();
        assert_eq!(sent.last(), Some(&Message::user("go on")));
        assert_eq!(sent[..], it.session.messages()[..3]);
    });
}

#[test]
fn the_first_answer_counts_and_a_blank_one_says_nothing() {
    agent(async |it| {
        it.model.says("one").says("two");
        answers(it, &[Ok(Some("first")), Ok(Some(" \n"))]);
        let second = answers(it, &[Ok(Some("second"))]);

        it.run("hello").await;

        assert!(it.log().contains(&"user/message first".to_owned()), "{:?}", it.log());
        assert_eq!(
            (it.last_turn().last().unwrap().as_str(), second.borrow().len()),
            ("turn/end Completed", 0)
        );
    });
}

#[test]
fn whoever_never_lets_a_turn_end_meets_the_limit_of_steps() {
    agent(async |it| {
        it.model.says("one").says("two").says("three");
        answers(it, &[Ok(Some("a")), Ok(Some("b")), Ok(Some("c"))]);

        let outcome = it.run("hello").await;

        assert_eq!((outcome.reason, outcome.steps), (Reason::MaxSteps, 3));
        assert!(!it.log().contains(&"user/message c".to_owned()));
    });
}

#[test]
fn a_listener_that_fails_ends_the_turn_with_its_error_and_the_log_is_closed() {
    agent(async |it| {
        it.model.says("one");
        answers(it, &[Err("no idea")]);

        let outcome = it.run("hello").await;

        let error = outcome.error.unwrap();
        assert!(error.message.contains("no idea"), "{}", error.message);
        assert_eq!(it.log().last().unwrap(), "turn/end Error");
    });
}

#[test]
fn a_listener_that_never_answers_does_not_outlive_the_turn_that_is_stopped() {
    agent(async |it| {
        it.model.says("one");
        let (reached, cancel) = (Rc::new(Notify::new()), CancellationToken::new());
        let (told, dropped) = (reached.clone(), Rc::new(()));
        let held = dropped.clone();
        let listener = async move |_, _| {
            let _held = held.clone();
            told.notify_one();
            std::future::pending::<()>().await;
            Ok(None)
        };
        it.root.answer::<TurnStopping>(listener).unwrap();
        let stopping = async {
            reached.notified().await;
            cancel.cancel();
        };

        let (outcome, ()) = tokio::join!(it.try_run("hello", &cancel), stopping);

        assert_eq!(outcome.unwrap().reason, Reason::Aborted);
        assert_eq!(Rc::strong_count(&dropped), 2);
    });
}

#[test]
fn nobody_is_asked_about_a_turn_that_ends_otherwise() {
    agent(async |it| {
        it.model.replies("cut", &[], Some("length"));
        let asked = answers(it, &[Ok(Some("go on"))]);

        let outcome = it.run("hello").await;

        assert_eq!((outcome.reason, asked.borrow().len()), (Reason::MaxTokens, 0));
    });
}
