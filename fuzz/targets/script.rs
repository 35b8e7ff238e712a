//! A script, as TypeScript and as JavaScript.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nano_cordis::fuzzing::script(bytes));
