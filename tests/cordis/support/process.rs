//! Tests that look at a whole process, its memory or what it prints: this program again, told to run one test.

use std::env;
use std::process::{Command, Output};

/// Set in the process that does the work.
const MARK: &str = "NANO_CORDIS_TEST_ALONE";

/// Does the work in a process of its own and returns its output; there, in that process, nothing. `test` is the whole
/// name of the test that calls this.
pub(crate) fn alone(test: &str, work: impl FnOnce()) -> Option<Output> {
    if env::var_os(MARK).is_some() {
        work();
        return None;
    }
    let program = env::current_exe().expect("a test program");
    let arguments = ["--exact", test, "--nocapture"];
    let output = Command::new(program).args(arguments).env(MARK, "1").output().unwrap();
    let summary = String::from_utf8_lossy(&output.stdout);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && summary.contains("1 passed"), "{summary}{printed}");
    Some(output)
}
