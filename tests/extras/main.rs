//! What goes beyond: one module per source file.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod hooks;
mod script_agent;
mod script_children;
mod script_config;
mod script_effects;
mod script_events;
mod script_exercises;
mod script_fetch;
mod script_model;
mod script_native;
mod script_services;
mod script_shell;
mod script_world;
