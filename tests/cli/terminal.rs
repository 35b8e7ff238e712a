//! A real terminal for the program to run in: what it shows can be waited for, and keys can be typed.

use std::cell::RefCell;
use std::io::Write;
use std::process::Command;
use std::sync::Arc;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::support::{Shown, until};

pub(crate) const CTRL_C: &str = "\x03";
pub(crate) const CTRL_U: &str = "\x15";
pub(crate) const CTRL_D: &str = "\x04";

/// What the shell does before it starts a program that loses its terminal.
pub(crate) const HANGS_UP: &str = "stty eof undef; exec ";

/// A program in a terminal.
pub(crate) struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    shown: Arc<Shown>,
    /// Up to here the test has looked.
    seen: usize,
    /// How the terminal treated keys and output before the program began.
    pub(crate) modes_at_first: String,
    /// Kept open: closing it is hanging up.
    master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    /// Starts the command in a terminal of 80 columns that can do what an editor needs.
    pub(crate) fn start(command: Command) -> Self {
        Self::start_in(80, command)
    }

    /// The same with so many columns.
    pub(crate) fn start_in(columns: u16, mut command: Command) -> Self {
        command.env("TERM", "xterm");
        Self::open(columns, &command)
    }

    /// The same with the environment that the command has.
    pub(crate) fn start_as_it_is(command: &Command) -> Self {
        Self::open(80, command)
    }

    fn open(columns: u16, command: &Command) -> Self {
        let size = PtySize { rows: 24, cols: columns, ..PtySize::default() };
        let pair = native_pty_system().openpty(size).unwrap();
        let modes_at_first = modes(&*pair.master);
        let child = pair.slave.spawn_command(builder(command)).unwrap();
        drop(pair.slave);
        let shown = Shown::of(pair.master.try_clone_reader().unwrap());
        Terminal {
            child,
            keys: pair.master.take_writer().unwrap(),
            shown,
            seen: 0,
            modes_at_first,
            master: pair.master,
        }
    }

    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.type_bytes(keys.as_bytes());
    }

    pub(crate) fn type_bytes(&mut self, bytes: &[u8]) {
        self.keys.write_all(bytes).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until this is shown, after all that was waited for before.
    pub(crate) fn wait_for(&mut self, text: &str) {
        self.seen = self.shown.wait_for(text, self.seen);
    }

    /// All that was shown so far.
    pub(crate) fn all(&self) -> String {
        self.shown.all()
    }

    /// The window changes its size.
    pub(crate) fn resize(&self, columns: u16) {
        self.master.resize(PtySize { rows: 24, cols: columns, ..PtySize::default() }).unwrap();
    }

    pub(crate) fn process_id(&self) -> i32 {
        self.child.process_id().unwrap().try_into().unwrap()
    }

    /// How the terminal treats keys and output when the program has ended.
    pub(crate) fn modes_at_the_end(&self) -> String {
        assert!(self.shown.has_ended(), "it does not end: {}", self.shown.all());
        modes(&*self.master)
    }

    /// The terminal goes away, and the program ends: its exit status. For a command of [`HANGS_UP`], without which the
    /// library presses Ctrl-D before it closes the terminal.
    pub(crate) fn hang_up(self) -> u32 {
        let Terminal { child, mut keys, shown, master, .. } = self;
        shown.leave();
        // What is echoed wakes the reader, which has the terminal open too.
        keys.write_all(b" ").unwrap();
        assert!(shown.has_ended());
        drop((keys, master));
        let child = RefCell::new(child);
        until("the end", || child.borrow_mut().try_wait().unwrap().is_some());
        child.into_inner().wait().unwrap().exit_code()
    }

    /// Waits for the end; gives what was shown, with plain newlines, and the exit status.
    pub(crate) fn ended(mut self) -> (String, u32) {
        let is_over = self.shown.has_ended();
        if !is_over {
            self.child.kill().unwrap();
        }
        let status = self.child.wait().unwrap();
        let all = self.shown.all().replace("\r\n", "\n");
        assert!(is_over, "it does not end: {all}");
        (all, status.exit_code())
    }
}

fn modes(terminal: &dyn MasterPty) -> String {
    let modes = terminal.get_termios().unwrap();
    format!("{modes:?}")
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
