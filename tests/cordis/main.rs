//! The kernel's tests: one module per source file, each test named by the row of the specification that it proves.
#![expect(missing_docs, reason = "a test is described by its name")]

mod support;

mod config;
mod dependencies;
mod effect;
mod events;
mod hmr;
mod lifecycle;
mod loader;
mod module;
mod property;
mod service;
mod stress;
mod tasks;
mod waits;
