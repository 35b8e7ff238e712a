//! The program's tests: they run the real binary, through pipes, or in a real terminal where a row is about terminals.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod support;
mod terminal;

mod anytime;
mod arguments;
mod bad_lists;
mod conversation;
mod endurance;
mod interrupts;
mod list_file;
mod one_shot;
mod readme;
mod reload;
mod resume;
mod saves;
mod trust;
mod whole;
