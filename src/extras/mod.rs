//! Part 3: what goes beyond. Every file is one optional plugin, or a way to have more of them.
//!
//! Nothing in the parts before knows that these exist: without this folder, and without the entries that name its
//! plugins, the agent is the same.

pub mod script;
