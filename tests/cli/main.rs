//! The program's tests: they run the real binary, through pipes, or in a real terminal where a row is about terminals.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod model;
mod support;
mod terminal;

mod anytime;
mod approval;
mod approval_rules;
mod arguments;
mod bad_lists;
mod batch;
mod check;
mod comfort;
mod commands;
mod conversation;
mod endurance;
mod getting_started;
mod hostile;
mod interrupts;
mod json;
mod kills;
mod left;
mod list_file;
mod logs;
mod mcp;
mod network;
mod one_shot;
mod readme;
mod reload;
mod resume;
mod sandbox;
mod saves;
mod states;
mod streaming;
mod trust;
mod types;
mod typing;
mod whole;
