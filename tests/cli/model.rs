//! A model service on the loopback interface, as strict as the strictest: it refuses a request in which calls and results
//! do not belong together, and remembers why.
//!
//! It runs what the user says: each line, or part of a line between `§`, that begins with `$ ` becomes a call of bash.
//! Without one, and when all results are there, it answers `done`; but to a result that says `hold` it never answers. It
//! keeps nothing between requests, so many programs can ask at once.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::support::list;

pub(crate) struct Model {
    port: u16,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    requests: usize,
    faults: Vec<String>,
}

impl Model {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::<Mutex<Seen>>::default();
        let shared = seen.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let seen = shared.clone();
                thread::spawn(move || serve(stream.unwrap(), &seen));
            }
        });
        Self { port, seen }
    }

    /// The usual list with this model and nothing to be asked about; `shell` is the config of its shell.
    pub(crate) fn list(&self, shell: &str) -> String {
        let llm = format!(
            "name: llm-openai, config: {{baseUrl: 'http://127.0.0.1:{}/v1', model: m}}",
            self.port
        );
        let shell = format!("name: shell-local, config: {{{shell}}}");
        list(&[("llm", &llm), ("approval", ""), ("shell", &shell)])
    }

    pub(crate) fn requests(&self) -> usize {
        self.seen.lock().unwrap().requests
    }

    /// Why requests were refused.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.seen.lock().unwrap().faults.clone()
    }
}

/// A program that is killed goes away in the middle of anything, so no failure here is a failure of a test.
fn serve(mut stream: TcpStream, seen: &Mutex<Seen>) -> Option<()> {
    let body = read_body(&stream)?;
    let request = serde_json::from_slice(&body).map_err(|it| it.to_string());
    let fault = request.as_ref().map_or_else(|it| Some(it.clone()), fault);
    {
        let mut seen = seen.lock().unwrap();
        seen.requests += 1;
        seen.faults.extend(fault.clone());
    }
    let says_hold = |request: &Value| {
        let last = request["messages"].as_array().and_then(|it| it.last());
        last.is_some_and(|it| it["role"] == "tool" && it["content"].to_string().contains("hold"))
    };
    if request.as_ref().is_ok_and(says_hold) {
        return stream.read(&mut [0]).ok().map(drop);
    }
    let (status, kind, body) = match (fault, request) {
        (None, Ok(request)) if request["stream"] == true => {
            (200, "text/event-stream", streamed(&answer(&request)))
        }
        (None, Ok(request)) => {
            let choice = json!({"index": 0, "message": answer(&request), "finish_reason": "stop"});
            (200, "application/json", json!({"choices": [choice]}).to_string())
        }
        (fault, _) => (400, "application/json", json!({"error": {"message": fault}}).to_string()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all((head + &body).as_bytes()).ok()
}

fn read_body(stream: &TcpStream) -> Option<Vec<u8>> {
    let mut reader = BufReader::new(stream);
    let mut length = None;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim().to_lowercase().split_once(": ") {
            Some(("content-length", value)) => length = value.parse().ok(),
            None if line.trim().is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length?];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}

fn streamed(message: &Value) -> String {
    let mut delta = message.clone();
    for (index, call) in delta["tool_calls"].as_array_mut().into_iter().flatten().enumerate() {
        call["index"] = index.into();
    }
    let chunk =
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]}).to_string();
    format!("data: {chunk}\n\ndata: [DONE]\n\n")
}

fn answer(request: &Value) -> Value {
    let messages = request["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    let text = last["content"].as_str().unwrap_or_default();
    let commands = text.split(['\n', '§']).filter_map(|it| it.trim_start().strip_prefix("$ "));
    let calls: Vec<_> = commands
        .enumerate()
        .map(|(number, command)| {
            let arguments = json!({ "command": command.replace("\\n", "\n").replace("<NUL>", "\0") }).to_string();
            let id = format!("call_{}_{number}", messages.len());
            json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": arguments}})
        })
        .collect();
    if last["role"] != "user" || calls.is_empty() {
        return json!({"role": "assistant", "content": "done"});
    }
    json!({"role": "assistant", "content": "", "tool_calls": calls})
}

/// What a strict service would not take: an id that is used twice, a call without its one result right behind it, a
/// result without its call, a message without content.
fn fault(request: &Value) -> Option<String> {
    let (mut used, mut open) = (HashSet::new(), Vec::new());
    for message in request["messages"].as_array()? {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default().to_owned();
            match open.iter().position(|it| *it == id) {
                Some(at) => drop(open.remove(at)),
                None => return Some(format!("a result for {id:?} that nobody asked for")),
            }
        } else if let Some(id) = open.first() {
            return Some(format!("no result for {id:?} before a message of {role}"));
        }
        if message["content"].as_str().is_none_or(|it| role == "tool" && it.is_empty()) {
            return Some(format!("a message of {role} without content"));
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let id = call["id"].as_str().unwrap_or_default().to_owned();
            if id.is_empty() || !used.insert(id.clone()) {
                return Some(format!("the id {id:?} is used twice"));
            }
            open.push(id);
        }
    }
    open.first().map(|id| format!("no result for {id:?} at the end"))
}
