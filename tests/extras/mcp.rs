//! MCP: servers that start or do not, answer or do not, die, talk too much, and end with the plugin.

mod approval;
mod calls;
mod ending;
mod large;
mod lists;
mod lost;
mod rig;
mod start;
