//! Part 1: the kernel. It does not know that agents exist.

pub mod context;
pub mod plugin;
pub mod fiber;
pub mod effect;
pub mod refresh;
pub mod events;
pub mod service;
pub mod loader;
pub mod module;
pub mod hmr;
pub mod error;
pub mod report;
pub mod waits;
