//! The whole agent from one file.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use crate::support::{Folder, kinds, list, texts};

const FIXTURE: &str = include_str!("../fixtures/agent.cordis.yml");
const DRIVEN: &str = "- { id: persistence, name: persistence }\n- { id: cli, name: cli }\n";

/// The log of H-32 with one call.
const TURN: [&str; 12] = [
    "turn/start",
    "step/start",
    "user/message",
    "request/header",
    "assistant/message",
    "tool/call",
    "tool/result",
    "step/end",
    "step/start",
    "assistant/message",
    "step/end",
    "turn/end",
];

#[test]
fn h_169_the_fixture_agent_runs_a_whole_turn() {
    let folder = Folder::with(&format!("{FIXTURE}{DRIVEN}"));

    let ended = folder.run(&["Say hello"], "y\n");

    assert_eq!((kinds(&folder.log()), ended.code()), (TURN.to_vec(), 0), "{}", ended.err);
    assert_eq!(texts(&folder.log(), "tool/result"), ["hello from nano\n\n[exit code: 0]"]);
}

#[test]
fn h_170_the_order_of_the_entries_does_not_matter() {
    let forwards = Folder::with(&list(&[]));
    let mut reversed: Vec<_> = list(&[]).lines().map(str::to_owned).collect();
    reversed.reverse();
    let backwards = Folder::with(&reversed.join("\n"));

    let (one, other) = (forwards.run(&["Say hello"], "y\n"), backwards.run(&["Say hello"], "y\n"));

    assert_eq!((one.out, one.err), (other.out, other.err));
    assert_eq!(kinds(&forwards.log()), kinds(&backwards.log()));
}

#[test]
fn h_172_with_the_openai_adapter_the_server_gets_what_the_log_derives() {
    let (address, server) = answering(
        r#"{"choices":[{"message":{"role":"assistant","content":"Hello from afar"},"finish_reason":"stop"}]}"#,
    );
    let llm = format!("name: llm-openai, config: {{baseUrl: '{address}', model: m}}");
    let folder = Folder::with(&list(&[("llm", &llm)]));

    let ended = folder.run(&["Say hello"], "");
    let request = server.join().unwrap();

    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("assistant> Hello from afar\n", ""));
    let log = folder.log();
    let header = &log[3]["data"]["header"];
    let expected =
        json!([{ "role": "system", "content": header["system"] }, log[2]["data"]["message"]]);
    assert_eq!(
        (&request["messages"], &request["model"], &request["tools"]),
        (&expected, &json!("m"), &header["tools"])
    );
}

#[test]
fn h_174_a_wrong_type_is_named_by_path() {
    let folder =
        Folder::with(&list(&[("approval", "name: approval, config: {tools: {bash: yes}}")]));

    let ended = folder.run(&["Say hello"], "y\n");

    assert!(ended.err.contains("approval") && ended.err.contains("tools"), "{}", ended.err);
    assert_eq!((ended.out.as_str(), ended.code()), ("", 2));
}

/// A server on loopback that gives one answer, and the request that it got.
fn answering(body: &'static str) -> (String, JoinHandle<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let length = reader
            .by_ref()
            .lines()
            .map(|it| it.unwrap().to_lowercase())
            .take_while(|it| !it.is_empty());
        let length = length
            .filter_map(|it| {
                it.strip_prefix("content-length: ").map(|it| it.parse::<usize>().unwrap())
            })
            .last()
            .unwrap();
        let mut request = vec![0; length];
        reader.read_exact(&mut request).unwrap();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
        write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        serde_json::from_slice(&request).unwrap()
    });
    (address, server)
}
