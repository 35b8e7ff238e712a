//! What the program's tests share: a folder to run in, lists of plugins, a run through pipes, and the log it left.
//!
//! A test that would hang fails instead, and only processes that a test has started are ended, by their handle.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

/// Longer than anything here takes, even on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// The reply of the built-in script, as documented.
pub(crate) const SCRIPTED_END: &str =
    "assistant> The command ran; that is all for this scripted reply.\n";

/// A line of a script: a command that runs until there is a file `go`.
pub(crate) const WAIT_FOR_GO: &str =
    "{tool: bash, args: {command: 'while [ ! -e go ]; do sleep 0.02; done'}}";

/// The entries of the built-in list, each as the inside of a YAML mapping.
const ENTRIES: [(&str, &str); 11] = [
    ("session", "name: session"),
    ("persistence", "name: persistence"),
    ("prompt", "name: prompt"),
    ("llm", "name: llm-fake"),
    ("tools", "name: tools"),
    ("shell", "name: shell-local"),
    ("bash", "name: tool-bash"),
    ("approval", "name: approval, config: {tools: [bash]}"),
    ("loop", "name: agent-loop"),
    ("cli", "name: cli"),
    ("hmr", "name: hmr, config: {debounceMs: 20}"),
];

/// The built-in list with some entries written otherwise; an empty text leaves one out.
pub(crate) fn list(changes: &[(&str, &str)]) -> String {
    let lines = ENTRIES.iter().map(|(id, usual)| {
        let text = changes.iter().find(|it| it.0 == *id).map_or(*usual, |it| it.1);
        if text.is_empty() { String::new() } else { format!("- {{id: {id}, {text}}}\n") }
    });
    lines.collect()
}

/// The entry of a model that says these lines.
pub(crate) fn script(lines: &str) -> String {
    format!("name: llm-fake, config: {{script: [{lines}]}}")
}

/// The list with a model that says these lines.
pub(crate) fn scripted(lines: &str) -> String {
    list(&[("llm", &script(lines))])
}

/// A folder that the program is started in.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    /// A folder with this `cordis.yml`.
    pub(crate) fn with(list: &str) -> Self {
        let folder = Folder::new();
        folder.save(list);
        folder
    }

    pub(crate) fn save(&self, list: &str) {
        self.write("cordis.yml", list);
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.path().join(name).exists()
    }

    /// The program with these arguments, in this folder, with an environment of its own.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nano-cordis"));
        command.args(arguments);
        self.surround(&mut command);
        command
    }

    /// A line for the shell, in which the program is called by its name.
    pub(crate) fn shell_command(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        let program = env!("CARGO_BIN_EXE_nano-cordis");
        command.args(["-c", &line.replace("nano-cordis", program)]);
        self.surround(&mut command);
        command
    }

    fn surround(&self, command: &mut Command) {
        command.current_dir(self.path()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.path());
    }

    /// Runs it to its end with this on standard input.
    pub(crate) fn run(&self, arguments: &[&str], input: &str) -> Ended {
        let mut running = Running::start(self.command(arguments));
        running.write(input);
        running.end_of_input();
        running.ended()
    }

    /// The saved sessions, oldest first.
    pub(crate) fn sessions(&self) -> Vec<PathBuf> {
        let Ok(files) = fs::read_dir(self.path().join(".nano/sessions")) else { return Vec::new() };
        let mut logs: Vec<_> = files
            .map(|it| it.unwrap().path())
            .filter(|it| it.extension().is_some_and(|it| it == "jsonl"))
            .collect();
        logs.sort();
        logs
    }

    /// The events of the only session.
    pub(crate) fn log(&self) -> Vec<Value> {
        let [log] = &self.sessions()[..] else {
            panic!("there are {} sessions", self.sessions().len())
        };
        events(log)
    }
}

pub(crate) fn events(log: &Path) -> Vec<Value> {
    fs::read_to_string(log).unwrap().lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

pub(crate) fn id_of(log: &Path) -> String {
    log.file_stem().unwrap().to_str().unwrap().to_owned()
}

/// The types of events.
pub(crate) fn kinds(log: &[Value]) -> Vec<&str> {
    log.iter().map(|it| it["type"].as_str().unwrap()).collect()
}

/// What the user said, in order.
pub(crate) fn said(log: &[Value]) -> Vec<&str> {
    texts(log, "user/message")
}

/// The texts of messages of one type, in order.
pub(crate) fn texts<'a>(log: &'a [Value], kind: &str) -> Vec<&'a str> {
    log.iter()
        .filter(|it| it["type"] == kind)
        .map(|it| it["data"]["message"]["content"].as_str().unwrap())
        .collect()
}

/// How the last turn ended.
pub(crate) fn reason(log: &[Value]) -> &str {
    let last = log.last().unwrap();
    assert_eq!(last["type"], "turn/end", "the log ends within a turn");
    last["data"]["reason"].as_str().unwrap()
}

/// Waits until this is so.
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "{what} does not come");
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// What a stream has brought so far, and whether it has ended.
#[derive(Default)]
pub(crate) struct Shown {
    bytes: Mutex<(Vec<u8>, bool)>,
    changed: Condvar,
    is_left: AtomicBool,
}

impl Shown {
    /// Reads a stream to its end on a thread. A terminal ends with an error when nobody has it open any more.
    pub(crate) fn of(mut stream: impl Read + Send + 'static) -> Arc<Self> {
        let shown = Arc::new(Shown::default());
        let sink = shown.clone();
        thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(read @ 1..) = stream.read(&mut chunk) {
                sink.bytes.lock().unwrap().0.extend_from_slice(&chunk[..read]);
                sink.changed.notify_all();
                if sink.is_left.load(Ordering::SeqCst) {
                    break;
                }
            }
            drop(stream);
            sink.bytes.lock().unwrap().1 = true;
            sink.changed.notify_all();
        });
        shown
    }

    /// The next thing that comes is the last one that is read.
    pub(crate) fn leave(&self) {
        self.is_left.store(true, Ordering::SeqCst);
    }

    pub(crate) fn all(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap().0).into_owned()
    }

    /// Waits for this text behind position `from`, and gives the position behind the text.
    pub(crate) fn wait_for(&self, text: &str, from: usize) -> usize {
        let wanted = text.as_bytes();
        let found = self.wait(|bytes, _| {
            let at = bytes[from..].windows(wanted.len()).position(|it| it == wanted);
            at.map(|at| from + at + wanted.len())
        });
        found.unwrap_or_else(|| {
            panic!("{text:?} does not come after byte {from} of {:?}", self.all())
        })
    }

    /// Waits for the end.
    pub(crate) fn has_ended(&self) -> bool {
        self.wait(|_, is_over| is_over.then_some(())).is_some()
    }

    fn wait<T>(&self, mut found: impl FnMut(&[u8], bool) -> Option<T>) -> Option<T> {
        let mut result = None;
        let guard = self.bytes.lock().unwrap();
        let waited = self.changed.wait_timeout_while(guard, LIMIT, |(bytes, is_over)| {
            result = found(bytes, *is_over);
            result.is_none() && !*is_over
        });
        drop(waited);
        result
    }
}

/// A program that runs, with pipes at its three streams.
pub(crate) struct Running {
    child: Child,
    out: Arc<Shown>,
    err: Arc<Shown>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) status: ExitStatus,
}

impl Ended {
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("it was killed: {self:?}"))
    }
}

impl Running {
    pub(crate) fn start(command: Command) -> Self {
        let mut child = piped(command);
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        Running { child, out: Shown::of(out), err: Shown::of(err) }
    }

    /// The same; but the reader of its output goes away before it has written anything.
    pub(crate) fn start_unread(command: Command) -> Self {
        let mut child = piped(command);
        drop(child.stdout.take());
        let err = child.stderr.take().unwrap();
        Running { child, out: Shown::of(std::io::empty()), err: Shown::of(err) }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The same; but the reader goes away when it has read something.
    pub(crate) fn start_and_leave(command: Command) -> Self {
        let running = Running::start(command);
        running.out.leave();
        running
    }

    pub(crate) fn wait_until_left(&self) {
        assert!(self.out.has_ended());
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    pub(crate) fn write(&mut self, text: &str) {
        // A program that has ended already does not read; what it said is what the test looks at.
        let _closed = self.child.stdin.as_mut().unwrap().write_all(text.as_bytes());
    }

    pub(crate) fn end_of_input(&mut self) {
        self.child.stdin.take();
    }

    pub(crate) fn wait_for_output(&self, text: &str) {
        self.out.wait_for(text, 0);
    }

    pub(crate) fn wait_for_error(&self, text: &str) {
        self.err.wait_for(text, 0);
    }

    /// Waits until something was said so many times.
    pub(crate) fn wait_for_errors(&self, text: &str, times: usize) {
        (0..times).fold(0, |from, _| self.err.wait_for(text, from));
    }

    /// Ends it as a power cut would, and gives what it printed until then.
    pub(crate) fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        assert!(self.out.has_ended());
        self.out.all()
    }

    /// Waits until something was written so many times.
    pub(crate) fn wait_for_outputs(&self, text: &str, times: usize) {
        (0..times).fold(0, |from, _| self.out.wait_for(text, from));
    }

    /// What it has written so far.
    pub(crate) fn output(&self) -> String {
        self.out.all()
    }

    /// What it has complained of so far.
    pub(crate) fn errors(&self) -> String {
        self.err.all()
    }

    /// Waits for its end while the pipe at its input stays open and silent.
    pub(crate) fn ended_with_input_open(mut self) -> Ended {
        let input = self.child.stdin.take();
        let ended = self.ended();
        drop(input);
        ended
    }

    /// Waits for its end; the streams end with it.
    pub(crate) fn ended(mut self) -> Ended {
        let is_over = self.out.has_ended() && self.err.has_ended();
        if !is_over {
            self.child.kill().unwrap();
        }
        let status = self.child.wait().unwrap();
        let ended = Ended { out: self.out.all(), err: self.err.all(), status };
        assert!(is_over, "it did not end: {ended:?}");
        ended
    }
}

fn piped(mut command: Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}
