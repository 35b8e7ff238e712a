//! The binary: the built-in plugins, and nothing of its own.
//!
//! A binary with further plugins says `builtins().with("tool-date", plugin(tool_date::apply))` here.

use std::process::ExitCode;

use nano_cordis::{extras::extended, harness::builtins};

fn main() -> ExitCode {
    nano_cordis::run(extended(builtins()))
}
