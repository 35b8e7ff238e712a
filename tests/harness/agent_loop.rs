//! Turns and steps: what the loop logs, sends and closes.

mod around;
mod cancel;
pub(crate) mod composed;
mod endings;
mod endurance;
mod header;
mod ready;
pub(crate) mod rig;
mod secrecy;
mod stopping;
mod turns;
mod whole;
mod wire;
