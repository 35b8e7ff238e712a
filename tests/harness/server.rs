//! A model server on the loopback interface that says exactly the bytes it is told to, when it is told to.
//!
//! Each request takes the next [`Answer`]; a request beyond the last gets a 500 and shows up in the count.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
};

/// Runs until the runtime of its test ends.
pub(crate) struct Server {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    answers: Mutex<VecDeque<Answer>>,
    received: Mutex<Vec<Received>>,
    connections: AtomicUsize,
    arrived: Notify,
    gone: Notify,
}

/// A request, byte for byte.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// `POST /v1/chat/completions HTTP/1.1`
    pub(crate) line: String,
    /// Names in small letters, in order.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// What is said in answer to one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer(Vec<Act>);

#[derive(Clone, Debug)]
enum Act {
    Say(Vec<u8>),
    Pause(Duration),
    /// Says nothing more and waits until the client is gone.
    Hold,
    /// Ends the connection at once, as a crashing server does.
    Reset,
    /// Waits for the next request on this connection.
    Keep,
}

impl Answer {
    /// Exactly these bytes, and then the connection is closed.
    pub(crate) fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self(vec![Act::Say(bytes.into())])
    }

    /// A whole answer with this body.
    pub(crate) fn text(status: u16, kind: &str, body: &str) -> Self {
        Self::head(status, &[("Content-Type", kind), ("Content-Length", &body.len().to_string())])
            .say(body)
    }

    /// A whole answer in JSON.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::text(status, "application/json", &body.to_string())
    }

    /// A reply with this message.
    pub(crate) fn message(message: &Value, finish_reason: &str) -> Self {
        Self::json(
            200,
            &json!({"choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]}),
        )
    }

    /// A reply that is text.
    pub(crate) fn reply(text: &str) -> Self {
        Self::message(&json!({"role": "assistant", "content": text}), "stop")
    }

    /// A stream of events with this data, to its end.
    pub(crate) fn stream(events: &[&str]) -> Self {
        Self::open_stream().events(events)
    }

    /// The head of a stream.
    pub(crate) fn open_stream() -> Self {
        Self::head(200, &[("Content-Type", "text/event-stream"), ("Connection", "close")])
    }

    /// Events with this data.
    pub(crate) fn events(self, events: &[&str]) -> Self {
        events.iter().fold(self, |it, data| it.say(format!("data: {data}\n\n")))
    }

    /// Only the head of an answer.
    pub(crate) fn head(status: u16, headers: &[(&str, &str)]) -> Self {
        let lines: Vec<_> =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        Self::bytes(format!("HTTP/1.1 {status} Whatever\r\n{}\r\n", lines.concat()))
    }

    /// Silence until the client goes away.
    pub(crate) fn silence() -> Self {
        Self(vec![Act::Hold])
    }

    /// The connection breaks off without an answer.
    pub(crate) fn reset() -> Self {
        Self(vec![Act::Reset])
    }

    pub(crate) fn say(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.then(Act::Say(bytes.into()))
    }

    pub(crate) fn pause(self, time: Duration) -> Self {
        self.then(Act::Pause(time))
    }

    /// The connection breaks off here.
    pub(crate) fn then_reset(self) -> Self {
        self.then(Act::Reset)
    }

    /// The connection stays for another request, which takes the next answer.
    pub(crate) fn keep(self) -> Self {
        self.then(Act::Keep)
    }

    pub(crate) fn hold(self) -> Self {
        self.then(Act::Hold)
    }

    fn then(mut self, act: Act) -> Self {
        self.0.push(act);
        self
    }
}

impl Server {
    /// Listens on a free port.
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State {
            answers: Mutex::new(answers.into_iter().collect()),
            ..State::default()
        });
        let server = Self { port, state: state.clone() };
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, state.clone()));
            }
        });
        server
    }

    /// One more answer.
    pub(crate) fn will(&self, answer: Answer) {
        self.state.answers.lock().unwrap().push_back(answer);
    }

    /// An address of this server.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// What was asked so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.state.received.lock().unwrap().clone()
    }

    /// How many connections there were.
    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// The only request.
    pub(crate) fn only(&self) -> Received {
        let [only] = <[Received; 1]>::try_from(self.received()).unwrap();
        only
    }

    /// Resolves when a request has come in whole. One call for each request.
    pub(crate) async fn arrived(&self) {
        self.state.arrived.notified().await;
    }

    /// Resolves when a client has closed a connection that was held open.
    pub(crate) async fn gone(&self) {
        self.state.gone.notified().await;
    }
}

async fn serve(mut stream: TcpStream, state: Arc<State>) {
    state.connections.fetch_add(1, Ordering::Relaxed);
    let Some(mut acts) = next_answer(&mut stream, &state).await else { return };
    while let Some(act) = acts.pop_front() {
        match act {
            Act::Keep => match next_answer(&mut stream, &state).await {
                Some(next) => acts = next,
                None => return state.gone.notify_one(),
            },
            Act::Say(bytes) => drop(stream.write_all(&bytes).await),
            Act::Pause(time) => tokio::time::sleep(time).await,
            Act::Hold => return hold(stream, &state).await,
            Act::Reset => return stream.set_zero_linger().unwrap(),
        }
    }
    drop(stream.shutdown().await);
}

async fn next_answer(stream: &mut TcpStream, state: &State) -> Option<VecDeque<Act>> {
    let request = read_request(stream).await?;
    state.received.lock().unwrap().push(request);
    let answer = state.answers.lock().unwrap().pop_front();
    state.arrived.notify_one();
    let answer = answer.unwrap_or_else(|| Answer::text(500, "text/plain", "no answer is left"));
    Some(answer.0.into())
}

async fn hold(mut stream: TcpStream, state: &State) {
    let mut byte = [0];
    while stream.read(&mut byte).await.is_ok_and(|count| count > 0) {}
    state.gone.notify_one();
}

async fn read_request(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let mut body = bytes.split_off(end + 4);
    let head = String::from_utf8(bytes).unwrap();
    let mut lines = head.trim_end().split("\r\n");
    let line = lines.next()?.to_owned();
    let headers: Vec<_> = lines
        .filter_map(|it| it.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, value)| value.parse().unwrap());
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Received { line, headers, body })
}
