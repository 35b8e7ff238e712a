//! A plugin kernel, and a small AI agent built on it.

pub mod cordis;
pub mod harness;
