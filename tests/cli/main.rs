//! The program's tests: they run the real binary, through pipes, or in a real terminal where a row is about terminals.
#![expect(missing_docs, reason = "a test is described by its name")]

mod support;
mod terminal;

mod arguments;
mod conversation;
mod interrupts;
mod one_shot;
mod reload;
mod resume;
mod whole;
