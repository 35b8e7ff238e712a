//! Part of `shell`: the program that is started for a command. Raises `shell/program`.
//!
//! Full-size counterpart: the sandbox policy that comes with each request there.
//! Watch for: whoever puts another program before this one sees no command of the user otherwise than as words to pass on.

use std::{ffi::OsString, rc::Rc};

use super::ShellError;
use crate::cordis::{Context, Waterfall};

/// A program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argv {
    /// A path, or a name that is looked for in the `PATH` of the command.
    pub program: OsString,
    /// What it is given.
    pub args: Vec<OsString>,
}

/// `shell/program`: what is started for a command? A plugin that confines commands puts its own program before what `next`
/// gives. A listener that fails keeps the command from starting.
pub struct ShellProgram;

impl Waterfall for ShellProgram {
    const NAME: &str = "shell/program";
    type Input = Argv;
    type Output = Argv;
}

/// What is started for this command: bash, unless a plugin says otherwise.
pub async fn child_program(ctx: &Context, command: &str) -> Result<Argv, ShellError> {
    // `--`, because a command may begin with a dash.
    let args = ["-c", "--", command].map(OsString::from).to_vec();
    let bash = Rc::new(Argv { program: "bash".into(), args });
    let asked = ctx.waterfall::<ShellProgram>(bash, async |argv: Rc<Argv>| Ok(Argv::clone(&argv)));
    asked.await.map_err(|source| ShellError::Program { source })
}
