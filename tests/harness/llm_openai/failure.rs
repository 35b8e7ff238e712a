//! What comes in and is no reply.

use nano_cordis::harness::{env::Env, llm::LlmError};
use serde_json::{Value, json};

use super::bench;
use crate::server::{Answer, Server};

/// How the request with this answer fails. A server is asked once, whatever it answers.
pub(super) fn failure(answer: Answer) -> LlmError {
    let mut failed = LlmError::Cancelled;
    bench([answer], &Value::Null, async |it| {
        failed = it.fail().await;
        assert_eq!(it.server.received().len(), 1);
    });
    failed
}

fn message(answer: Answer) -> String {
    failure(answer).to_string()
}

#[test]
fn h_106_a_401_shows_address_status_and_the_words_of_the_service() {
    let err = failure(Answer::json(
        401,
        &json!({"error": {"message": "Authentication Fails", "type": "x", "code": "invalid"}}),
    ));

    let LlmError::Status { status: 401, message } = err else { panic!("{err}") };
    assert!(message.starts_with("POST http://127.0.0.1:"), "{message}");
    assert!(
        message.ends_with("/v1/chat/completions: 401 Unauthorized: Authentication Fails"),
        "{message}"
    );
}

#[test]
fn h_106_the_words_are_found_in_every_shape_of_an_error() {
    for (body, words) in [
        (r#"{"error":{"message":"bad key"}}"#, "bad key"),
        (r#"{"error":"bad key"}"#, "bad key"),
        (r#"{"message":"bad key"}"#, "bad key"),
        (r#"{"detail":"bad key"}"#, "bad key"),
        (r#"{"detail":[{"loc":["body"],"msg":"bad key"}]}"#, "bad key"),
        (r#"[{"error":{"code":400,"message":"bad key","status":"INVALID"}}]"#, "bad key"),
        (r#"{"error":{"message":"","code":7}}"#, r#"{"error":{"message":"","code":7}}"#),
        (r#"{"oops":1}"#, r#"{"oops":1}"#),
        ("bad\r\n\tkey\u{1b}[2J", "bad key [2J"),
        ("\"bad key\"", "\"bad key\""),
    ] {
        let said = message(Answer::text(403, "text/plain", body));

        assert!(said.ends_with(&format!(": 403 Forbidden: {words}")), "{said}");
    }
    assert!(message(Answer::text(500, "text/plain", "")).ends_with(": 500 Internal Server Error"));
}

#[test]
fn h_107_a_page_of_html_comes_down_to_its_title() {
    let page = format!(
        "<html><head><title>502 Bad Gateway</title></head><body>{}</body></html>",
        "x".repeat(40_000)
    );

    assert!(
        message(Answer::text(500, "text/html", &page))
            .ends_with(": 500 Internal Server Error: a page of HTML, titled 502 Bad Gateway")
    );
    assert!(
        message(Answer::text(500, "text/html", "<html><body>x")).ends_with("Error: a page of HTML")
    );
}

#[test]
fn h_107_at_most_500_characters_of_a_service_are_shown() {
    for body in ["é".repeat(90_000), json!({"error": {"message": "é".repeat(5_000)}}).to_string()]
    {
        let said = message(Answer::text(500, "text/plain", &body));

        let words = said.split_once("Server Error: ").unwrap().1;
        assert_eq!(words.chars().count(), 500);
        assert!(words.ends_with("é…"), "{words}");
    }
}

#[test]
fn h_110_no_balance_and_no_quota_are_a_kind_of_their_own_and_asked_once() {
    let no_quota = json!({"error": {"message": "You exceeded your quota", "type": "insufficient_quota", "code": "insufficient_quota"}});

    for (answer, status) in [
        (Answer::json(402, &json!({"error": {"message": "Insufficient Balance"}})), 402),
        (Answer::json(429, &no_quota), 429),
    ] {
        let err = failure(answer);

        assert_eq!((err.code(), err.status()), ("quota", Some(status)));
    }
    assert_eq!(
        failure(Answer::json(429, &json!({"error": {"message": "slow down"}}))).code(),
        "status"
    );
}

#[test]
fn h_126_a_conversation_that_is_too_long_is_a_kind_of_its_own() {
    for error in [
        json!({"message": "too much", "code": "context_length_exceeded"}),
        json!({"message": "This model's maximum context length is 131072 tokens.", "code": "invalid_request_error"}),
        json!({"message": "the request exceeds the available context size"}),
    ] {
        let err = failure(Answer::json(400, &json!({"error": error})));

        assert_eq!((err.code(), err.status()), ("context-length", Some(400)));
    }
    assert_eq!(
        failure(Answer::json(400, &json!({"error": {"message": "bad role"}}))).code(),
        "status"
    );
}

#[test]
fn a_36_a_404_and_a_doubled_v1_get_a_hint() {
    for (base, hint) in [("/v2", "(is `baseUrl` right?"), ("/v1/v1", "(`baseUrl` has /v1 twice)")] {
        bench([Answer::text(404, "text/plain", "no")], &Value::Null, async |it| {
            let base = it.server.url(base);
            let it = it.at(&base, &Env::default()).await;

            let said = it.fail().await.to_string();

            assert!(said.contains(hint), "{said}");
        });
    }
}

#[test]
fn a_refusal_that_names_a_field_says_which_setting_is_about_it() {
    for (field, setting) in [
        ("stream_options", "`body: { stream_options: null }`"),
        ("reasoning_content", "`reasoning`"),
        ("max_completion_tokens", "`maxTokensField`"),
    ] {
        let said = message(Answer::json(
            400,
            &json!({"error": {"message": format!("unknown or missing field: {field}")}}),
        ));

        assert!(said.contains(&format!("{field} ({setting}")), "{said}");
    }
}

#[test]
fn a_40_a_redirect_is_not_followed_and_the_message_says_what_to_write() {
    for status in [301, 302, 307, 308] {
        bench([], &Value::Null, async |it| {
            let other = Server::start([]).await;
            let target = other.url("/v1/chat/completions?sig=geheim");
            let headers = [("Location", target.as_str()), ("Content-Length", "0")];
            it.server.will(Answer::head(status, &headers));

            let said = it.fail().await.to_string();

            let wanted = format!("write {} as `baseUrl`", other.url("/v1"));
            assert!(said.contains(&wanted) && !said.contains("geheim"), "{said}");
            assert!(other.received().is_empty());
        });
    }
}

#[test]
fn a_40_a_redirect_to_itself_ends_at_once() {
    bench([], &json!({"retries": 3}), async |it| {
        let target = it.server.url("/v1/chat/completions");
        let headers = [("Location", target.as_str()), ("Content-Length", "0")];
        it.server.will(Answer::head(308, &headers));

        let err = it.fail().await;

        assert_eq!((err.status(), it.server.received().len()), (Some(308), 1));
    });
}

#[test]
fn a_server_that_is_not_there_is_named_with_the_reason() {
    bench([], &Value::Null, async |it| {
        let it = it.at("http://127.0.0.1:9/v1", &Env::default()).await;

        let err = it.fail().await;

        assert_eq!(err.code(), "transport");
        assert_eq!(
            err.to_string(),
            "POST http://127.0.0.1:9/v1/chat/completions: cannot connect: Connection refused (os error 111)"
        );
    });
}

#[test]
fn a_37_a_proxy_that_is_not_there_is_named_without_its_password() {
    bench([], &Value::Null, async |it| {
        let env = Env::fixed([("HTTP_PROXY", "http://me:geheim@127.0.0.1:9")]);
        let it = it.at("http://model.test/v1", &env).await;

        let said = it.fail().await.to_string();

        assert!(said.contains("cannot connect, through the proxy http://127.0.0.1:9/: "), "{said}");
        assert!(!said.contains("geheim"), "{said}");
    });
}

#[test]
fn a_connection_that_breaks_is_a_transport_error_wherever_it_breaks() {
    let half = "{\"choices\":[";
    for answer in [
        Answer::reset(),
        Answer::bytes("HTTP/1.1 200 OK\r\nContent-"),
        Answer::head(200, &[("Content-Length", "900")]).say(half),
        Answer::head(200, &[("Transfer-Encoding", "chunked")]).say("c\r\n").say(half),
        Answer::bytes("no HTTP at all\r\n\r\n"),
    ] {
        let err = failure(answer);

        assert!(
            matches!(&err, LlmError::Transport(it) if it.contains("the connection broke")),
            "{err}"
        );
    }
}

#[test]
fn a_refusal_whose_body_breaks_off_is_still_that_refusal() {
    let err = failure(Answer::head(503, &[("Content-Length", "900")]).say("overl"));

    assert!(
        matches!(&err, LlmError::Status { status: 503, message } if message.ends_with("Unavailable: overl")),
        "{err}"
    );
}
