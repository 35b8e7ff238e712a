//! Hooks: commands that run before and after tools and at the end of a turn.

mod after;
mod before;
mod bounds;
mod decisions;
mod end;
mod example;
mod program;
pub(crate) mod rig;
mod rules;
