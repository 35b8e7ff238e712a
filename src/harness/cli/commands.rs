//! Commands of a conversation: lines that begin with `/` and the name of one.
//!
//! Part of `cli`. The table belongs to the console, so that any plugin can add a command, which goes with it.
//! Watch for: only a person types commands. In a pipe every line is a turn, whatever it begins with; and a line that
//! begins with a path, or with a blank, is a turn for a person, too.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
};

use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::console::Console;
use crate::{
    cordis::{self, BoxError, LocalBoxFuture, Svc, Undo},
    harness::session::Session,
};

/// A command.
pub struct Command {
    name: String,
    help: String,
    run: Box<Run>,
}

type Run = dyn Fn(Invocation) -> LocalBoxFuture<'static, Result<String, BoxError>>;

/// One use of a command.
pub struct Invocation {
    /// What stands behind its name, without blanks around.
    pub arguments: String,
    /// The conversation in which it was typed.
    pub session: Rc<Session>,
    /// Pulled by Ctrl-C.
    pub cancel: CancellationToken,
}

impl Command {
    /// A command `/name`. `help` is one line; what it takes may stand first in it, in angle brackets. What `run` gives is
    /// shown; it may be empty.
    pub fn new(
        name: impl Into<String>,
        help: impl Into<String>,
        run: impl AsyncFn(Invocation) -> Result<String, BoxError> + 'static,
    ) -> Self {
        let run = Rc::new(run);
        let run = Box::new(move |it| -> LocalBoxFuture<'static, _> {
            let run = run.clone();
            Box::pin(async move { run(it).await })
        });
        Self { name: name.into(), help: help.into(), run }
    }

    /// With the `/`.
    pub(super) fn name(&self) -> String {
        format!("/{}", self.name)
    }

    pub(super) fn run(&self, it: Invocation) -> LocalBoxFuture<'static, Result<String, BoxError>> {
        (self.run)(it)
    }
}

/// Why there cannot be such a command.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum CommandError {
    #[error("there is a command /{name} already")]
    Duplicate { name: String },
    #[error("`{name}` is no name for a command: small letters, digits and `-`")]
    Name { name: String },
    #[error(transparent)]
    Kernel(#[from] cordis::Error),
}

/// What a typed line is.
pub(super) enum Typed {
    /// Text for the model.
    Turn,
    /// A command, and what stands behind its name.
    Command(Rc<Command>, String),
    /// It looks like a command; there is none of this name.
    Unknown(String),
}

/// The commands that there are.
#[derive(Default)]
pub(super) struct Commands {
    table: RefCell<BTreeMap<String, Rc<Command>>>,
    /// The names, for the editor, which has a thread of its own.
    names: Names,
}

/// Names of commands, with the `/`.
#[derive(Clone, Default)]
pub(super) struct Names(Arc<Mutex<Vec<String>>>);

impl Names {
    pub(super) fn beginning_with(&self, typed: &str) -> Vec<String> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.iter().filter(|it| it.starts_with(typed)).cloned().collect()
    }
}

impl Commands {
    pub(super) fn names(&self) -> Names {
        self.names.clone()
    }

    /// One line a command, by name.
    pub(super) fn help(&self) -> String {
        let table = self.table.borrow();
        let rows = table.values().map(|it| format!("/{:10} {}\n", it.name, it.help));
        rows.collect()
    }

    fn read(&self, line: &str) -> Typed {
        let Some(rest) = line.strip_prefix('/') else { return Typed::Turn };
        let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        match self.table.borrow().get(name) {
            Some(command) => Typed::Command(command.clone(), arguments.trim().to_owned()),
            None if is_name(name) => Typed::Unknown(name.to_owned()),
            None => Typed::Turn,
        }
    }

    fn renew_names(&self) {
        let names = self.table.borrow().keys().map(|it| format!("/{it}")).collect();
        *self.names.0.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }
}

impl Svc<Console> {
    /// Adds a command that lives as long as the plugin that calls this.
    pub fn add_command(&self, command: Command) -> Result<Undo, CommandError> {
        let (console, name) = (self.shared(), command.name.clone());
        if !is_name(&name) {
            return Err(CommandError::Name { name });
        }
        if self.commands.table.borrow().contains_key(&name) {
            return Err(CommandError::Duplicate { name });
        }
        Ok(self.ctx().effect(|| {
            console.commands.table.borrow_mut().insert(name.clone(), Rc::new(command));
            console.commands.renew_names();
            move || {
                let gone = console.commands.table.borrow_mut().remove(&name);
                console.commands.renew_names();
                drop(gone);
            }
        })?)
    }
}

impl Console {
    /// What a line is that was entered at the prompt.
    pub(super) fn typed(&self, line: &str) -> Typed {
        if self.is_terminal() { self.commands.read(line) } else { Typed::Turn }
    }
}

fn is_name(name: &str) -> bool {
    let letter = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    (1..=32).contains(&name.len()) && name.bytes().all(letter)
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::{Command, Commands, Typed};

    fn read(line: &str) -> String {
        let commands = Commands::default();
        let command = Command::new("model", "", async |_| Ok(String::new()));
        commands.table.borrow_mut().insert("model".into(), Rc::new(command));
        match commands.read(line) {
            Typed::Turn => "turn".into(),
            Typed::Command(command, arguments) => format!("{}:{arguments}", command.name),
            Typed::Unknown(name) => format!("unknown {name}"),
        }
    }

    #[test]
    fn a_command_is_a_slash_and_a_name_at_the_very_beginning() {
        let lines = ["/model", "/model  a b ", "/modle x", "/help"];
        let read_as = ["model:", "model:a b", "unknown modle", "unknown help"];

        assert_eq!(lines.map(read), read_as);
    }

    #[test]
    fn a_path_a_comment_and_a_line_that_begins_with_a_blank_are_turns() {
        let lines = [" /model", "/etc/hosts is what?", "// why", "/", "/Users", "say /model", "/é"];

        assert_eq!(lines.map(read), ["turn"; 7]);
    }
}
