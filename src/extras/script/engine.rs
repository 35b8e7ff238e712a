//! Part of `script`: the handle of an engine, and the thread that it runs on.
//!
//! The values of an engine cannot leave its thread. So each plugin has one of each, and talks with the rest by messages:
//! what comes in is a [`Message`], what it wants done is a [`Request`]. Several calls may be under way at a time.
//! Watch for: the thread of the agent never waits for a script, but once: while the script is loaded. So a script may
//! wait for the agent. And: a script that does not keep up is not waited for, nor is all kept that it has not heard yet.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{self, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{
    sync::{mpsc as requests, oneshot},
    time::timeout,
};

use super::{console, failure::Failure, machine::Machine, moment, program::Program};
use crate::cordis::guarded;

/// Names a function of the script that the agent may call.
pub(super) type Function = u32;

/// What a call came to.
pub(super) type Outcome = Result<Value, Failure>;

/// What the agent says to the script.
pub(super) enum Message {
    /// Runs a function; the answer may take its time.
    Call {
        /// The function and its arguments, as JSON.
        text: String,
        /// Gets what it returns, or what the promise that it returns comes to.
        reply: oneshot::Sender<Outcome>,
    },
    /// Something that has no answer: a promise is settled, a function no longer needed, a call to be given up.
    Tell {
        /// What it is about, as the prelude calls it.
        topic: &'static str,
        /// Whom it concerns.
        number: u32,
        /// And what there is to say, as JSON.
        text: String,
    },
}

/// What the script wants done.
pub(super) struct Request {
    /// Which operation.
    pub(super) operation: String,
    /// Its arguments.
    pub(super) args: Vec<Value>,
    /// Where the answer goes.
    pub(super) answer: Answer,
}

/// Who waits for the answer to a request.
pub(super) enum Answer {
    /// The whole script.
    Now(Sender<Result<Value, String>>),
    /// A promise.
    Later(u32),
}

/// What a script says of itself when it is loaded.
pub(super) struct Exports {
    /// `name`.
    pub(super) name: Option<String>,
    /// `inject`.
    pub(super) inject: Value,
    /// `Config`, as a JSON Schema.
    pub(super) schema: Option<Value>,
}

/// What is told while a script is loaded.
pub(super) enum Telling {
    /// Something that it says meanwhile.
    Said(Request),
    /// The end of it.
    Loaded(Result<Exports, Failure>),
}

/// The handle of an engine. The engine ends when this is dropped.
pub(super) struct Engine {
    inbox: Option<Sender<Box<Message>>>,
    backlog: Arc<Backlog>,
    stop: Arc<AtomicBool>,
    ended: Option<oneshot::Receiver<()>>,
}

/// What was said to the script and not yet heard.
#[derive(Default)]
pub(super) struct Backlog {
    calls: AtomicUsize,
    bytes: AtomicUsize,
    awake: AtomicBool,
}

/// As many requests may wait until the script has to. Channels keep room for more than that, so what goes through them is
/// boxed.
const WAITING: usize = 16;
/// And so many calls, of so much text, until no more is taken.
const BACKLOG: (usize, usize) = (4096, 32 << 20);
/// The stack of the thread. What is not used of it takes no memory.
const STACK: usize = 2 << 20;
/// The agent waits so long for a top level. The budget of processor time ends it sooner as a rule.
const LOADING: Duration = Duration::from_secs(10);
/// And so long for the end of the thread.
const ENDING: Duration = Duration::from_secs(5);

impl Engine {
    /// Runs the top level of a script, and waits for its end.
    pub(super) fn load(
        program: Arc<Program>,
    ) -> Result<(Self, Exports, requests::Receiver<Box<Request>>), Failure> {
        let (inbox, messages) = mpsc::channel();
        let (outbox, requests) = requests::channel(WAITING);
        let (teller, telling) = mpsc::sync_channel(WAITING);
        let loaded = teller.clone();
        let (alive, ended) = oneshot::channel();
        let (backlog, stop) = (Arc::new(Backlog::default()), Arc::<AtomicBool>::default());
        let (inbox, ended) = (Some(inbox), Some(ended));
        let engine = Self { inbox, backlog: backlog.clone(), stop: stop.clone(), ended };
        let live = move || match Machine::load(program, stop, outbox, teller) {
            Ok((machine, exports)) => {
                drop(loaded.send(Box::new(Telling::Loaded(Ok(exports)))));
                machine.serve(&messages, &backlog);
            }
            Err(failure) => drop(loaded.send(Box::new(Telling::Loaded(Err(failure))))),
        };
        let whole = move || {
            drop(guarded(live));
            drop(alive);
        };
        thread::Builder::new()
            .name("script".into())
            .stack_size(STACK)
            .spawn(whole)
            .map_err(|err| Failure::new(format!("no thread could be started: {err}")))?;
        Ok((engine, loading(&telling)?, requests))
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "it was made for this, and is gone when it is sent"
    )]
    /// Calls a function of the script. Dropping the future forgets the answer, not the call. A `signal` that is not 0 is for
    /// this call alone: the script forgets it with the call.
    pub(super) fn call(
        &self,
        function: Function,
        args: Vec<Value>,
        signal: u32,
    ) -> impl Future<Output = Outcome> + use<> {
        let (reply, answer) = oneshot::channel();
        let text = json!([function, args, signal]).to_string();
        let refused = self.backlog.add(text.len()).err();
        if refused.is_none() {
            self.send(Message::Call { text, reply });
        }
        let is_awake = self.backlog.awake.load(Ordering::Relaxed);
        let ended = || Err(Failure::new("the script has ended"));
        async move {
            match refused {
                Some(failure) => Err(failure),
                None if is_awake => moment::receive(answer).await.unwrap_or_else(ended),
                None => answer.await.unwrap_or_else(|_| ended()),
            }
        }
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "it was made for this, and is gone when it is sent"
    )]
    /// Tells the script something.
    pub(super) fn tell(&self, topic: &'static str, number: u32, value: Value) {
        self.send(Message::Tell { topic, number, text: value.to_string() });
    }

    /// Whether one more call would be taken.
    pub(super) fn has_room(&self) -> bool {
        self.backlog.has_room()
    }

    fn send(&self, message: Message) {
        if let Some(inbox) = &self.inbox {
            // It may have ended, and then nobody is there to be told.
            drop(inbox.send(Box::new(message)));
        }
    }

    /// Interrupts whatever runs, and waits for the end of the thread.
    pub(super) async fn end(mut self) -> Result<(), Failure> {
        self.interrupt();
        let Some(ended) = self.ended.take() else { return Ok(()) };
        let outcome = timeout(ENDING, ended).await;
        let stuck =
            || Failure::new("its engine cannot be stopped; the thread of it is left behind");
        outcome.map(drop).map_err(|_| stuck())
    }

    fn interrupt(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.inbox.take());
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.interrupt();
    }
}

impl Backlog {
    fn has_room(&self) -> bool {
        let (calls, bytes) = (&self.calls, &self.bytes);
        calls.load(Ordering::Relaxed) < BACKLOG.0 && bytes.load(Ordering::Relaxed) <= BACKLOG.1
    }

    fn add(&self, bytes: usize) -> Result<(), Failure> {
        if !self.has_room() {
            let calls = self.calls.load(Ordering::Relaxed);
            return Err(Failure::new(format!(
                "it does not keep up: {calls} calls of it are waiting"
            )));
        }
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// The script listens, or falls asleep.
    pub(super) fn set_awake(&self, awake: bool) {
        self.awake.store(awake, Ordering::Relaxed);
    }

    /// One call was heard.
    pub(super) fn remove(&self, bytes: usize) {
        self.calls.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Waits for the end of the top level, and passes on what it says meanwhile.
fn loading(telling: &mpsc::Receiver<Box<Telling>>) -> Result<Exports, Failure> {
    let end = Instant::now() + LOADING;
    loop {
        let rest = end.saturating_duration_since(Instant::now());
        match *telling.recv_timeout(rest).map_err(unloaded)? {
            Telling::Said(request) => console::log(&request.args),
            Telling::Loaded(exports) => return exports,
        }
    }
}

fn unloaded(err: mpsc::RecvTimeoutError) -> Failure {
    Failure::new(match err {
        mpsc::RecvTimeoutError::Timeout => {
            format!("its top level did not end within {} s", LOADING.as_secs())
        }
        mpsc::RecvTimeoutError::Disconnected => "its engine broke".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::{BACKLOG, Backlog};

    #[test]
    fn so_much_may_wait_and_then_no_more_until_something_was_heard() {
        let (calls, bytes) = (Backlog::default(), Backlog::default());
        (0..BACKLOG.0).for_each(|_| calls.add(1).unwrap());
        (0..3).for_each(|_| bytes.add(BACKLOG.1 / 2).unwrap());

        let refused = [calls.add(1), bytes.add(1)].map(|it| it.unwrap_err().to_string());
        calls.remove(1);
        bytes.remove(BACKLOG.1 / 2);

        let expected =
            ["4096", "3"].map(|it| format!("it does not keep up: {it} calls of it are waiting"));
        assert_eq!(refused, expected);
        assert!(calls.add(1).is_ok() && bytes.add(1).is_ok());
    }
}
