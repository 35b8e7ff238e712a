//! The kernel's tests: one module per source file, each test named by the row of the specification that it proves.
#![expect(clippy::unwrap_used, reason = "in a test the place of the failure says enough")]

mod support;

mod config;
mod dependencies;
mod effect;
mod events;
mod hmr;
mod lifecycle;
mod loader;
mod module;
mod panics;
mod property;
mod service;
mod stress;
mod tasks;
mod waits;
