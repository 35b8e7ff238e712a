//! Text of others on the terminal.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nano_cordis::fuzzing::screen(bytes));
