//! Time: what ends a request that does not end by itself.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use nano_cordis::harness::{
    env::Env,
    llm::{LlmError, Reply, Request},
    session::message::{Header, Message},
};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;

use super::{Bench, bench, mount, paused};
use crate::server::Answer;

/// Pulls the token when `moment` comes, and checks that the request ends at once.
async fn cancelled_at(it: &Bench, moment: impl Future<Output = ()>) {
    let cancel = CancellationToken::new();
    let request =
        Request { header: Header::new("m", "", Vec::new()), messages: vec![Message::user("hi")] };
    let pull = async {
        moment.await;
        cancel.cancel();
        Instant::now()
    };
    let (result, pulled) = tokio::join!(it.send(request, cancel.clone()), pull);

    assert_eq!(result.unwrap_err(), LlmError::Cancelled);
    assert!(pulled.elapsed() < Duration::from_millis(100));
}

/// An address where a connection never comes about: its queue of connections is full.
async fn full_house() -> (String, TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut guests = Vec::new();
    while let Ok(guest) =
        tokio::time::timeout(Duration::from_millis(50), TcpStream::connect(address)).await
    {
        guests.push(guest.unwrap());
    }
    (format!("http://{address}/v1"), listener, guests)
}

#[test]
fn a_request_can_be_cancelled_while_it_connects() {
    bench([], &Value::Null, async |it| {
        let (base, _listener, _guests) = full_house().await;
        let it = it.at(&base, &Env::default()).await;

        cancelled_at(&it, tokio::time::sleep(Duration::from_millis(20))).await;
    });
}

#[test]
fn a_request_can_be_cancelled_while_it_waits_for_the_answer() {
    bench([Answer::silence()], &Value::Null, async |it| {
        cancelled_at(&it, it.server.arrived()).await;

        it.server.gone().await;
    });
}

#[test]
fn a_request_can_be_cancelled_within_the_answer() {
    let half = Answer::head(200, &[("Content-Length", "900")]).say("{\"choices\":[").hold();
    bench([half], &Value::Null, async |it| {
        let moment = async {
            it.server.arrived().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        };

        cancelled_at(&it, moment).await;

        it.server.gone().await;
    });
}

#[test]
fn a_request_that_is_cancelled_before_it_begins_is_not_sent() {
    bench([], &Value::Null, async |it| {
        let cancel = CancellationToken::new();
        cancel.cancel();

        let result = it
            .send(
                Request { header: Header::new("m", "", Vec::new()), messages: Vec::new() },
                cancel,
            )
            .await;

        assert_eq!(result.unwrap_err(), LlmError::Cancelled);
        assert!(it.server.received().is_empty());
    });
}

#[test]
fn a_request_that_is_dropped_closes_its_connection() {
    bench([Answer::silence()], &Value::Null, async |it| {
        tokio::select! {
            _ = it.ask(Vec::new()) => panic!("nothing was answered"),
            () = it.server.arrived() => {}
        }

        it.server.gone().await;
    });
}

async fn timed(it: &Bench) -> (Result<Reply, LlmError>, Duration) {
    let started = tokio::time::Instant::now();
    (it.ask(Vec::new()).await, started.elapsed())
}

#[test]
fn a_39_the_wait_for_an_answer_has_a_limit_that_is_named() {
    for (config, seconds) in [(Value::Null, 120), (json!({"firstByteTimeoutMs": 3_000}), 3)] {
        paused([Answer::silence()], &config, async |it| {
            let (result, time) = timed(&it).await;

            let err = result.unwrap_err();
            assert_eq!((err.code(), time.as_secs()), ("timeout", seconds));
            assert!(
                err.to_string()
                    .ends_with(&format!("nothing came for {seconds}000 ms (`firstByteTimeoutMs`)")),
                "{err}"
            );
            it.server.gone().await;
        });
    }
}

#[test]
fn a_39_silence_within_an_answer_has_a_limit_that_is_named() {
    paused(
        [Answer::head(200, &[("Content-Length", "9")]).say("{").hold()],
        &Value::Null,
        async |it| {
            let (result, time) = timed(&it).await;

            let err = result.unwrap_err();
            assert_eq!((err.code(), time.as_secs()), ("timeout", 90));
            assert!(err.to_string().contains("`silenceTimeoutMs`"), "{err}");
        },
    );
}

#[test]
fn a_39_a_slow_answer_is_never_cut_while_bytes_come() {
    let body = json!({"choices": [{"message": {"content": "slow"}}]}).to_string();
    let head = Answer::head(200, &[("Content-Length", &body.len().to_string())]);
    let slow = body.bytes().fold(head, |it, byte| it.say([byte]).pause(Duration::from_secs(80)));
    paused([slow], &Value::Null, async |it| {
        let (result, time) = timed(&it).await;

        assert_eq!(result.unwrap().message.content.as_deref(), Some("slow"));
        assert!(time > Duration::from_mins(50));
    });
}

#[test]
fn a_39_a_slow_stream_is_never_cut_while_it_goes_on() {
    let chunk = |it: u8| json!({"choices": [{"delta": {"content": char::from(it).to_string()}}]});
    let pause = Duration::from_secs(80);
    let slow = b"a slow one".iter().fold(Answer::open_stream(), |it, byte| {
        let waiting = (0..5).fold(it, |it, _| it.say(": wait\n\n").pause(pause));
        waiting.events(&[&chunk(*byte).to_string()]).pause(pause)
    });
    paused([slow.events(&["[DONE]"])], &Value::Null, async |it| {
        let (result, time) = timed(&it).await;

        assert_eq!(result.unwrap().message.content.as_deref(), Some("a slow one"));
        assert!(time > Duration::from_mins(75));
    });
}

#[test]
fn a_39_a_reply_that_is_there_is_not_held_up_by_signs_of_life_behind_it() {
    let stop = r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#;
    let lively = (0..40).fold(Answer::open_stream().events(&[stop]), |it, _| {
        it.pause(Duration::from_secs(5)).say(": wait\n\n")
    });
    paused([lively], &Value::Null, async |it| {
        let (result, time) = timed(&it).await;

        assert_eq!(result.unwrap().message.content.as_deref(), Some("hi"));
        assert!(time < Duration::from_secs(20), "{time:?}");
    });
}

#[test]
fn a_39_a_limit_may_be_as_long_as_a_number_can_say() {
    let settings =
        ["connectTimeoutMs", "firstByteTimeoutMs", "silenceTimeoutMs", "keepAliveLimitMs"];
    let config: Value = settings.map(|it| (it.to_owned(), json!(u64::MAX))).into_iter().collect();
    let slow = Answer::open_stream().say(": wait\n\n").pause(Duration::from_hours(1));
    let slow = slow.events(&[r#"{"choices":[{"delta":{"content":"hi"}}]}"#, "[DONE]"]);
    paused([slow], &config, async |it| {
        let (result, time) = timed(&it).await;

        assert_eq!(result.unwrap().message.content.as_deref(), Some("hi"));
        assert!(time >= Duration::from_hours(1));
    });
}

#[test]
fn a_39_connecting_has_a_limit_that_is_named() {
    bench([], &Value::Null, async |it| {
        let (base, _listener, _guests) = full_house().await;
        let config = json!({"baseUrl": base, "model": "m", "connectTimeoutMs": 60});
        let it = Bench { llm: mount(config, &Env::default()).await, ..it };

        let err = it.fail().await;

        assert_eq!(err.code(), "timeout");
        assert!(err.to_string().ends_with("nothing came for 60 ms (`connectTimeoutMs`)"), "{err}");
    });
}
