//! `--completions` and `--man`: the command line, for shells and for `man`.
//!
//! Part of `run`.

use std::io;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::harness::cli::arguments::Arguments;

/// The name that the program is called by.
const NAME: &str = "nano-cordis";

/// A script that lets a shell complete the arguments of this program.
pub(super) fn completions(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), NAME, &mut script);
    script
}

/// The page of the manual.
pub(super) fn manual() -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Arguments::command()).render(&mut page)?;
    Ok(page)
}
