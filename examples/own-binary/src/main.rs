//! A binary of one's own: nano-cordis with plugins that it does not have.
//!
//! Run `cargo run -- "What day is it?"` in this folder: its `cordis.yml` lists `facts` and `tool-date` beside the
//! built-in ones. `shell-readonly` waits for an entry `{ id: shell, name: shell-readonly }` and one for `tool-bash`.

mod facts;
mod shell_readonly;
mod tool_date;

use std::process::ExitCode;

use nano_cordis::cordis::plugin;
use nano_cordis::harness::builtins;

fn main() -> ExitCode {
    let builtins = builtins();
    let builtins = builtins.with("facts", plugin(facts::apply));
    let builtins = builtins.with("shell-readonly", plugin(shell_readonly::apply));
    nano_cordis::run(builtins.with("tool-date", plugin(tool_date::apply)))
}
