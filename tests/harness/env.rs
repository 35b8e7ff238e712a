//! The environment as a service.

use std::{ffi::OsString, os::unix::ffi::OsStringExt};

use nano_cordis::harness::env::Env;

#[test]
fn a_variable_is_there_or_not_and_a_damaged_one_is_there() {
    let damaged = OsString::from_vec(vec![b'a', 0xff]);

    let env = Env::fixed([("B", "1".into()), ("A", damaged), ("EMPTY", "".into())]);

    assert_eq!(env.get("B").as_deref(), Some("1"));
    assert_eq!(env.get("A").as_deref(), Some("a\u{fffd}"));
    assert_eq!(env.get("EMPTY").as_deref(), Some(""));
    assert_eq!(env.get("C"), None);
    assert_eq!(env.all().map(|(name, _)| name).collect::<Vec<_>>(), ["A", "B", "EMPTY"]);
}

#[test]
fn the_process_gives_its_variables() {
    let folder = Env::process().get("CARGO_MANIFEST_DIR");

    assert_eq!(folder.as_deref(), Some(env!("CARGO_MANIFEST_DIR")));
}
