//! The log of a session.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nano_cordis::fuzzing::log(bytes));
