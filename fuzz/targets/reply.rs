//! The body of an answer into a reply.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nano_cordis::fuzzing::reply(bytes));
