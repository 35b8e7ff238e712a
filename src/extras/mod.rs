//! Part 3: what goes beyond. Every file is one optional plugin, or a way to have more of them; without this folder, and
//! without the entries that name its plugins, the agent is the same.
//!
//! What holds throughout:
//!
//! - Nothing in the kernel or the agent imports from here. A plugin that is not in the list costs nothing.
//! - What goes beyond takes nothing away: no plugin here lets a call run that another one would have refused.

use crate::cordis::{Builtins, plugin};

pub mod compaction;
pub mod approval_rules;
mod asking;
pub mod cost;
pub mod hooks;
pub mod instructions;
pub mod loop_guard;
pub mod mcp;
pub mod sandbox;
pub mod script;
pub mod tool_files;

/// The built-in plugins with those of this folder.
pub fn extended(builtins: Builtins) -> Builtins {
    builtins
        .with("mcp", plugin(mcp::apply))
        .with("hooks", plugin(hooks::apply).guard())
        .with("approval-rules", plugin(approval_rules::apply).guard())
        .with("sandbox", plugin(sandbox::apply).guard())
        .with("cost", plugin(cost::apply))
        .with("compaction", plugin(compaction::apply))
        .with("instructions", plugin(instructions::apply))
        .with("loop-guard", plugin(loop_guard::apply))
        .with("tool-files", plugin(tool_files::apply))
}
