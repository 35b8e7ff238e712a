//! What goes beyond: one module per source file.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails, and helpers say why"
)]

mod compaction;
mod approval_rules;
mod cost;
mod hooks;
mod instructions;
mod loop_guard;
mod mcp;
mod script;
mod script_agent;
mod script_attack;
mod script_children;
mod script_config;
mod script_console;
mod script_effects;
mod script_events;
mod script_examples;
mod script_exercises;
mod script_fetch;
mod script_flood;
mod script_hostile;
mod script_leaks;
mod script_limits;
mod script_load;
mod script_meaning;
mod script_model;
mod script_native;
mod script_nesting;
mod script_places;
mod script_prelude;
mod script_reload;
mod script_saves;
mod script_services;
mod script_shell;
mod script_trust;
mod script_types;
mod script_typescript;
mod script_values;
mod script_world;
mod shared;
mod tool_files;

#[path = "../harness/server.rs"]
#[expect(dead_code, reason = "not all that the server can do is needed here")]
mod server;
#[path = "../cli/support.rs"]
#[expect(dead_code, reason = "not all that the tests of the program share is needed here")]
mod support;
#[path = "../cli/terminal.rs"]
#[expect(dead_code, reason = "not all that a terminal can do is needed here")]
mod terminal;
