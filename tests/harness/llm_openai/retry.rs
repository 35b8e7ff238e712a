//! What is asked again, when, and what the user hears of it.

use std::time::Duration;

use nano_cordis::harness::llm::{Delta, LlmError, Reply, Request};
use nano_cordis::harness::session::message::Header;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Bench, bench, failure::failure, paused};
use crate::server::Answer;

const HI: &str = r#"{"choices":[{"delta":{"content":"hi"}}]}"#;
const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;

async fn timed(it: &Bench) -> (Result<Reply, LlmError>, Duration) {
    let started = Instant::now();
    (it.ask(Vec::new()).await, started.elapsed())
}

fn refusal(status: u16) -> Answer {
    Answer::json(status, &json!({"error": {"message": "no"}}))
}

fn busy(after: &str) -> Answer {
    Answer::head(429, &[("Retry-After", after), ("Content-Length", "0")])
}

/// What becomes of this answer when it is followed by a good one: is it asked for?
fn is_retried(answer: Answer) -> bool {
    let mut retried = false;
    paused([answer, Answer::reply("ok")], &json!({"retries": 1}), async |it| {
        let result = it.ask(Vec::new()).await;

        retried = it.server.received().len() == 2;
        assert_eq!((result.is_ok(), it.retries().len()), (retried, usize::from(retried)));
    });
    retried
}

#[test]
fn h_108_a_service_that_asks_for_a_second_gets_it_and_one_more_request() {
    paused([busy("1"), Answer::reply("ok")], &json!({"retries": 2}), async |it| {
        let (result, time) = timed(&it).await;

        assert_eq!(result.unwrap().message.content.as_deref(), Some("ok"));
        assert!((1_000..1_200).contains(&time.as_millis()), "{time:?}");
        let [first, second] = <[_; 2]>::try_from(it.server.received()).unwrap();
        assert_eq!(first.body, second.body);
        let told = it.told.borrow();
        assert!(
            matches!(&told[..], [(_, Delta::Retry { why, after, attempt: 1, of: 2 })] if why.contains("429 Too Many Requests") && after.as_secs() == 1),
            "{told:?}"
        );
    });
}

#[test]
fn h_108_a_service_that_asks_for_too_much_is_not_waited_for_and_the_number_is_told() {
    for (after, said) in [
        ("61", "61 s"),
        ("2700", "2700 s"),
        ("Wed, 01 Jan 2200 00:00:00 GMT", " s; 60 s are the most"),
    ] {
        paused([busy(after)], &json!({"retries": 2}), async |it| {
            let (result, time) = timed(&it).await;

            let err = result.unwrap_err();
            assert!(err.to_string().contains(said), "{err}");
            assert_eq!((err.status(), time.as_secs(), it.retries().len()), (Some(429), 0, 0));
        });
    }
    paused([busy("60"), Answer::reply("ok")], &json!({"retries": 2}), async |it| {
        assert_eq!(timed(&it).await.1.as_secs(), 60);
    });
}

#[test]
fn h_108_junk_in_place_of_a_time_is_ignored() {
    for after in ["0", "-1", "soon", "Sun, 06 Nov 1994 08:49:37 GMT"] {
        paused([busy(after), Answer::reply("ok")], &json!({"retries": 2}), async |it| {
            let time = timed(&it).await.1.as_millis();

            assert!((450..=550).contains(&time), "{after}: {time}");
        });
    }
}

#[test]
fn h_109_there_are_as_many_retries_as_configured_and_their_waits_grow() {
    for (config, requests) in
        [(json!({"retries": 2}), 3), (json!({"retries": 0}), 1), (json!({"retries": null}), 5)]
    {
        paused((0..9).map(|_| refusal(503)), &config, async |it| {
            let err = it.fail().await;

            let waits: Vec<_> = it.retries().into_iter().map(|(after, _)| after).collect();
            assert_eq!(it.server.received().len(), requests);
            assert_eq!((err.status(), waits.len()), (Some(503), requests - 1));
            assert!(waits.is_sorted(), "{waits:?}");
        });
    }
}

#[test]
fn h_109_the_count_begins_anew_with_each_request() {
    let answers = [refusal(503), Answer::reply("one"), refusal(503), Answer::reply("two")];
    paused(answers, &json!({"retries": 1}), async |it| {
        for wanted in ["one", "two"] {
            let reply = it.ask(Vec::new()).await.unwrap();

            assert_eq!(reply.message.content.as_deref(), Some(wanted));
        }
    });
}

#[test]
fn what_may_pass_is_retried() {
    for status in [408, 409, 425, 429, 500, 502, 503, 529] {
        assert!(is_retried(refusal(status)), "{status}");
    }
    let stated = json!({"error": {"message": "upstream", "code": 502}});
    assert!(is_retried(Answer::json(200, &stated)));
    assert!(is_retried(Answer::stream(&[HI, &stated.to_string()])));
    assert!(is_retried(Answer::message(
        &json!({"content": "half"}),
        "insufficient_system_resource"
    )));
}

#[test]
fn h_106_what_fails_the_same_way_again_is_not() {
    for status in [307, 400, 401, 403, 404, 413, 422] {
        assert!(!is_retried(refusal(status)), "{status}");
    }
    let stated = json!({"error": {"message": "no", "code": 400}});
    assert!(!is_retried(Answer::json(200, &stated)));
    assert!(!is_retried(Answer::stream(&[HI, &stated.to_string()])));
    assert!(!is_retried(Answer::text(200, "text/html", "<html>")));
    assert!(!is_retried(Answer::json(200, &json!({"choices": []}))));
}

#[test]
fn a_reply_without_end_is_not_asked_for_again() {
    let endless =
        |first: &str| Answer::open_stream().say(format!("{first}{}", "x".repeat(65 << 20)));
    let text = json!({"choices": [{"delta": {"content": "x".repeat(13 << 20)}}]}).to_string();
    for flood in [endless("{"), endless("data: "), Answer::stream(&[text.as_str(); 5])] {
        assert!(!is_retried(flood.clone()));

        let err = failure(flood);
        let why = "the reply is longer than 64 MiB (`maxTokens` limits it)";
        assert!(err.to_string().ends_with(why), "{err}");
    }
}

#[test]
fn h_110_neither_no_balance_nor_no_quota_nor_too_long_a_conversation_is_retried() {
    let no_quota = |kind: &str| json!({"error": {"message": "no", "type": kind}});
    assert!(!is_retried(refusal(402)));
    assert!(!is_retried(Answer::json(429, &no_quota("insufficient_quota"))));
    assert!(!is_retried(Answer::json(429, &no_quota("exceeded_current_quota_error"))));
    assert!(!is_retried(Answer::json(400, &json!({"error": {"code": "context_length_exceeded"}}))));
    assert!(!is_retried(Answer::json(500, &json!({"error": {"code": "context_length_exceeded"}}))));
}

#[test]
fn h_120_a_connection_that_breaks_is_retried_wherever_it_breaks() {
    let cut = || Answer::head(200, &[("Content-Length", "9000")]);
    for answer in [
        Answer::reset(),
        Answer::bytes("HTTP/1.1 200 OK\r\nContent-"),
        cut(),
        cut().say("{\"choices\":["),
        cut().events(&[HI]),
        cut().events(&[HI]).then_reset(),
        Answer::stream(&[HI]),
        Answer::stream(&[HI, "{\"cho"]),
        Answer::text(200, "application/json", "{\"choices\":["),
    ] {
        assert!(is_retried(answer.clone()), "{answer:?}");
    }
}

#[test]
fn h_123_an_empty_reply_is_retried() {
    for answer in [
        Answer::reply(""),
        Answer::text(200, "application/json", "\n\n"),
        Answer::stream(&[STOP, "[DONE]"]),
        Answer::stream(&["[DONE]"]),
    ] {
        assert!(is_retried(answer));
    }
}

#[test]
fn h_125_silence_is_retried_and_so_are_signs_of_life_without_end() {
    let minute = Duration::from_mins(1);
    let alive = (0..15).fold(Answer::open_stream(), |it, _| it.say(": wait\n\n").pause(minute));
    for (answer, setting, seconds) in [
        (Answer::silence(), "firstByteTimeoutMs", 120),
        (Answer::open_stream().hold(), "firstByteTimeoutMs", 120),
        (Answer::open_stream().events(&[HI]).hold(), "silenceTimeoutMs", 90),
        (alive.hold(), "keepAliveLimitMs", 600),
    ] {
        paused([answer, Answer::reply("ok")], &json!({"retries": 1}), async |it| {
            let (result, time) = timed(&it).await;

            assert_eq!(result.unwrap().message.content.as_deref(), Some("ok"));
            let [(after, why)] = <[_; 1]>::try_from(it.retries()).unwrap();
            assert!(why.ends_with(&format!("(`{setting}`)")), "{why}");
            assert_eq!(time.checked_sub(after).unwrap().as_secs(), seconds, "{setting}");
        });
    }
}

#[test]
fn d_39_text_that_was_shown_is_void_when_the_stream_breaks() {
    let again = r#"{"choices":[{"delta":{"content":"anew"}}]}"#;
    let answers = [Answer::stream(&[HI]), Answer::stream(&[again, STOP])];
    paused(answers, &json!({"retries": 1}), async |it| {
        let reply = it.ask(Vec::new()).await.unwrap();

        let told: Vec<_> = it.told.take().into_iter().map(|(_, delta)| delta).collect();
        let [first, Delta::Retry { attempt: 1, of: 1, .. }, second] = &told[..] else {
            panic!("{told:?}")
        };
        let text = |it: &str| Delta::Text(it.into());
        assert_eq!((first, second), (&text("hi"), &text("anew")));
        assert_eq!(reply.message.content.as_deref(), Some("anew"));
    });
}

#[test]
fn a_retry_is_told_in_one_harmless_line() {
    let body = "bad\r\n\u{1b}[2J\u{202e}gateway";
    paused(
        [Answer::text(502, "text/plain", body), Answer::reply("ok")],
        &json!({"retries": 1}),
        async |it| {
            it.ask(Vec::new()).await.unwrap();

            let [(_, why)] = <[_; 1]>::try_from(it.retries()).unwrap();
            assert!(why.ends_with("502 Bad Gateway: bad [2J gateway"), "{why}");
        },
    );
}

#[test]
fn a_wait_for_a_retry_is_cancelled_at_once() {
    bench([busy("50")], &json!({"retries": 1}), async |it| {
        let cancel = CancellationToken::new();
        let request = Request { header: Header::new("m", "", Vec::new()), messages: Vec::new() };
        let pull = async {
            it.server.arrived().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            cancel.cancel();
        };

        let (result, ()) = tokio::join!(it.send(request, cancel.clone()), pull);

        assert_eq!(result.unwrap_err(), LlmError::Cancelled);
        assert_eq!(it.retries().len(), 1);
    });
}

#[test]
fn a_server_that_is_not_there_yet_is_asked_again() {
    bench([], &json!({"retries": 1, "baseUrl": "http://127.0.0.1:9/v1"}), async |it| {
        let err = it.fail().await;

        assert_eq!((err.code(), it.retries().len()), ("transport", 1));
    });
}

#[test]
fn a_refusal_whose_body_does_not_end_is_not_waited_for() {
    let endless = Answer::head(400, &[("Content-Length", "900")]).say("no").hold();
    paused([endless], &Value::Null, async |it| {
        let (result, time) = timed(&it).await;

        assert!(result.unwrap_err().to_string().ends_with("400 Bad Request: no"));
        assert!(time.as_secs() <= 10, "{time:?}");
    });
}
