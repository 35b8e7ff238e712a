//! A model on the loopback interface that does what the last user message says: `calls=N` makes N tool calls, one a step;
//! `deltas=N` streams an answer in N pieces, `apart=N` does so with a pause after each; anything else gets a short answer.

use std::hint::spin_loop;
use std::io::{BufRead, BufReader, Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// As quick as no model speaks, and long enough for each event to be read on its own.
const APART: Duration = Duration::from_micros(20);

/// Runs until the process ends.
pub(crate) struct Server {
    address: String,
    sizes: Arc<Mutex<Vec<usize>>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("it is bound"));
        let sizes = Arc::<Mutex<Vec<usize>>>::default();
        let seen = sizes.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = seen.clone();
                // A client that goes away is no concern of the server.
                thread::spawn(move || drop(serve(&stream, &seen)));
            }
        });
        Self { address, sizes }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn forget(&self) {
        self.sizes.lock().expect("no thread panics").clear();
    }

    #[expect(clippy::cast_precision_loss, reason = "no request is that large")]
    pub(crate) fn first_request_bytes(&self) -> f64 {
        *self.sizes.lock().expect("no thread panics").first().expect("a request came") as f64
    }
}

fn serve(stream: &TcpStream, sizes: &Mutex<Vec<usize>>) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some(body) = request(&mut reader)? {
        sizes.lock().expect("no thread panics").push(body.len());
        let body: Value = serde_json::from_slice(&body)?;
        let mut stream = stream;
        // One write an event, as a model sends them; how many come in one read is up to the system.
        let pause = if asked(&body).1.starts_with("apart=") { APART } else { Duration::ZERO };
        for piece in answer(&body) {
            stream.write_all(piece.as_bytes())?;
            let sent = Instant::now();
            while sent.elapsed() < pause {
                spin_loop();
            }
        }
    }
    Ok(())
}

fn request(reader: &mut BufReader<&TcpStream>) -> Result<Option<Vec<u8>>> {
    let mut length = 0;
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let head = line.trim_end().to_ascii_lowercase();
        if let Some(value) = head.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
        if head.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(body))
}

/// The messages since the last of the user, and what that says.
fn asked(request: &Value) -> (&[Value], &str) {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let since = messages.iter().rposition(|it| it["role"] == "user").unwrap_or_default();
    let since = &messages[since..];
    (since, since.first().and_then(|it| it["content"].as_str()).unwrap_or_default())
}

fn answer(request: &Value) -> Vec<String> {
    let (since, asked) = asked(request);
    let number = |key: &str| asked.strip_prefix(key).and_then(|it| it.parse().ok()).unwrap_or(0);
    let done = since.iter().filter(|it| it["role"] == "tool").count();
    let streams = request["stream"] == true;
    let chunks = if done < number("calls=") {
        let arguments = json!({"command": format!("echo {done}")}).to_string();
        let function = json!({"name": "bash", "arguments": arguments});
        let id = format!("call-{}-{done}", since.len());
        let call = json!({"index": 0, "id": id, "type": "function", "function": function});
        vec![json!({"role": "assistant", "content": null, "tool_calls": [call]})]
    } else {
        vec![
            json!({"role": "assistant", "content": "done, "});
            number("deltas=").max(number("apart=")).max(1)
        ]
    };
    let reason = if done < number("calls=") { "tool_calls" } else { "stop" };
    if streams { stream(&chunks, reason) } else { whole(&chunks[0], reason) }
}

fn whole(message: &Value, reason: &str) -> Vec<String> {
    let body = json!({"choices": [{"index": 0, "message": message, "finish_reason": reason}]});
    http("application/json", vec![body.to_string()])
}

fn stream(deltas: &[Value], reason: &str) -> Vec<String> {
    let chunk = |delta: &Value, reason: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    let mut events: Vec<_> = deltas.iter().map(|it| chunk(it, None)).collect();
    events.push(chunk(&json!({}), Some(reason)));
    events.push("data: [DONE]\n\n".to_owned());
    http("text/event-stream", events)
}

fn http(kind: &str, mut pieces: Vec<String>) -> Vec<String> {
    let length: usize = pieces.iter().map(String::len).sum();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n");
    pieces[0].insert_str(0, &head);
    pieces
}
