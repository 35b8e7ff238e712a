//! The program's tests: they run the real binary, through pipes, or in a real terminal where a row is about terminals.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod support;
mod terminal;

mod approval;
mod arguments;
mod check;
mod conversation;
mod hostile;
mod interrupts;
mod json;
mod network;
mod one_shot;
mod readme;
mod reload;
mod resume;
mod states;
mod streaming;
mod typing;
mod whole;
