//! The two pipes of a server: one JSON message a line, each way.
//!
//! Watch for: the SDK has such a transport too. It drops a line that is too long and leaves whoever waits for it waiting.
//! Here a flood ends the connection with the reason.

use std::{
    io::{self, ErrorKind},
    sync::{Arc, Mutex as SyncMutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{ChildStdin, ChildStdout},
    select,
    sync::Mutex,
};
use tokio_util::sync::CancellationToken;

use super::wire::{self, Heard};

/// The longest message: a large picture fits.
const LINE: usize = 16 << 20;
/// So much may come within a minute that answers nothing.
const UNASKED: usize = 64 << 20;
const MINUTE: Duration = Duration::from_mins(1);
/// So much of what is no message is remembered, for the message about it.
const HEARD: usize = 300;

/// What both ends of a connection know of it.
#[derive(Clone, Default)]
pub(super) struct Flow {
    /// Pulled when the connection is over, by whichever end.
    pub(super) over: CancellationToken,
    state: Arc<SyncMutex<State>>,
}

#[derive(Default)]
struct State {
    unasked: usize,
    since: Option<Instant>,
    heard: Vec<u8>,
    broken: Option<String>,
}

impl Flow {
    /// The beginning of the last line that was no message.
    pub(super) fn heard(&self) -> String {
        String::from_utf8_lossy(&self.state().heard).into_owned()
    }

    /// Why this side ended the connection, if it did.
    pub(super) fn broken(&self) -> Option<String> {
        self.state().broken.clone()
    }

    /// Something came that was asked for.
    pub(super) fn answered(&self) {
        self.state().unasked = 0;
    }

    /// Counts bytes that came; false if they are too many.
    fn admits(&self, count: usize, line: usize) -> bool {
        let mut state = self.state();
        if state.since.is_none_or(|it| it.elapsed() > MINUTE) {
            (state.since, state.unasked) = (Some(Instant::now()), 0);
        }
        state.unasked += count;
        let broken = match () {
            () if line > LINE => format!("it sent a line of more than {} MiB", LINE >> 20),
            () if state.unasked > UNASKED => {
                format!("it sent {} MiB that answer nothing", UNASKED >> 20)
            }
            () => return true,
        };
        state.broken = Some(broken);
        false
    }

    fn hear(&self, line: &[u8]) {
        self.state().heard = line[..line.len().min(HEARD)].to_vec();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The way to a server.
pub(super) type Stdin = Arc<Mutex<ChildStdin>>;

/// The end of this program.
pub(super) struct Pipe {
    stdout: BufReader<ChildStdout>,
    /// What has come of the next line.
    line: Vec<u8>,
    stdin: Stdin,
    flow: Flow,
    /// The greeting was answered.
    has_begun: bool,
}

impl Pipe {
    pub(super) fn new(stdin: ChildStdin, stdout: ChildStdout, flow: Flow) -> Self {
        let (stdout, stdin) = (BufReader::new(stdout), Arc::new(Mutex::new(stdin)));
        Self { stdout, line: Vec::new(), stdin, flow, has_begun: false }
    }

    /// The input of the server, which stays open for as long as somebody has this: one that ends while it is open has
    /// ended by itself.
    pub(super) fn stdin(&self) -> Stdin {
        Arc::clone(&self.stdin)
    }

    /// The next line, or nothing if there will be none. What was read stays when the future is dropped.
    async fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            let bytes = self.stdout.fill_buf().await.ok().filter(|it| !it.is_empty())?;
            let end = bytes.iter().position(|it| *it == b'\n');
            let count = end.map_or(bytes.len(), |it| it + 1);
            self.line.extend_from_slice(&bytes[..count]);
            self.stdout.consume(count);
            if !self.flow.admits(count, self.line.len()) {
                self.flow.hear(&self.line);
                return None;
            }
            if end.is_some() {
                return Some(std::mem::take(&mut self.line));
            }
        }
    }
}

impl Transport<RoleClient> for Pipe {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (stdin, over) = (Arc::clone(&self.stdin), self.flow.over.clone());
        async move {
            let line = wire::line(message)?;
            let write = async {
                let mut stdin = stdin.lock().await;
                stdin.write_all(&line).await?;
                stdin.flush().await
            };
            // A server that does not read must not hold up the end.
            over.run_until_cancelled(write).await.unwrap_or(Err(ErrorKind::NotConnected.into()))
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let over = self.flow.over.clone();
        loop {
            let line = select! {
                biased;
                () = over.cancelled() => None,
                line = self.next_line() => line,
            };
            // The end of one direction is the end of both.
            let Some(line) = line else {
                over.cancel();
                return None;
            };
            match wire::read(&line, self.has_begun) {
                Heard::Message(message) => {
                    self.has_begun |= matches!(*message, ServerJsonRpcMessage::Response(_));
                    return Some(*message);
                }
                Heard::Nothing => {}
                Heard::Noise => {
                    self.flow.hear(&line);
                    tracing::debug!("no message: {}", self.flow.heard());
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.flow.over.cancel();
        Ok(())
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.flow.over.cancel();
    }
}
