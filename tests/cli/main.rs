//! The program's tests: they run the real binary, through pipes, or in a real terminal where a row is about terminals.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod model;
mod support;
mod terminal;

mod arguments;
mod commands;
mod conversation;
mod interrupts;
mod kills;
mod left;
mod list_file;
mod logs;
mod one_shot;
mod readme;
mod reload;
mod resume;
mod whole;
