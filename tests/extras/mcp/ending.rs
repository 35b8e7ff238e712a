//! How servers end: with the plugin, politely first, and with all that they started.

use std::{env, fs, process::Command};

use serde_json::json;

use super::rig::rig;
use crate::shared::is_alive;

#[test]
fn a_server_ends_with_the_plugin_and_so_do_its_tools() {
    rig(async |it| {
        let mount = it.serve("plain", json!({})).await;

        mount.dispose().await;

        assert_eq!((it.alive(), it.tools.names()), (vec![], vec![]));
    });
}

#[test]
fn a_server_that_ignores_the_end_of_input_and_term_is_killed() {
    rig(async |it| {
        let mount = it.serve("stubborn", json!({})).await;

        mount.dispose().await;

        assert_eq!((it.starts(), it.alive()), (1, vec![]));
    });
}

#[test]
fn the_children_of_a_server_end_with_it() {
    rig(async |it| {
        let mount = it.serve("parent", json!({})).await;
        it.call("child").await;
        assert_eq!(it.alive().len(), 3);

        mount.dispose().await;

        assert_eq!(it.alive(), [""; 0]);
    });
}

#[test]
fn a_child_that_left_for_a_session_of_its_own_ends_too() {
    rig(async |it| {
        let mount = it.serve("plain", json!({})).await;
        it.call("daemon").await;
        let daemon = fs::read_to_string(it.path("daemon")).unwrap();
        assert!(is_alive(daemon.trim()));

        mount.dispose().await;

        assert!(!is_alive(daemon.trim()));
    });
}

#[test]
fn a_call_that_runs_when_the_plugin_is_unloaded_ends_with_words() {
    rig(async |it| {
        let mount = it.serve("plain", json!({})).await;
        let unload = async {
            it.heard(r#""what":"hang""#).await;
            mount.dispose().await;
        };

        let (result, ()) = tokio::join!(it.call("hang"), unload);

        assert!(result.is_error && result.content.contains("it was unloaded"), "{result:?}");
    });
}

#[test]
fn two_hundred_reloads_leave_nothing_behind() {
    if is_alone("mcp::ending::two_hundred_reloads_leave_nothing_behind") {
        rig(async |it| {
            it.serve("plain", json!({})).await.dispose().await;
            let before = usage();

            for _ in 0..200 {
                it.serve("plain", json!({})).await.dispose().await;
            }

            assert_eq!((it.starts(), it.alive()), (201, vec![]));
            assert_eq!(usage(), before);
        });
    }
}

/// How many descriptors and threads this process has.
fn usage() -> (usize, usize) {
    let count = |folder| fs::read_dir(folder).unwrap().count();
    (count("/proc/self/fd"), count("/proc/self/task"))
}

/// Whether no other test runs in this process. Where others do, the test is run in one of its own.
pub(super) fn is_alone(test: &str) -> bool {
    if env::var_os("NANO_TEST_ALONE").is_some() {
        return true;
    }
    let mut alone = Command::new(env::current_exe().unwrap());
    let output = alone.args(["--exact", test]).env("NANO_TEST_ALONE", "1").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
    false
}
