//! Part 2: the agent. Every file is one plugin, one service definition, or a named part of a plugin in its folder.
//!
//! What holds throughout:
//!
//! - The kernel imports nothing from here; plugins know each other's services, never each other.
//! - The log is the only memory. Nothing reaches the model that is not in it, and only `append` writes to it.
//! - A turn that is open in the log is closed in it, whatever happens; every call in it has exactly one result.
//! - The loop does not know that approval, persistence or the command line exist. Without their entries in the YAML
//!   file there is no approval, no file and no command line, and the loop is the same.
//! - A tool call runs only if nobody objected and everybody was asked. Whatever fails on the way refuses it.
//! - A capability is a definition (`shell`), a provider (`shell_local`) and a user (`tool_bash`). Provider and user
//!   know the definition only, so one line of the YAML file replaces either.
//! - Every registration has an owner and is undone with it: a tool, a section of the prompt, a listener, a process.
//! - Only `cli` prints to stdout.

use crate::cordis::{Builtins, hmr, plugin};

pub mod env;

pub mod session;

pub mod prompt;

pub mod llm;
pub mod llm_fake;
pub mod llm_openai;

pub mod tools;

pub mod trust;

pub mod agent_loop;

pub mod shell;
pub mod shell_local;
pub mod tool_bash;

pub mod approval;

pub mod persistence;

pub mod cli;

/// The plugins that are compiled in, by the names that entries use.
pub fn builtins() -> Builtins {
    Builtins::new()
        .with("session", plugin(session::apply))
        .with("persistence", plugin(persistence::apply))
        .with("prompt", plugin(prompt::apply))
        .with("llm-fake", plugin(llm_fake::apply))
        .with("llm-openai", plugin(llm_openai::apply))
        .with("tools", plugin(tools::apply))
        .with("shell-local", plugin(shell_local::apply))
        .with("tool-bash", plugin(tool_bash::apply))
        .with("approval", plugin(approval::apply).guard())
        .with("agent-loop", plugin(agent_loop::apply))
        .with("cli", plugin(cli::apply))
        .with("hmr", plugin(hmr::apply))
}
