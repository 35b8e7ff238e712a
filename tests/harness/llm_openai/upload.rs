//! Long requests: made while they are sent, made anew for each try, and ended with the turn.

use nano_cordis::harness::{
    env::Env,
    llm::{LlmError, Request},
    session::message::{Header, Message, ToolSchema},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    join,
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;

use super::{Bench, assistant, bench};
use crate::server::Answer;

/// More than the buffers of a connection hold.
const LONG: usize = 24 << 20;
const MIB: usize = 1 << 20;
const HI: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

fn request(messages: Vec<Message>) -> Request {
    Request { header: Header::new("m", "", Vec::new()), messages }
}

fn long(length: usize) -> Request {
    request(vec![Message::user(&"0123456789".repeat(1_000)); length.div_ceil(10_000)])
}

/// Sends it to a server that does what the test says with each connection, and nothing on its own.
async fn before<T>(
    it: Bench,
    request: Request,
    cancel: CancellationToken,
    serve: impl AsyncFnOnce(TcpListener) -> T,
) -> (Result<Option<String>, LlmError>, T) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let it = it.at(&base, &Env::default()).await;
    let (reply, served) = join!(it.send(request, cancel), serve(listener));
    (reply.map(|it| it.message.content), served)
}

/// Reads the head of a request; returns how long its body is said to be, and how much of it came along.
async fn head(stream: &mut TcpStream) -> (usize, usize) {
    let mut bytes = Vec::new();
    loop {
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0);
        if let Some(at) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..at]).to_lowercase();
            let length = head.lines().find_map(|it| it.strip_prefix("content-length: ")).unwrap();
            return (length.parse().unwrap(), bytes.len() - at - 4);
        }
    }
}

/// Reads so much, or to the end of the connection; returns how much that was.
async fn read(stream: &mut TcpStream, most: usize) -> usize {
    let (mut buffer, mut count) = (vec![0; 1 << 16], 0);
    while count < most {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(more) => count += more,
        }
    }
    count
}

async fn whole(stream: &mut TcpStream) {
    let (length, came) = head(stream).await;
    assert_eq!(came + read(stream, length - came).await, length);
}

async fn say(stream: &mut TcpStream, head: &str, body: &str) {
    let length = body.len();
    let answer = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(answer.as_bytes()).await.unwrap();
}

#[test]
fn h_104_a_request_of_any_length_goes_out_byte_for_byte_and_states_its_length() {
    let call = json!({"role": "assistant", "content": "é\u{1}", "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{}"}},
    ]});
    let some = [Message::user("\"ü\n"), assistant(&call), Message::tool("c", "done")];
    let tools = vec![ToolSchema::new("bash", "runs", json!({"type": "object"}))];
    for (system, tools) in [("", Vec::new()), ("Be brief.", tools)] {
        for messages in [Vec::new(), some.to_vec(), vec![some.to_vec(); 20_000].concat()] {
            bench([Answer::reply("ok")], &json!({"stream": false}), async |it| {
                let request = Request { header: Header::new("m", system, tools.clone()), messages };

                it.send(request.clone(), CancellationToken::new()).await.unwrap();

                let first =
                    (!system.is_empty()).then(|| Message::System { content: system.into() });
                let all: Vec<_> = first.into_iter().chain(request.messages.clone()).collect();
                let mut wanted = json!({"model": "m", "messages": all});
                if !tools.is_empty() {
                    wanted["tools"] = json!(tools);
                }
                let received = it.server.only();
                assert!(received.body == wanted.to_string().as_bytes());
                let length = received.body.len().to_string();
                assert_eq!(received.header("content-length"), Some(length.as_str()));
                assert_eq!(received.header("transfer-encoding"), None);
            });
        }
    }
}

#[test]
fn d_41_the_hash_of_a_long_request_is_that_of_what_went_out() {
    bench([Answer::reply("ok")], &Value::Null, async |it| {
        let request = long(MIB);

        it.send(request.clone(), CancellationToken::new()).await.unwrap();

        let mut body = it.server.only().json();
        let messages = serde_json::from_value(body["messages"].take()).unwrap();
        assert_eq!(self::request(messages).hash(), request.hash());
    });
}

#[test]
fn h_109_each_try_sends_all_of_a_long_request() {
    let answers = [Answer::head(503, &[("Retry-After-Ms", "1")]), Answer::reply("ok")];
    bench(answers, &json!({"retries": 1}), async |it| {
        it.send(long(MIB), CancellationToken::new()).await.unwrap();

        let received = it.server.received();
        assert!(received[0].body.len() > MIB && received[0].body == received[1].body);
    });
}

#[test]
fn a_38_a_kept_connection_that_dies_within_a_long_request_costs_no_retry() {
    bench([], &Value::Null, async |it| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let it = it.at(&base, &Env::default()).await;
        let reply = json!({"choices": [{"message": {"content": "ok"}}]}).to_string();
        let serve = async {
            let (mut kept, _) = listener.accept().await.unwrap();
            whole(&mut kept).await;
            say(&mut kept, "200 OK", &reply).await;
            head(&mut kept).await;
            kept.set_zero_linger().unwrap();
            drop(kept);
            let (mut fresh, _) = listener.accept().await.unwrap();
            whole(&mut fresh).await;
            say(&mut fresh, "200 OK", &reply).await;
        };
        let ask = async {
            it.ask(Vec::new()).await.unwrap();
            it.send(long(MIB), CancellationToken::new()).await.unwrap()
        };

        let (reply, ()) = join!(ask, serve);

        assert_eq!(reply.message.content.as_deref(), Some("ok"));
        assert!(it.retries().is_empty());
    });
}

#[test]
fn a_refusal_that_comes_before_all_is_sent_is_that_refusal_and_ends_the_sending() {
    for (refused, status) in [("413 Too Large", 413), ("400 Bad", 400), ("401 No", 401)] {
        bench([], &Value::Null, async |it| {
            let refuse = async |listener: TcpListener| {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (length, came) = head(&mut stream).await;
                say(&mut stream, refused, r#"{"error":{"message":"not this"}}"#).await;
                (length, came, stream)
            };

            let (result, (length, came, mut stream)) =
                before(it, long(LONG), CancellationToken::new(), refuse).await;

            let err = result.unwrap_err();
            assert_eq!((err.code(), err.status()), ("status", Some(status)), "{err}");
            assert!(err.to_string().contains("not this"), "{err}");
            assert!(came + read(&mut stream, length).await < length);
        });
    }
}

#[test]
fn an_answer_that_begins_before_all_is_sent_does_not_end_the_sending() {
    bench([], &Value::Null, async |it| {
        let answer = async |listener: TcpListener| {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (length, came) = head(&mut stream).await;
            stream.write_all(format!("HTTP/1.1 200 OK\r\n\r\n{HI}").as_bytes()).await.unwrap();
            let all = came + read(&mut stream, length - came).await;
            stream.write_all(STOP.as_bytes()).await.unwrap();
            (length, all)
        };

        let (result, (length, all)) =
            before(it, long(LONG), CancellationToken::new(), answer).await;

        assert_eq!(result.unwrap().as_deref(), Some("hi"));
        assert_eq!(all, length);
    });
}

#[test]
fn a_request_can_be_cancelled_while_it_is_sent() {
    bench([], &Value::Null, async |it| {
        let cancel = CancellationToken::new();
        let pull = async |listener: TcpListener| {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (length, came) = head(&mut stream).await;
            cancel.cancel();
            (length, came + read(&mut stream, length).await)
        };

        let (result, (length, came)) = before(it, long(LONG), cancel.clone(), pull).await;

        assert_eq!(result, Err(LlmError::Cancelled));
        assert!(came < length);
    });
}
