//! What is left of a run, however it ends: no process, no lock, no half of a turn that cannot be told.

use std::fs::{self, File};
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::model::Model;
use crate::support::{Ended, Folder, Running, id_of, kinds, list, reason, script, texts, until};
use crate::terminal::{CTRL_C, HANGS_UP, Terminal};

/// Leaves a child and a daemon behind and writes down both, then does what follows.
const LEAVES: &str = "sleep 60 >/dev/null 2>&1 & echo $! > child; setsid sleep 61 >/dev/null 2>&1 & echo $! > daemon; echo > started; ";

/// A folder in which the model has such a command run, which then goes on like this; and what the model says next.
fn folder(then: &str, next: &str) -> Folder {
    let command = serde_json::to_string(&format!("{LEAVES}{then}")).unwrap();
    let lines = script(&format!("{{tool: bash, args: {{command: {command}}}}}, {next}"));
    let shell = "name: shell-local, config: {graceMs: 200}";
    Folder::with(&list(&[("llm", &lines), ("approval", ""), ("shell", shell)]))
}

fn process(folder: &Folder, name: &str) -> Pid {
    let text = fs::read_to_string(folder.path().join(name)).unwrap();
    Pid::from_raw(text.trim().parse().unwrap())
}

fn is_alive(process: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !status.is_empty() && !status.contains(") Z ")
}

/// Nothing runs, nothing is locked, nothing lies about; and the log is closed.
fn nothing_is_left(folder: &Folder, expected: &str) {
    for name in ["child", "daemon"] {
        assert!(!is_alive(process(folder, name)), "the {name} of a run that ended `{expected}`");
    }
    let log = folder.sessions().remove(0);
    File::open(&log).unwrap().try_lock().unwrap();
    assert_eq!(reason(&folder.log()), expected);
}

fn started(folder: &Folder) {
    until("the command", || folder.has("started"));
}

#[test]
fn h_176_nothing_is_left_when_the_turn_is_completed_or_fails() {
    let cases = [("{content: done}", 0, "completed"), ("{error: 'out of order'}", 1, "error")];
    for (next, status, expected) in cases {
        let folder = folder("true", next);

        let ended = Running::start(folder.command(&["go"])).ended_with_input_open();

        assert_eq!(ended.code(), status, "{}", ended.err);
        nothing_is_left(&folder, expected);
    }
}

#[test]
fn h_176_nothing_is_left_at_the_step_limit_and_when_the_reader_goes_away() {
    let limited = folder("true", "{content: done}");
    let list = fs::read_to_string(limited.path().join("cordis.yml")).unwrap();
    limited.save(&list.replace("name: agent-loop", "name: agent-loop, config: {maxSteps: 1}"));
    let unread = folder("sleep 30", "{content: done}");

    let ended = limited.run(&["go"], "");
    let gone = Running::start_unread(unread.command(&["go"])).ended_with_input_open();

    assert_eq!((ended.code(), gone.code()), (3, 141), "{} {}", ended.err, gone.err);
    nothing_is_left(&limited, "max-steps");
    if unread.has("daemon") {
        nothing_is_left(&unread, "aborted");
    }
}

#[test]
fn h_176_nothing_is_left_after_ctrl_c_and_term() {
    let interrupted = folder("sleep 30", "{content: done}");
    let mut terminal = Terminal::start(interrupted.command(&["go"]));
    started(&interrupted);
    terminal.type_keys(CTRL_C);
    let (_, status) = terminal.ended();

    let terminated = folder("sleep 30", "{content: done}");
    let running = Running::start(terminated.command(&["go"]));
    started(&terminated);
    running.signal(Signal::SIGTERM);
    let ended = running.ended_with_input_open();

    assert_eq!((status, ended.code()), (130, 143));
    nothing_is_left(&interrupted, "aborted");
    nothing_is_left(&terminated, "aborted");
}

#[test]
fn h_176_nothing_is_left_when_the_terminal_goes_away() {
    let folder = folder("sleep 30", "{content: done}");
    let mut terminal = Terminal::start(folder.shell_command(&format!("{HANGS_UP} nano-cordis")));
    terminal.wait_for("you> ");
    terminal.type_keys("go\r");
    started(&folder);

    let status = terminal.hang_up();

    assert_eq!(status, 129);
    nothing_is_left(&folder, "aborted");
}

/// A folder with a strict model that has a command run which says that it has started and then sleeps.
fn folder_with_a_sleeper(model: &Model) -> (Folder, &'static str) {
    (Folder::with(&model.list("graceMs: 200")), "$ echo $$ > pid; echo > started; sleep 60")
}

fn resume(folder: &Folder, log: &Path) -> Ended {
    folder.run(&["--resume", &id_of(log), "more"], "")
}

#[test]
fn a_26_a_turn_that_was_cancelled_can_be_gone_on_with() {
    let model = Model::start();
    let (folder, text) = folder_with_a_sleeper(&model);
    let mut terminal = Terminal::start(folder.command(&[text]));
    started(&folder);
    terminal.type_keys(CTRL_C);
    let (_, status) = terminal.ended();

    let ended = resume(&folder, &folder.sessions()[0]);

    assert_eq!((status, ended.code()), (130, 0), "{}", ended.err);
    assert_eq!((model.faults(), model.requests()), (vec![], 2));
}

#[test]
fn a_26_a_turn_that_was_killed_in_a_call_is_refused_by_that_event_until_it_is_repaired() {
    let model = Model::start();
    let (folder, text) = folder_with_a_sleeper(&model);
    let running = Running::start(folder.command(&[text]));
    started(&folder);
    running.kill();
    let log = folder.sessions().remove(0);
    let before = fs::read(&log).unwrap();

    let refused = resume(&folder, &log);
    let untouched = fs::read(&log).unwrap();
    // The command lives on, since nobody was left to stop it; but it holds no lock.
    kill(process(&folder, "pid"), Signal::SIGKILL).unwrap();
    let repaired = folder.run(&["--repair", &id_of(&log)], "");
    let resumed = resume(&folder, &log);

    assert_eq!(kinds(&folder.log())[5], "tool/call");
    assert!(
        refused.err.contains("stops within turn 1, at `tool/call` (line 6)"),
        "{}",
        refused.err
    );
    assert_eq!((before == untouched, before.split(|it| *it == b'\n').count()), (true, 7));
    assert_eq!((refused.code(), repaired.code(), resumed.code()), (2, 0, 0), "{}", resumed.err);
    assert_eq!(model.faults(), Vec::<String>::new());
}

#[test]
fn a_26_a_result_is_in_the_log_before_anybody_asks_the_model_again() {
    let model = Model::start();
    let folder = Folder::with(&model.list(""));
    let running = Running::start(folder.command(&["$ echo hold"]));
    until("the second request", || model.requests() == 2);
    running.kill();

    assert_eq!(texts(&folder.log(), "tool/result"), ["hold\n\n[exit code: 0]"]);
}

/// Runs a line of shell in which `.nano` is a disk of 64 kB, and takes what is on it out of there. Nothing where the system
/// does not let users have disks of their own.
fn with_a_small_disk(folder: &Folder, line: &str) -> Option<Ended> {
    fs::create_dir(folder.path().join(".nano")).unwrap();
    let mounts = "mount -t tmpfs -o size=64k,mode=700 none .nano";
    let own =
        |line: &str| folder.shell_command(&format!("unshare -rm bash -c '{mounts} && {line}'"));
    if !own("true").status().unwrap().success() {
        return None;
    }
    let take_out = "status=$?; cp -r .nano out; exit $status";
    let mut running = Running::start(own(&format!("{line}; {take_out}")));
    running.end_of_input();
    let ended = running.ended();
    fs::remove_dir(folder.path().join(".nano")).unwrap();
    fs::rename(folder.path().join("out"), folder.path().join(".nano")).unwrap();
    Some(ended)
}

#[test]
fn h_092_on_a_full_disk_the_turn_ends_with_the_reason_and_the_log_can_be_repaired() {
    let model = Model::start();
    let folder = Folder::with(&model.list(""));
    folder.write("say", &"$ head -c 20000 /dev/zero | tr '\\0' x\n".repeat(10));
    let Some(ended) = with_a_small_disk(&folder, "nano-cordis - <say") else { return };
    let log = folder.sessions().remove(0);
    let full = fs::read_to_string(&log).unwrap();

    let repaired = folder.run(&["--repair", &id_of(&log)], "");
    let resumed = resume(&folder, &log);

    assert!(ended.code() == 1 && ended.err.contains("--repair"), "{ended:?}");
    assert!(full.ends_with("}\n") && fs::read_to_string(&log).unwrap().starts_with(&full));
    assert_eq!((repaired.code(), resumed.code()), (0, 0), "{} {}", repaired.err, resumed.err);
    assert_eq!((model.faults(), reason(&folder.log())), (vec![], "completed"));
}
