//! What all tests of extras share: a call as the loop makes it, and whether a process runs.

use std::fs;

use nano_cordis::harness::tools::CallRequest;
use tokio_util::sync::CancellationToken;

/// A call that nothing ends, of no session.
pub(crate) fn call(name: &str, arguments: impl Into<String>) -> CallRequest {
    CallRequest {
        id: "call_1".into(),
        name: name.into(),
        arguments: arguments.into(),
        problem: None,
        cancel: CancellationToken::new(),
        session: None,
        turn: 1,
        step: 1,
    }
}

/// Whether a process runs: one that is dead and not yet buried does not.
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z"))
}
