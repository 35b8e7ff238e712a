//! Bytes into the events of a stream.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nano_cordis::fuzzing::events(bytes));
