//! The local shell: how commands end, and that nothing of them is left.

use std::time::{Duration, Instant};

use nano_cordis::harness::shell::{ShellError, ShellRequest};
use serde_json::json;
use tokio::time::{advance, pause, resume, timeout};
use tokio_util::sync::CancellationToken;

use super::rig::{Rig, is_there, plain, shell};

/// Rings the bell with the id of a process that ignores TERM, and goes on for long.
const STUBBORN: &str = "trap '' TERM; echo $$ > bell; sleep 60; sleep 60";

#[test]
fn h_130_a_signal_is_named_and_gives_the_code_that_a_shell_would() {
    shell(plain(), async |rig| {
        let result = rig.run("printf 'tail-without-newline'; kill -9 $$").await;

        assert_eq!(result.stdout.text, "tail-without-newline");
        assert_eq!((result.exit_code, result.signal.as_deref()), (Some(137), Some("SIGKILL")));
        assert!(!result.timed_out && !result.cancelled);
    });
}

#[test]
fn h_131_the_deadline_stops_the_command_and_its_children() {
    shell(plain(), async |rig| {
        let begun = Instant::now();

        let result =
            rig.run_for("sleep 30 & echo $!; echo $$; sleep 30; echo late", Some(200)).await;

        assert!(result.timed_out && !result.left_children);
        assert_eq!((result.timeout_ms, result.exit_code), (200, Some(143)));
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        let pids: Vec<_> = result.stdout.text.lines().collect();
        assert_eq!(pids.len(), 2);
        assert!(!pids.into_iter().any(is_there));
    });
}

#[test]
fn h_131_the_deadline_reaches_children_in_process_groups_of_their_own() {
    shell(plain(), async |rig| {
        let result = rig.run_for("timeout 30 sh -c 'echo $$; sleep 30'", Some(300)).await;

        assert!(result.timed_out && !result.left_children);
        assert!(!is_there(&result.stdout.text));
    });
}

#[test]
fn h_132_a_command_ends_when_its_shell_ends_and_says_what_it_left() {
    shell(plain(), async |rig| {
        let begun = Instant::now();

        let result = rig.run("sleep 30 & echo started").await;

        assert_eq!((result.stdout.text.as_str(), result.exit_code), ("started\n", Some(0)));
        assert!(result.left_children);
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    });
}

#[test]
fn h_132_what_is_left_behind_can_go_on_printing() {
    shell(plain(), async |rig| {
        let mut bell = rig.bell();

        let result = rig
            .run("(read < go; head -c 200000 /dev/zero && echo printed > bell) & echo started")
            .await;
        bell.go();

        assert!(result.left_children);
        assert_eq!(bell.rung().await, "printed");
    });
}

#[test]
fn h_132_a_daemon_that_holds_the_output_does_not_hold_the_result() {
    shell(plain(), async |rig| {
        let mut bell = rig.bell();

        let result = rig.run("setsid sh -c 'echo $$ > bell; read x < go' & echo started").await;

        assert_eq!((result.stdout.text.as_str(), result.left_children), ("started\n", true));
        bell.rung().await;
        bell.go();
    });
}

#[test]
fn h_132_a_process_whose_name_is_cut_within_a_character_is_seen_too() {
    shell(plain(), async |rig| {
        let command =
            "cp \"$(command -v sleep)\" ./a哈哈哈哈哈; ./a哈哈哈哈哈 30 >/dev/null 2>&1 & echo $!";

        let result = rig.run(command).await;
        rig.unload().await;

        assert!(result.left_children);
        assert!(!is_there(&result.stdout.text));
    });
}

#[test]
fn children_that_end_with_the_command_are_not_called_left_behind() {
    shell(plain(), async |rig| {
        let result = rig.run("sleep 0 & cat <(echo a) | cat").await;

        assert_eq!(result.stdout.text, "a\n");
        assert!(!result.left_children);
    });
}

#[test]
fn h_133_what_ignores_term_is_killed_after_the_grace() {
    shell(json!({ "timeoutMs": 20000, "graceMs": 200 }), async |rig| {
        let mut bell = rig.bell();

        let (result, pid) = tokio::join!(rig.run(STUBBORN), async {
            let pid = bell.rung().await;
            pause();
            advance(Duration::from_secs(20)).await;
            resume();
            pid
        });

        assert!(result.timed_out);
        assert_eq!(result.signal.as_deref(), Some("SIGKILL"));
        assert!(!is_there(&pid));
    });
}

#[test]
fn a_09_a_deadline_reaches_children_that_ignore_term_too() {
    shell(json!({ "graceMs": 300 }), async |rig| {
        let command = "trap '' TERM; (trap '' TERM; sleep 1; echo late > late.txt) & echo $!; echo early; sleep 30";

        let result = rig.run_for(command, Some(200)).await;

        let (pid, early) = result.stdout.text.split_once('\n').unwrap();
        assert_eq!(early, "early\n");
        assert!(result.timed_out && !result.left_children);
        assert!(!is_there(pid));
        assert!(!rig.path("late.txt").exists());
    });
}

#[test]
fn a_09_the_grace_of_the_default_config_is_short_enough_for_a_child_that_waits() {
    shell(plain(), async |rig| {
        let command = "trap '' TERM; (trap '' TERM; sleep 4; echo late > late.txt) & echo $!; echo early; sleep 30";

        let result = rig.run_for(command, Some(2000)).await;

        let (pid, early) = result.stdout.text.split_once('\n').unwrap();
        assert_eq!((early, result.timed_out, result.left_children), ("early\n", true, false));
        assert!(!is_there(pid) && !rig.path("late.txt").exists());
    });
}

#[test]
fn a_09_a_command_that_stopped_itself_is_ended_by_the_deadline_too() {
    shell(json!({ "graceMs": 200 }), async |rig| {
        let result = rig.run_for("echo $$; kill -STOP $$; echo late", Some(200)).await;

        assert!(result.timed_out && !is_there(&result.stdout.text));
    });
}

#[test]
fn a_cancelled_command_gives_its_result_at_once_and_is_killed_after_the_grace() {
    shell(json!({ "graceMs": 300 }), async |rig| {
        let (mut bell, cancel) = (rig.bell(), CancellationToken::new());
        let request = rig.request(&format!("echo early; {STUBBORN}"));

        let (result, (pid, pulled)) = tokio::join!(
            async { (rig.try_run(&request, cancel.clone()).await.unwrap(), Instant::now()) },
            async {
                let pid = bell.rung().await;
                cancel.cancel();
                (pid, Instant::now())
            }
        );

        let (result, came) = result;
        assert!(came - pulled < Duration::from_millis(100), "{:?}", came - pulled);
        assert!(result.cancelled && !result.timed_out);
        assert_eq!((result.stdout.text.as_str(), result.exit_code), ("early\n", None));
        gone(&pid).await;
    });
}

#[test]
fn a_cancelled_command_that_obeys_tells_how_it_ended() {
    shell(plain(), async |rig| {
        let (mut bell, cancel) = (rig.bell(), CancellationToken::new());
        let request = rig.request("echo > bell; sleep 30");

        let (result, ()) = tokio::join!(rig.try_run(&request, cancel.clone()), async {
            bell.rung().await;
            cancel.cancel();
        });

        let result = result.unwrap();
        assert_eq!((result.cancelled, result.signal.as_deref()), (true, Some("SIGTERM")));
    });
}

#[test]
fn a_cancel_during_the_grace_of_a_deadline_does_not_wait_for_its_end() {
    shell(json!({ "graceMs": 60000 }), async |rig| {
        let (mut bell, cancel) = (rig.bell(), CancellationToken::new());
        let command =
            "trap 'echo > bell' TERM; echo > bell; for i in {1..1000}; do sleep 0.01; done";
        let request = ShellRequest { timeout_ms: Some(500), ..rig.request(command) };

        let (result, ()) = tokio::join!(rig.try_run(&request, cancel.clone()), async {
            bell.rung().await;
            bell.rung().await;
            cancel.cancel();
        });

        assert!(result.unwrap().cancelled);
    });
}

#[test]
fn a_command_whose_caller_went_away_is_stopped() {
    shell(plain(), async |rig| {
        let mut bell = rig.bell();
        let request = rig.request("echo $$ > bell; sleep 60");

        let pid = tokio::select! {
            _ = rig.try_run(&request, CancellationToken::new()) => unreachable!("it sleeps"),
            pid = bell.rung() => pid,
        };

        gone(&pid).await;
    });
}

#[test]
fn a_command_that_is_cancelled_before_it_began_does_not_run() {
    shell(plain(), async |rig| {
        let cancel = CancellationToken::new();
        cancel.cancel();

        let result = rig.try_run(&rig.request("touch ran"), cancel).await;

        assert!(matches!(result, Err(ShellError::Cancelled)));
        assert!(!rig.path("ran").exists());
    });
}

#[test]
fn h_176_a_command_that_ended_leaves_nothing_registered() {
    shell(plain(), async |rig| {
        let before = rig.mount.effect_count();

        rig.run("true").await;
        tokio::task::yield_now().await;

        assert_eq!(rig.mount.effect_count(), before);
    });
}

#[test]
fn h_176_unloading_stops_what_was_left_behind() {
    shell(plain(), async |rig| {
        let result = rig.run("sleep 60 & echo $!").await;
        let was_there = is_there(&result.stdout.text);

        rig.unload().await;

        assert!(was_there);
        assert!(!is_there(&result.stdout.text));
    });
}

#[test]
fn h_176_unloading_stops_commands_that_run_also_those_that_ignore_term() {
    shell(json!({ "graceMs": 200 }), async |rig| {
        let mut bell = rig.bell();

        let (result, pid) = tokio::join!(run_stubborn(&rig), async {
            let pid = bell.rung().await;
            rig.unload().await;
            pid
        });

        assert!(matches!(result, Err(ShellError::Unloaded)));
        assert!(!is_there(&pid));
    });
}

#[test]
fn h_176_a_long_grace_does_not_let_a_command_outlive_the_program() {
    shell(json!({ "graceMs": 60000 }), async |rig| {
        let mut bell = rig.bell();
        let (_, pid) =
            tokio::join!(rig.run("(trap '' TERM; echo $BASHPID > bell; sleep 60) &"), bell.rung());
        pause();
        let begun = tokio::time::Instant::now();

        rig.unload().await;

        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert!(!is_there(&pid));
    });
}

#[test]
fn h_176_unloading_finishes_off_a_cancelled_command() {
    shell(json!({ "graceMs": 500 }), async |rig| {
        let (mut bell, cancel) = (rig.bell(), CancellationToken::new());
        let request = rig.request(STUBBORN);
        let (_, pid) = tokio::join!(rig.try_run(&request, cancel.clone()), async {
            let pid = bell.rung().await;
            cancel.cancel();
            pid
        });
        let was_there = is_there(&pid);

        rig.unload().await;

        assert!(was_there);
        assert!(!is_there(&pid));
    });
}

async fn run_stubborn(rig: &Rig) -> Result<(), ShellError> {
    rig.try_run(&rig.request(STUBBORN), CancellationToken::new()).await.map(drop)
}

/// Waits until the process is no more; the system raises no event for that.
async fn gone(pid: &str) {
    let look = async {
        while is_there(pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(10), look).await.expect("the process stays");
}
