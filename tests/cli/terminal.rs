//! A real terminal for the program to run in: what it shows can be waited for, and keys can be typed.

use std::io::{Read, Write};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::support::LIMIT;

pub(crate) const CTRL_C: &str = "\x03";
pub(crate) const CTRL_D: &str = "\x04";

/// A program in a terminal.
pub(crate) struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    shown: Arc<Shown>,
    /// Up to here the test has looked.
    seen: usize,
    /// Kept open: closing it is hanging up.
    master: Option<Box<dyn MasterPty + Send>>,
}

#[derive(Default)]
struct Shown {
    bytes: Mutex<(Vec<u8>, bool)>,
    changed: Condvar,
}

impl Terminal {
    /// Starts the command in a terminal of 80 columns that can do what an editor needs.
    pub(crate) fn start(mut command: Command) -> Self {
        command.env("TERM", "xterm");
        Self::start_as_it_is(&command)
    }

    /// The same with the environment that the command has.
    pub(crate) fn start_as_it_is(command: &Command) -> Self {
        let size = PtySize { rows: 24, cols: 80, ..PtySize::default() };
        let pair = native_pty_system().openpty(size).unwrap();
        let child = pair.slave.spawn_command(builder(command)).unwrap();
        drop(pair.slave);
        let shown = Arc::new(Shown::default());
        let (reader, sink) = (pair.master.try_clone_reader().unwrap(), shown.clone());
        thread::spawn(move || sink.collect(reader));
        Terminal { child, keys: pair.master.take_writer().unwrap(), shown, seen: 0, master: Some(pair.master) }
    }

    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until this is shown, after all that was waited for before.
    pub(crate) fn wait_for(&mut self, text: &str) {
        let seen = self.seen;
        let found = self.shown.wait(|bytes, _| find(&bytes[seen..], text.as_bytes()).map(|at| seen + at + text.len()));
        self.seen = found.unwrap_or_else(|| panic!("{text:?} does not come after {:?}", &self.all()[..]));
    }

    /// All that was shown, as the terminal got it.
    pub(crate) fn all(&self) -> String {
        String::from_utf8_lossy(&self.shown.bytes.lock().unwrap().0).into_owned()
    }

    pub(crate) fn process_id(&self) -> i32 {
        self.child.process_id().unwrap().try_into().unwrap()
    }

    /// The terminal goes away.
    pub(crate) fn hang_up(&mut self) {
        self.master = None;
        self.keys = Box::new(std::io::sink());
    }

    /// Waits for the end; gives what was shown, with plain newlines, and the exit status.
    pub(crate) fn ended(mut self) -> (String, u32) {
        let is_over = self.shown.wait(|_, is_over| is_over.then_some(()));
        if is_over.is_none() {
            self.child.kill().unwrap();
        }
        let status = self.child.wait().unwrap();
        let all = self.all().replace("\r\n", "\n");
        assert!(is_over.is_some(), "it does not end: {all}");
        (all, status.exit_code())
    }
}

impl Shown {
    fn collect(&self, mut reader: Box<dyn Read + Send>) {
        let mut chunk = [0; 4096];
        // The terminal ends with an error when nobody has it open any more.
        while let Ok(read @ 1..) = reader.read(&mut chunk) {
            self.bytes.lock().unwrap().0.extend_from_slice(&chunk[..read]);
            self.changed.notify_all();
        }
        self.bytes.lock().unwrap().1 = true;
        self.changed.notify_all();
    }

    fn wait<T>(&self, mut found: impl FnMut(&[u8], bool) -> Option<T>) -> Option<T> {
        let mut result = None;
        let guard = self.bytes.lock().unwrap();
        let wait = self.changed.wait_timeout_while(guard, LIMIT, |(bytes, is_over)| {
            result = found(bytes, *is_over);
            result.is_none()
        });
        drop(wait);
        result
    }
}

fn builder(command: &Command) -> CommandBuilder {
    let mut builder = CommandBuilder::new(command.get_program());
    builder.args(command.get_args());
    builder.cwd(command.get_current_dir().unwrap());
    builder.env_clear();
    for (name, value) in command.get_envs() {
        builder.env(name, value.unwrap());
    }
    builder
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|it| it == wanted)
}
