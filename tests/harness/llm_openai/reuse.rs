//! Connections that are kept, and what becomes of them meanwhile.

use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use super::{Bench, paused};
use crate::server::Answer;

const SECOND: Duration = Duration::from_secs(1);

/// Two requests with a pause between them; the texts of the replies, and how many connections were made.
async fn two(it: &Bench, pause: Duration) -> (Vec<String>, usize) {
    let mut texts = Vec::new();
    for wait in [Duration::ZERO, pause] {
        sleep(wait).await;
        texts.push(it.ask(Vec::new()).await.unwrap().message.content.unwrap());
        assert!(it.retries().is_empty());
    }
    (texts, it.server.connections())
}

#[test]
fn the_next_step_uses_the_connection_of_the_last() {
    let chunk = |data: &str| format!("{:x}\r\ndata: {data}\n\n\r\n", data.len() + 8);
    let hi = r#"{"choices":[{"delta":{"content":"one"},"finish_reason":"stop"}]}"#;
    let stream = Answer::head(200, &[("Transfer-Encoding", "chunked")])
        .say(chunk(hi))
        .say(chunk("[DONE]"))
        .say("0\r\n\r\n");
    for first in [Answer::reply("one"), stream] {
        paused([first.keep(), Answer::reply("two")], &Value::Null, async |it| {
            let (texts, connections) = two(&it, Duration::ZERO).await;

            assert_eq!((texts.concat().as_str(), connections), ("onetwo", 1));
        });
    }
}

#[test]
fn a_38_no_connection_is_kept_while_the_user_is_thinking() {
    paused([Answer::reply("one").keep(), Answer::reply("two")], &Value::Null, async |it| {
        let (texts, connections) = two(&it, 6 * SECOND).await;

        assert_eq!((texts.concat().as_str(), connections), ("onetwo", 2));
        it.server.gone().await;
    });
}

#[test]
fn a_38_a_connection_that_the_server_closed_meanwhile_is_replaced_unnoticed() {
    let closed = Answer::reply("one").pause(SECOND);
    paused([closed, Answer::reply("two")], &Value::Null, async |it| {
        let (texts, connections) = two(&it, 2 * SECOND).await;

        assert_eq!((texts.concat().as_str(), connections), ("onetwo", 2));
    });
}

#[test]
fn a_38_a_kept_connection_that_dies_with_the_request_costs_no_retry() {
    for death in [Answer::reset(), Answer::bytes("")] {
        let answers = [Answer::reply("one").keep(), death, Answer::reply("two")];
        paused(answers, &Value::Null, async |it| {
            let (texts, connections) = two(&it, SECOND).await;

            assert_eq!((texts.concat().as_str(), connections), ("onetwo", 2));
            let bodies: Vec<_> = it.server.received().into_iter().map(|it| it.body).collect();
            assert_eq!((bodies.len(), &bodies[1]), (3, &bodies[2]));
        });
    }
}

#[test]
fn a_38_a_fresh_connection_that_dies_is_a_failure() {
    paused([Answer::reset(), Answer::reply("two")], &Value::Null, async |it| {
        assert_eq!(it.fail().await.code(), "transport");
        assert_eq!(it.server.received().len(), 1);
    });
}

#[test]
fn a_38_an_answer_that_began_is_not_asked_for_again_unnoticed() {
    let half = Answer::head(200, &[("Content-Length", "900")]).say("{\"cho");
    let answers = [Answer::reply("one").keep(), half, Answer::reply("two")];
    paused(answers, &Value::Null, async |it| {
        it.ask(Vec::new()).await.unwrap();

        assert_eq!(it.fail().await.code(), "transport");
        assert_eq!(it.server.received().len(), 2);
    });
}
