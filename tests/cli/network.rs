//! What a model server does, as it is seen on the screen: pieces as they come, a break, a wait, and silence.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::{Folder, list, reason, texts, until};
use crate::terminal::{CTRL_C, CTRL_D, Terminal};

const STREAM: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

/// A server that answers one request after the other with what these write. The last one answers all that follow.
fn serving(answers: Vec<fn(&mut TcpStream)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    thread::spawn(move || {
        let last = *answers.last().unwrap();
        for answer in answers.into_iter().chain(std::iter::repeat(last)) {
            let Ok((mut stream, _)) = listener.accept() else { return };
            read_request(&stream);
            answer(&mut stream);
        }
    });
    address
}

fn read_request(stream: &TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let head = reader.by_ref().lines().map(|it| it.unwrap().to_lowercase());
    let head: Vec<_> = head.take_while(|it| !it.is_empty()).collect();
    let length = head.iter().find_map(|it| it.strip_prefix("content-length: "));
    reader.read_exact(&mut vec![0; length.unwrap().parse().unwrap()]).unwrap();
}

fn piece(text: &str) -> String {
    let delta = serde_json::json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
    format!("data: {delta}\n\n")
}

fn hello(stream: &mut TcpStream) {
    let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    stream.write_all(format!("{STREAM}{}{}{end}", piece("Hel"), piece("lo")).as_bytes()).unwrap();
}

/// Half a reply, then nothing more until the client goes away.
fn half(stream: &mut TcpStream) {
    stream.write_all(format!("{STREAM}{}", piece("Half a \x1b[2Jsent")).as_bytes()).unwrap();
    silent(stream);
}

/// Half a reply, and the connection is gone.
fn broken(stream: &mut TcpStream) {
    stream.write_all(format!("{STREAM}{}", piece("Half a sent")).as_bytes()).unwrap();
}

fn busy(stream: &mut TcpStream) {
    let answer =
        "HTTP/1.1 503 Busy\r\nRetry-After: 50\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    stream.write_all(answer.as_bytes()).unwrap();
}

fn silent(stream: &mut TcpStream) {
    let _gone = stream.read(&mut [0; 16]);
}

fn folder(answers: Vec<fn(&mut TcpStream)>) -> Folder {
    let llm = format!("name: llm-openai, config: {{baseUrl: '{}', model: m}}", serving(answers));
    Folder::with(&list(&[("llm", &llm)]))
}

#[test]
fn a_31_ctrl_c_ends_every_wait_for_a_server_and_the_next_turn_works() {
    static ASKED: AtomicBool = AtomicBool::new(false);
    fn asked_and_silent(stream: &mut TcpStream) {
        ASKED.store(true, Ordering::Relaxed);
        silent(stream);
    }
    for (first, sign) in [
        (asked_and_silent as fn(&mut TcpStream), None),
        (half, Some("assistant> Half a ␛[2Jsent")),
        (busy, Some("retry 1 of ")),
    ] {
        let folder = folder(vec![first, hello]);
        let mut terminal = Terminal::start(folder.command(&[]));
        terminal.wait_for("you> ");
        terminal.type_keys("one\r");
        match sign {
            Some(sign) => terminal.wait_for(sign),
            None => until("the request", || ASKED.load(Ordering::Relaxed)),
        }

        terminal.type_keys(CTRL_C);
        terminal.wait_for("[nano-cordis] cancelled");
        assert_eq!(reason(&folder.log()), "aborted");
        terminal.wait_for("you> ");
        terminal.type_keys("two\r");
        terminal.wait_for("assistant> Hello");
        terminal.type_keys(CTRL_D);

        assert_eq!(terminal.ended().1, 0);
    }
}

#[test]
fn a_reply_that_breaks_off_is_said_and_begins_again_on_a_line_of_its_own() {
    let folder = folder(vec![broken, hello]);
    let mut terminal = Terminal::start(folder.command(&["hi"]));

    terminal.wait_for("assistant> Half a sent\r\n[nano-cordis] ");
    terminal.wait_for("retry 1 of ");
    terminal.wait_for("\r\n\r\nassistant> Hello\r\n");
    let (shown, status) = terminal.ended();

    assert_eq!((shown.matches("Hello").count(), status), (1, 0), "{shown}");
    assert_eq!(texts(&folder.log(), "assistant/message"), ["Hello"]);
}

#[test]
fn what_a_server_says_in_an_error_is_harmless() {
    fn refused(stream: &mut TcpStream) {
        let body = "{\"error\":{\"message\":\"no \\u001b[2J\\u009b2J\\u202e way\\nnano-cordis: all is well\"}}";
        let head =
            format!("HTTP/1.1 400 Bad\r\nContent-Length: {}\r\nConnection: close", body.len());
        stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
    }
    let folder = folder(vec![refused]);

    let ended = folder.run(&["hi"], "");

    assert!(ended.err.contains("no ") && ended.err.contains(" way"), "{}", ended.err);
    assert!(!ended.err.contains(|it: char| it.is_control() && it != '\n'), "{:?}", ended.err);
    assert!(
        !ended.err.contains('\u{202e}') && !ended.err.contains("\nnano-cordis: all"),
        "{:?}",
        ended.err
    );
    assert_eq!(ended.code(), 1);
}
