//! The end of a turn.

use std::rc::Rc;

use nano_cordis::harness::session::{
    Session,
    event::{EventBody, Reason},
};
use serde_json::{Value, json};

use super::rig::{agent, hooks, list};

fn stop(command: &str) -> Value {
    json!({ "Stop": [{ "command": command }] })
}

/// What was said in the name of the user, and by the model, in order.
fn talk(session: &Rc<Session>) -> Vec<String> {
    let line = |body: &EventBody| match body {
        EventBody::UserMessage { step, message, .. } => {
            Some(format!("{step} user {}", message.text()))
        }
        EventBody::AssistantMessage { step, message, .. } => {
            Some(format!("{step} model {}", message.content.clone().unwrap_or_default()))
        }
        _ => None,
    };
    session.events().iter().filter_map(|it| line(&it.body)).collect()
}

/// An agent whose model says this, and the last of it again and again.
fn saying(hooks: &Value, texts: &[&str]) -> String {
    let script: Vec<_> = texts.iter().map(|it| json!({ "content": it })).collect();
    let model = json!({ "script": script, "repeat": "last" });
    list(hooks).replace("name: llm-fake", &format!("name: llm-fake, config: {model}"))
}

#[test]
fn a_reason_is_what_the_model_reads_next() {
    let once = "if grep -q '\"stop_hook_active\":false'; then echo 'run the tests' >&2; exit 2; fi";
    agent(&saying(&stop(once), &["one", "two"]), async |it| {
        let session = it.session();

        let outcome = it.turn(&session).await;

        assert_eq!(
            (outcome.reason, outcome.text.as_str(), outcome.steps),
            (Reason::Completed, "two", 2)
        );
        let expected =
            ["1 user hello", "1 model one", "2 user [Stop hook] run the tests", "2 model two"];
        assert_eq!(talk(&session), expected);
        assert_eq!(it.take_notices(), ["a Stop hook lets the turn go on: run the tests"]);
    });
}

#[test]
fn it_reads_whether_the_turn_goes_on_because_of_it_and_what_was_said_last() {
    let noting = "cat >> $DIR/input; [ $(wc -l < $DIR/input) = 2 ] || exit 2";
    agent(&saying(&stop(noting), &["one", "two"]), async |it| {
        let session = it.session();

        it.turn(&session).await;

        let inputs = it.read("input");
        let inputs: Vec<Value> =
            inputs.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        let expected = |active: bool, text: &str| {
            json!({
                "session_id": session.id(),
                "cwd": std::env::current_dir().unwrap(),
                "hook_event_name": "Stop",
                "stop_hook_active": active,
                "last_assistant_message": text,
            })
        };
        assert_eq!(inputs, [expected(false, "one"), expected(true, "two")]);
    });
}

#[test]
fn one_that_never_lets_a_turn_end_meets_the_limit_of_steps() {
    agent(&saying(&stop("echo more >&2; exit 2"), &["done"]), async |it| {
        let session = it.session();

        let outcome = it.turn(&session).await;

        assert_eq!((outcome.reason, outcome.steps), (Reason::MaxSteps, 4));
        assert_eq!(talk(&session).len(), 8);
    });
}

#[test]
fn whatever_else_it_does_the_turn_ends() {
    for (command, notices) in [
        ("echo fine", 0),
        ("exit 3", 1),
        ("no-such-command-here", 1),
        ("kill -KILL $$", 1),
        ("echo '{\"decision\":\"perhaps\"}'", 1),
        ("echo '{\"decision\":\"block\",\"continue\":false}'", 0),
    ] {
        hooks(&stop(command), async |it| {
            let session = it.session();

            let outcome = it.turn(&session).await;

            assert_eq!(outcome.reason, Reason::Completed, "{command}");
            assert_eq!(it.take_notices().len(), notices, "{command}");
        });
    }
}

#[test]
fn a_turn_that_is_stopped_while_a_hook_runs_is_aborted_and_so_is_the_hook() {
    hooks(&stop("echo $$ > $DIR/pid; exec sleep 60"), async |it| {
        let session = it.session();
        let stopping = async {
            let pid = it.line("pid").await;
            it.cancel.cancel();
            pid
        };

        let (outcome, pid) = tokio::join!(it.turn(&session), stopping);

        assert_eq!(outcome.reason, Reason::Aborted);
        it.gone(&pid).await;
        assert_eq!(it.take_notices(), [""; 0]);
    });
}
