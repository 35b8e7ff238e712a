//! Part of `script`: the handle of an engine, and the thread that it runs on.
//!
//! The values of an engine cannot leave its thread. So each plugin has one of each, and talks with the rest by messages:
//! what comes in is a [`Message`], what it wants done is a [`Request`]. Several calls may be under way at a time.
//! Watch for: the thread of the agent never waits for a script, but once: while the script is loaded. So a script may
//! wait for the agent.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Sender},
    },
    thread,
};

use serde_json::Value;
use tokio::sync::{mpsc as requests, oneshot};

use super::{failure::Failure, machine::Machine, program::Program};

/// Names a function of the script that the agent may call.
pub(super) type Function = u32;

/// What a call came to.
pub(super) type Outcome = Result<Value, Failure>;

/// What the agent says to the script.
pub(super) enum Message {
    /// Runs a function; the answer may take its time.
    Call {
        /// Which.
        function: Function,
        /// Its arguments.
        args: Vec<Value>,
        /// Gets what it returns, or what the promise that it returns comes to.
        reply: oneshot::Sender<Outcome>,
    },
    /// Something that has no answer: a promise is settled, a function no longer needed, a call to be given up.
    Tell {
        /// What it is about, as the prelude calls it.
        topic: &'static str,
        /// Whom it concerns.
        number: u32,
        /// And what there is to say.
        value: Value,
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

/// The handle of an engine. The engine ends when this is dropped.
pub(super) struct Engine {
    inbox: Sender<Message>,
    stop: Arc<AtomicBool>,
    ended: oneshot::Receiver<()>,
}

/// As many requests may wait until the script has to.
const WAITING: usize = 64;
/// The stack of the thread. What is not used of it takes no memory.
const STACK: usize = 2 << 20;

impl Engine {
    /// Runs the top level of a script, and waits for its end.
    pub(super) fn load(
        program: Arc<Program>,
    ) -> Result<(Self, Exports, requests::Receiver<Request>), Failure> {
        let (inbox, messages) = mpsc::channel();
        let (outbox, requests) = requests::channel(WAITING);
        let (loaded, exports) = mpsc::channel();
        let (alive, ended) = oneshot::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = stop.clone();
        let life = move || {
            match Machine::load(program, is_stopped, outbox) {
                Ok((machine, exports)) => {
                    drop(loaded.send(Ok(exports)));
                    machine.serve(&messages);
                }
                Err(failure) => drop(loaded.send(Err(failure))),
            }
            drop(alive);
        };
        thread::Builder::new()
            .name("script".into())
            .stack_size(STACK)
            .spawn(life)
            .map_err(|err| Failure::new(format!("no thread could be started: {err}")))?;
        let exports = exports.recv().unwrap_or_else(|_| Err(Failure::new("the engine broke")))?;
        Ok((Self { inbox, stop, ended }, exports, requests))
    }

    /// Calls a function of the script. Dropping the future forgets the answer, not the call.
    pub(super) fn call(
        &self,
        function: Function,
        args: Vec<Value>,
    ) -> impl Future<Output = Outcome> + use<> {
        let (reply, answer) = oneshot::channel();
        drop(self.inbox.send(Message::Call { function, args, reply }));
        async { answer.await.unwrap_or_else(|_| Err(Failure::new("the script has ended"))) }
    }

    /// Tells the script something.
    pub(super) fn tell(&self, topic: &'static str, number: u32, value: Value) {
        drop(self.inbox.send(Message::Tell { topic, number, value }));
    }

    /// Interrupts whatever runs, and waits for the end of the thread.
    pub(super) async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.inbox);
        drop(self.ended.await);
    }
}
