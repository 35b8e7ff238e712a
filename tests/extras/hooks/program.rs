//! Hooks in the real program: what the user sees, and what a signal does.

use std::{
    fs,
    io::Read,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

const AGENT: &str = "
- {id: session, name: session}
- {id: prompt, name: prompt}
- {id: tools, name: tools}
- {id: shell, name: shell-local}
- {id: bash, name: tool-bash}
- {id: llm, name: llm-fake}
- {id: loop, name: agent-loop}
- {id: cli, name: cli}
";

/// The program, about to call `bash`, with this hook before it.
fn start(folder: &Path, hook: &str) -> Child {
    let hook = serde_json::json!({ "PreToolUse": [{ "command": hook }] });
    let list = format!("{AGENT}- {{id: hooks, name: hooks, config: {hook}}}\n");
    fs::write(folder.join("cordis.yml"), list).unwrap();
    Command::new(env!("CARGO_BIN_EXE_nano-cordis"))
        .arg("hello")
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn what_a_hook_complains_about_is_one_harmless_line() {
    let folder = tempfile::tempdir().unwrap();
    let hook = "printf 'a\\n\\033[31m\\033]0;x\\007 \\377[nano-cordis] b\\n' >&2; exit 1";

    let ended = start(folder.path(), hook).wait_with_output().unwrap();

    let err = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(err.starts_with("[nano-cordis] the PreToolUse hook ") && err.contains("exit code 1: "));
    assert!(!err.contains('\u{1b}') && !err.contains('\u{7}'), "{err:?}");
    assert_eq!(ended.status.code(), Some(0));
}

#[test]
fn a_signal_ends_the_program_and_the_hook_that_ignores_it() {
    let folder = tempfile::tempdir().unwrap();
    let hook = "trap '' TERM INT; echo $$ > pid; while :; do sleep 60; done";
    let mut program = start(folder.path(), hook);
    let pid = until(|| {
        fs::read_to_string(folder.path().join("pid")).ok().filter(|it| it.ends_with('\n'))
    });

    kill(Pid::from_raw(program.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    let status = until(|| program.try_wait().unwrap());

    assert_eq!(status.code(), Some(143));
    let mut out = String::new();
    program.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert!(!out.contains("hello from nano\n\n[exit code"), "{out}");
    let gone = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        stat.rsplit_once(')').is_none_or(|(_, it)| it.starts_with(" Z")).then_some(())
    };
    until(gone);
}

/// Waits until there is something.
fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "it does not come");
        thread::park_timeout(Duration::from_millis(5));
    }
}
