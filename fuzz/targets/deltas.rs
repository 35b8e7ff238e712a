//! Chunks of a stream into a reply with its tool calls.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nano_cordis::fuzzing::deltas(bytes));
