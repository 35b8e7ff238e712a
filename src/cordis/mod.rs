//! Part 1: the kernel. It does not know that agents exist.

pub mod context;
pub mod effect;
pub mod error;
pub mod events;
pub mod fiber;
pub mod hmr;
pub mod loader;
pub mod module;
pub mod plugin;
pub mod refresh;
pub mod report;
pub mod service;
pub mod waits;
