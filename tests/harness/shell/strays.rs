//! The local shell: processes that left the group or the session of their command, and very many of them.

use std::{fs, process::Command};

use nano_cordis::harness::shell::ShellResult;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;

use super::rig::{Bell, Rig, is_there, plain, shell};

/// Starts a daemon in a session of its own, which rings the bell with its number and goes on for long.
const DAEMON: &str =
    "setsid sh -c 'echo $$ > bell; exec sleep 60' >/dev/null 2>&1 </dev/null & echo started";

/// Runs a command that rings the bell with the number of a process.
async fn run_and_hear(rig: &Rig, bell: &mut Bell, command: &str) -> (ShellResult, String) {
    tokio::join!(rig.run(command), bell.rung())
}

#[test]
fn h_132_a_daemon_with_a_session_of_its_own_is_a_process_left_behind() {
    shell(plain(), async |rig| {
        let mut bell = rig.bell();

        // Many, because the look may fall on the moment in which one program becomes another.
        for _ in 0..25 {
            let (result, daemon) = run_and_hear(&rig, &mut bell, DAEMON).await;

            assert_eq!((result.stdout.text.as_str(), result.left_children), ("started\n", true));
            assert!(is_there(&daemon));
        }
    });
}

/// While one program becomes another the system does not tell whose process it is.
#[test]
fn h_132_a_daemon_that_becomes_another_program_all_the_time_is_left_behind_too() {
    shell(plain(), async |rig| {
        let mut bell = rig.bell();
        fs::write(rig.path("again"), "exec sh again").unwrap();
        let daemon = "setsid sh -c 'echo $$ > bell; exec sh again' >/dev/null 2>&1 </dev/null &";

        for _ in 0..10 {
            let (result, daemon) = run_and_hear(&rig, &mut bell, daemon).await;

            assert!(result.left_children && is_there(&daemon));
            kill(Pid::from_raw(daemon.parse().unwrap()), Signal::SIGKILL).unwrap();
        }
    });
}

#[test]
fn h_176_unloading_stops_daemons_of_all_kinds() {
    let kinds = [
        DAEMON,
        "(setsid sh -c '(sh -c \"echo \\$\\$ > bell; exec sleep 60\" &)' >/dev/null 2>&1 &)",
        "nohup setsid bash -c 'trap \"\" TERM; echo $$ > bell; sleep 60; sleep 60' >/dev/null 2>&1 &",
        "set -m; sh -c 'echo $$ > bell; exec sleep 60' >/dev/null 2>&1 & disown",
        "env -i PATH=\"$PATH\" sh -c 'echo $$ > bell; exec sleep 60' >/dev/null 2>&1 &",
    ];
    shell(json!({ "graceMs": 300 }), async move |rig| {
        let mut bell = rig.bell();
        let mut daemons = Vec::new();
        for kind in kinds {
            let (result, daemon) = run_and_hear(&rig, &mut bell, kind).await;
            assert!(result.left_children, "{kind}");
            daemons.push(daemon);
        }
        let were_there = daemons.iter().all(|it| is_there(it));

        rig.unload().await;

        let left: Vec<_> = daemons.iter().filter(|it| is_there(it)).collect();
        assert!(were_there && left.is_empty(), "{left:?} of {daemons:?}");
    });
}

#[test]
fn a_09_a_deadline_reaches_a_daemon_with_a_session_of_its_own() {
    shell(plain(), async |rig| {
        let mut bell = rig.bell();

        let command = format!("{DAEMON}; sleep 30");
        let (result, daemon) = tokio::join!(rig.run_for(&command, Some(1500)), bell.rung());

        assert!(result.timed_out && !result.left_children);
        assert!(!is_there(&daemon));
    });
}

#[test]
fn a_process_of_somebody_else_is_neither_reported_nor_stopped() {
    shell(plain(), async |rig| {
        let (mut bell, mut heard) = (rig.bell(), String::new());
        let mut stranger = None;

        let (result, ()) = tokio::join!(rig.run("echo > bell; read < go"), async {
            heard += &bell.rung().await;
            stranger = Some(Command::new("setsid").args(["sleep", "60"]).spawn().unwrap());
            bell.go();
        });
        rig.unload().await;
        let mut stranger = stranger.unwrap();
        let lived_on = is_there(&stranger.id().to_string());

        stranger.kill().unwrap();
        stranger.wait().unwrap();
        assert!(!result.left_children && lived_on);
    });
}

#[test]
fn thousands_of_processes_are_counted_as_left_behind_and_all_stopped() {
    shell(plain(), async |rig| {
        let command =
            "for i in {1..1500}; do sleep 60 & done >/dev/null 2>&1; jobs -p > pids; wc -l < pids";

        let result = rig.run(command).await;
        let pids = fs::read_to_string(rig.path("pids")).unwrap();
        rig.unload().await;

        assert_eq!((result.stdout.text.as_str(), result.left_children), ("1500\n", true));
        let left: Vec<_> = pids.lines().filter(|it| is_there(it)).collect();
        assert!(left.is_empty(), "{} of them", left.len());
    });
}
