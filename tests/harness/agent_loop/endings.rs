//! How a turn ends when it does not simply complete, and what the log and the caller are told.

use std::rc::Rc;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use nano_cordis::cordis::{BoxError, plugin};
use nano_cordis::harness::agent_loop::{self, RunError};
use nano_cordis::harness::llm::LlmError;
use nano_cordis::harness::session::error::SessionError;
use nano_cordis::harness::session::event::{Event, EventBody, Reason};
use nano_cordis::harness::session::message::Message;
use nano_cordis::harness::session::{Session, Store};

use super::rig::{agent, mount};

#[test]
fn h_033_a_model_that_never_stops_calling_is_stopped_at_the_step_limit() {
    agent(async |it| {
        for _ in 0..3 {
            it.model.calls(&[("", "echo", "{}")]);
        }

        let outcome = it.run("hello").await;

        assert_eq!((outcome.reason, outcome.steps), (Reason::MaxSteps, 3));
        assert_eq!(it.model.asked().len(), 3);
        assert_eq!(it.log().last().unwrap(), "turn/end MaxSteps");
    });
}

#[test]
fn h_034_every_call_of_the_last_allowed_step_has_its_result() {
    agent(async |it| {
        for _ in 0..3 {
            it.model.calls(&[("", "echo", "{}"), ("", "echo", "{}")]);
        }

        it.run("hello").await;

        assert_eq!(it.results().len(), 6);
        assert!(matches!(it.session.messages().last(), Some(Message::Tool { .. })));
    });
}

#[test]
fn the_step_limit_is_25_and_cannot_be_0() {
    agent(async |it| {
        it.turns.dispose().await;
        let def = plugin(agent_loop::apply).named("loop");
        let none = it.root.plugin(&def, json!({ "maxSteps": 0 })).unwrap();
        assert!(none.ready().await.is_err());
        assert_eq!(it.take_reports().len(), 1);
        none.dispose().await;

        mount(&it.root, "loop", &def, json!({})).await;
        for _ in 0..25 {
            it.model.calls(&[("", "echo", "{}")]);
        }

        assert_eq!(it.run("hello").await.steps, 25);
    });
}

#[test]
fn h_035_a_model_error_closes_the_step_and_ends_the_turn() {
    agent(async |it| {
        it.model.fails(LlmError::Status { status: 500, message: "broken".into() });

        let outcome = it.run("hello").await;

        assert_eq!(outcome.reason, Reason::Error);
        assert_eq!(it.log()[4..], ["step/end", "turn/end Error"]);
    });
}

#[test]
fn h_040_a_second_turn_on_a_busy_session_is_refused() {
    agent(async |it| {
        it.model.hangs();
        let cancel = CancellationToken::new();

        let (first, second) = tokio::join!(it.try_run("one", &cancel), async {
            let refused = it.try_run("two", &cancel).await;
            cancel.cancel();
            refused
        });

        assert!(matches!(second, Err(RunError::Busy)));
        assert_eq!(first.unwrap().reason, Reason::Aborted);
        assert!(!it.log().contains(&"user/message two".to_owned()));
        assert_eq!(it.log().last().unwrap(), "turn/end Aborted");
    });
}

#[test]
fn h_041_after_a_failed_turn_the_next_one_works_and_knows_what_was_said() {
    agent(async |it| {
        it.model.fails(LlmError::Scripted("broken".into())).says("two");
        it.run("first words").await;

        let outcome = it.run("second words").await;

        assert_eq!(outcome.reason, Reason::Completed);
        let texts: Vec<_> =
            it.model.asked()[1].messages.iter().map(|it| it.text().to_owned()).collect();
        assert_eq!(texts, ["first words", "second words"]);
    });
}

#[test]
fn h_042_the_end_of_a_failed_turn_says_what_failed() {
    agent(async |it| {
        it.model.fails(LlmError::Status { status: 503, message: "overloaded".into() });

        let outcome = it.run("hello").await;

        let events = it.session.events();
        let EventBody::TurnEnd { error: Some(error), .. } = &events.last().unwrap().body else {
            panic!("no error")
        };
        assert!(error.message.contains("overloaded"), "{}", error.message);
        assert_eq!(
            (error.status, error.code.is_some(), error.request_hash.is_some()),
            (Some(503), true, true)
        );
        assert_eq!(outcome.error.as_ref(), Some(error));
    });
}

#[test]
fn h_092_a_log_that_cannot_be_kept_ends_the_turn_and_takes_no_other() {
    agent(async |it| {
        it.sessions().keep_in(Rc::new(FullDisk)).unwrap();
        it.model.calls(&[("a", "echo", "{}")]);

        let outcome = it.run("hello").await;
        let next = it.try_run("again", &CancellationToken::new()).await;

        assert_eq!((outcome.reason, outcome.tool_calls), (Reason::Error, 0));
        let error = outcome.error.unwrap();
        assert!(error.message.contains("no space left"), "{}", error.message);
        assert_eq!(it.log().last().unwrap(), "request/header");
        assert!(matches!(next, Err(RunError::Log(SessionError::Sealed { .. }))));
    });
}

#[test]
fn h_121_calls_of_a_cut_reply_do_not_run_and_the_model_is_told() {
    agent(async |it| {
        let ran = it.count_runs("rm").await;
        it.model.replies("", &[("a", "rm", "{}")], Some("length")).says("ok");

        let outcome = it.run("hello").await;

        assert_eq!((outcome.reason, ran.get()), (Reason::Completed, 0));
        assert!(it.results()[0].starts_with("Error: the reply was cut"), "{:?}", it.results());
    });
}

#[test]
fn a_reply_that_is_cut_without_calls_ends_the_turn() {
    agent(async |it| {
        it.model.replies("half a sent", &[], Some("length"));

        let outcome = it.run("hello").await;

        assert_eq!((outcome.reason, outcome.text.as_str()), (Reason::MaxTokens, "half a sent"));
    });
}

#[test]
fn a_filtered_reply_answers_its_calls_and_fails_the_turn() {
    agent(async |it| {
        let ran = it.count_runs("rm").await;
        it.model.replies("", &[("a", "rm", "{}"), ("b", "rm", "{}")], Some("content_filter"));

        let outcome = it.run("hello").await;

        assert_eq!((outcome.reason, ran.get(), it.results().len()), (Reason::Error, 0, 2));
        assert_eq!(outcome.error.unwrap().code.as_deref(), Some("content-filter"));
    });
}

#[test]
fn a_model_that_panics_fails_the_turn_only() {
    agent(async |it| {
        it.model.panics().says("two");

        let failed = it.run("hello").await;
        let next = it.run("again").await;

        assert!(failed.error.unwrap().message.contains("the model broke"));
        assert_eq!(next.reason, Reason::Completed);
    });
}

/// Has no room for a reply.
struct FullDisk;

impl Store for FullDisk {
    fn open(&self, _: &Session) -> Result<(), BoxError> {
        Ok(())
    }

    fn write(&self, _: &Session, _: &str, event: &Event) -> Result<(), BoxError> {
        match event.body {
            EventBody::AssistantMessage { .. } => Err("no space left".into()),
            _ => Ok(()),
        }
    }

    fn close(&self, _: &Session) {}
}
