//! Standard input, read by one thread and only when a line is wanted.
//!
//! Part of `cli`. On a capable terminal a line comes through the editor; everywhere else bytes are read up to a newline.
//! An answer is never taken from the editor: the thread first takes away what was typed before the question, then shows
//! the question, then reads.
//! Watch for: nothing that was typed or piped is ever lost. A reader that is given up leaves the rest of the line where
//! the next one finds it.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{LocalFlags, SetArg, SpecialCharacterIndices, tcgetattr, tcsetattr};
use tokio::sync::mpsc as to_main;

use super::editor::LineEditor;
use super::screen::{Cursor, Stream};

/// Requests under way: one is being served, and one may follow it after that was given up.
const REQUESTS: usize = 4;

/// What the thread is asked for.
pub(super) enum Want {
    /// A line through the editor, below which the prompt and what is typed already stand.
    Edit { prompt: String, typed: String },
    /// A plain line.
    Line,
    /// A plain line that came after this question was shown.
    Answer { question: String, on: Stream },
    /// Everything up to the end of input; afterwards lines come from `then`, if there is such a terminal.
    All { then: Option<File> },
}

/// What the thread has to say. Each request gets one answer; `Typed` may come before it.
#[derive(Debug)]
pub(super) enum Got {
    /// A line without its newline, or all of the input.
    Text(Vec<u8>),
    /// What had been typed before a question was shown.
    Typed(Vec<u8>),
    /// Ctrl-C, pressed in the editor.
    Interrupt,
    /// A line in the editor that was not UTF-8, which the editor cannot give.
    Garbled,
    /// The request was given up before a line was complete.
    GivenUp,
    /// The end of input.
    End,
    /// The input cannot be read, or the question not be shown: why.
    Broken(String),
}

/// The end of the thread that the program holds.
pub(super) struct Stdin {
    requests: SyncSender<(u64, Want)>,
    answers: tokio::sync::Mutex<Answers>,
    wanted: Arc<AtomicU64>,
    wake: PipeWriter,
}

impl Stdin {
    /// Starts the thread. `editor` is given where lines can be edited.
    pub(super) fn start(
        is_terminal: bool,
        cursor: Cursor,
        editor: Option<LineEditor>,
    ) -> io::Result<Self> {
        let (requests, rx) = mpsc::sync_channel(REQUESTS);
        let (tx, answers) = to_main::channel(2 * REQUESTS);
        let (woken, wake) = io::pipe()?;
        let wanted = Arc::new(AtomicU64::new(0));
        let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let (rest, still_wanted) = (Vec::new(), wanted.clone());
        let source = Source { input, is_terminal, rest, woken, wanted: still_wanted, cursor };
        std::thread::Builder::new()
            .name("stdin".into())
            .spawn(move || serve(source, editor, &rx, &tx))?;
        let answers = tokio::sync::Mutex::new(Answers { said: answers, next: None });
        Ok(Stdin { requests, answers, wanted, wake })
    }

    /// Asks for something and says under which number the answer will come.
    pub(super) fn want(&self, want: Want) -> u64 {
        let id = self.wanted.fetch_add(1, Ordering::SeqCst) + 1;
        // The thread ends only with the process, so the send cannot fail.
        let _sent = self.requests.send((id, want));
        id
    }

    /// The next thing the thread says. A signal that came before it is heard before it.
    pub(super) async fn next(&self) -> (u64, Got) {
        let mut answers = self.answers.lock().await;
        if answers.next.is_none() {
            answers.next = Some(answers.said.recv().await.unwrap_or((0, Got::End)));
        }
        // The runtime looks for signals when a task gives way, and what has arrived is kept if this is dropped here.
        tokio::task::yield_now().await;
        answers.next.take().unwrap_or((0, Got::End))
    }

    /// What the thread has said already, if nobody waits for it.
    pub(super) fn said(&self) -> Option<(u64, Got)> {
        let mut answers = self.answers.try_lock().ok()?;
        answers.next.take().or_else(|| answers.said.try_recv().ok())
    }

    /// Tells the thread not to wait for request `id` any longer. One that was made after it stays wanted.
    pub(super) fn give_up(&self, id: u64) {
        let _superseded =
            self.wanted.compare_exchange(id, id + 1, Ordering::SeqCst, Ordering::SeqCst);
        let _woken = (&self.wake).write(b".");
    }
}

/// What the thread has said and nobody has taken yet.
struct Answers {
    said: to_main::Receiver<(u64, Got)>,
    next: Option<(u64, Got)>,
}

/// The thread: serves one request after the other.
fn serve(
    mut source: Source,
    mut editor: Option<LineEditor>,
    requests: &Receiver<(u64, Want)>,
    answers: &to_main::Sender<(u64, Got)>,
) {
    for (id, want) in requests {
        let tell = |got| drop(answers.blocking_send((id, got)));
        let got = match (want, &mut editor) {
            (Want::Edit { prompt, typed }, Some(editor)) => Ok(editor.edit(&prompt, &typed)),
            (Want::Edit { .. } | Want::Line, _) => source.line(id),
            (Want::Answer { question, on }, _) => source.answer(id, &question, on, &tell),
            (Want::All { then }, _) => source.all(then),
        };
        let broken = |err| Got::Broken(format!("standard input cannot be read: {err}"));
        tell(got.unwrap_or_else(broken));
    }
}

/// The bytes of stdin, or of the terminal that stands in for it.
struct Source {
    input: File,
    is_terminal: bool,
    /// Read, but not yet part of a line that was asked for.
    rest: Vec<u8>,
    woken: PipeReader,
    /// The number of the request that still has somebody waiting for it.
    wanted: Arc<AtomicU64>,
    cursor: Cursor,
}

impl Source {
    /// The next line; at the end of input what is left counts as one.
    fn line(&mut self, id: u64) -> io::Result<Got> {
        let mut searched = 0;
        loop {
            if let Some(at) = self.rest[searched..].iter().position(|it| *it == b'\n') {
                let line = self.rest.drain(..=searched + at).collect();
                return Ok(Got::Text(without_newline(line)));
            }
            searched = self.rest.len();
            if !self.wait(id)? {
                return Ok(Got::GivenUp);
            }
            if self.read()? == 0 {
                let rest = std::mem::take(&mut self.rest);
                return Ok(if rest.is_empty() { Got::End } else { Got::Text(rest) });
            }
        }
    }

    /// A line that came after the question was shown. An unseen question has no answer.
    fn answer(
        &mut self,
        id: u64,
        question: &str,
        on: Stream,
        tell: &impl Fn(Got),
    ) -> io::Result<Got> {
        let cursor = self.cursor.clone();
        let prepare = || {
            let is_wanted = self.wanted.load(Ordering::SeqCst) == id;
            if is_wanted && self.is_terminal {
                tell(Got::Typed(self.typed_so_far()?));
            }
            Ok(is_wanted)
        };
        match cursor.ask(on, question, prepare) {
            Ok(true) => self.line(id),
            Ok(false) => Ok(Got::GivenUp),
            Err(err) => Ok(Got::Broken(format!("the question cannot be shown: {err}"))),
        }
    }

    /// Everything, newlines at the end aside, as a shell's `$(…)` does it.
    fn all(&mut self, then: Option<File>) -> io::Result<Got> {
        while self.read()? > 0 {}
        let mut text = std::mem::take(&mut self.rest);
        while matches!(text.last(), Some(b'\n' | b'\r')) {
            text.pop();
        }
        if let Some(terminal) = then {
            (self.input, self.is_terminal) = (terminal, true);
        }
        Ok(Got::Text(text))
    }

    /// Takes away what was typed and not read yet, an unfinished line included, which only raw mode gives out.
    fn typed_so_far(&mut self) -> io::Result<Vec<u8>> {
        let cooked = tcgetattr(&self.input)?;
        let mut raw = cooked.clone();
        raw.local_flags.remove(LocalFlags::ICANON);
        raw.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
        raw.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        tcsetattr(&self.input, SetArg::TCSANOW, &raw)?;
        let emptied = loop {
            match self.read() {
                Ok(0) => break Ok(()),
                Ok(_) => {}
                Err(err) => break Err(err),
            }
        };
        tcsetattr(&self.input, SetArg::TCSANOW, &cooked)?;
        emptied.map(|()| std::mem::take(&mut self.rest))
    }

    /// Whether there is something to read; `false` if nobody waits for request `id` any longer.
    fn wait(&mut self, id: u64) -> io::Result<bool> {
        loop {
            if self.wanted.load(Ordering::SeqCst) != id {
                return Ok(false);
            }
            let mut both = [readable(self.input.as_fd()), readable(self.woken.as_fd())];
            match poll(&mut both, PollTimeout::NONE) {
                Err(nix::errno::Errno::EINTR) => continue,
                other => other?,
            };
            let [input, woken] = both.map(|it| it.any().unwrap_or(true));
            if woken {
                let _bytes = self.woken.read(&mut [0; 16])?;
            } else if input {
                return Ok(true);
            }
        }
    }

    fn read(&mut self) -> io::Result<usize> {
        let mut chunk = [0; 8192];
        loop {
            match self.input.read(&mut chunk) {
                Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    let read = read?;
                    self.rest.extend_from_slice(&chunk[..read]);
                    return Ok(read);
                }
            }
        }
    }
}

fn readable(fd: BorrowedFd<'_>) -> PollFd<'_> {
    PollFd::new(fd, PollFlags::POLLIN)
}

fn without_newline(mut line: Vec<u8>) -> Vec<u8> {
    line.pop();
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    line
}
