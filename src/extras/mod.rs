//! Part 3: what goes beyond. Every file is one optional plugin; deleting the folder and its entries leaves a working
//! agent.
//!
//! Nothing in the kernel or the agent imports from here. A plugin that is not in the list costs nothing.

use crate::cordis::{Builtins, plugin};

pub mod mcp;

/// The built-in plugins with those of this folder.
pub fn extended(builtins: Builtins) -> Builtins {
    builtins.with("mcp", plugin(mcp::apply))
}
