//! The program is killed at very many moments, and each time its log tells all that was shown and can be gone on with.
//!
//! Watch for: a moment is a place in the log and a little time after it, so that all parts of a run are met on any machine;
//! what exactly it falls on is chance. What is asserted holds for all.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::model::Model;
use crate::support::{Folder, Running, events, id_of, reason, texts};

/// Spread over a run from its first event to its last,
const MOMENTS: usize = 225;
/// and over the time before there is one.
const EARLY: u32 = 25;
/// Within one write that takes long, because its event is long.
const WITHIN_A_WRITE: usize = 50;
const LONG: usize = 4 << 20;

/// Three turns, each of two calls; the words in them are found only once.
const TALK: &str =
    "$ echo one-1 § $ echo one-2\n$ echo two-1 § $ echo two-2\n$ echo three-1 § $ echo three-2\n";

fn start(folder: &Folder) -> Running {
    let mut running = Running::start(folder.command(&[]));
    running.write(TALK);
    running.end_of_input();
    running
}

#[test]
fn h_089_a_kill_at_any_moment_loses_nothing_that_was_shown() {
    let model = Model::start();
    let begun = Instant::now();
    let whole = Folder::with(&model.list(""));
    assert_eq!(start(&whole).ended().code(), 0);
    let (time, length) = (begun.elapsed(), fs::read(&whole.sessions()[0]).unwrap().len());

    for number in 0..EARLY {
        let folder = Folder::with(&model.list(""));
        let running = start(&folder);
        thread::park_timeout(time * number / EARLY);
        check(&folder, &model, &running.kill());
    }
    for number in 0..MOMENTS {
        let folder = Folder::with(&model.list(""));
        let running = start(&folder);
        wait_until_written(&folder, length * number / MOMENTS, Duration::from_micros(50));
        // A little time after the event, never the same.
        thread::park_timeout(Duration::from_micros(number as u64 * 37 % 1000));
        check(&folder, &model, &running.kill());
    }
}

/// Everything that was shown is in the log; and the log can be listed, gone on with, or first repaired.
fn check(folder: &Folder, model: &Model, shown: &str) {
    let listed = folder.run(&["--sessions"], "");
    assert_eq!(listed.code(), 0, "{}", listed.err);
    assert!(!listed.out.contains("damaged"), "{}", listed.out);
    let Some(log) = folder.sessions().pop() else {
        assert!(!shown.contains("[tool]") && !shown.contains("assistant>"), "{shown}");
        return;
    };
    all_is_recorded(&log, shown);
    go_on(folder, &log);
    let events = events(&log);
    assert_eq!(
        (reason(&events), texts(&events, "user/message").last()),
        ("completed", Some(&"$ echo again"))
    );
    assert_eq!(model.faults(), Vec::<String>::new());
}

fn all_is_recorded(log: &Path, shown: &str) {
    let text = fs::read(log).unwrap();
    let whole = text.iter().rposition(|it| *it == b'\n').map_or(0, |at| at + 1);
    let text = String::from_utf8(text[..whole].to_vec()).unwrap();
    let recorded: Vec<serde_json::Value> =
        text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    for line in shown.lines().filter_map(|it| it.strip_prefix("[result] ")) {
        let is_recorded = texts(&recorded, "tool/result").iter().any(|it| it.starts_with(line));
        assert!(is_recorded, "{line:?} was shown and is not in {text}");
    }
    let count = |kind: &str| recorded.iter().filter(|it| it["type"] == kind).count();
    assert!(shown.matches("[tool] ").count() <= count("tool/call"), "{shown}\n{text}");
    // Text is shown as it comes, and recorded when it is whole: of the one reply that is awaited, more may have been seen.
    let awaiting = ["user/message", "request/header", "step/start"];
    let is_awaited =
        recorded.last().is_some_and(|it| awaiting.iter().any(|kind| it["type"] == *kind));
    let answers = recorded.iter().filter(|it| it["data"]["message"]["content"] == "done");
    let most = answers.count() + usize::from(is_awaited);
    assert!(shown.matches("assistant> done").count() <= most, "{shown}\n{text}");
}

/// One more turn; after a repair, if that is what the refusal says.
fn go_on(folder: &Folder, log: &Path) {
    let id = id_of(log);
    let again = ["--resume", &id, "$ echo again"];
    let before = fs::read(log).unwrap();
    let resumed = folder.run(&again, "");
    if resumed.code() == 0 {
        return;
    }
    assert!(resumed.code() == 2 && resumed.err.contains("--repair"), "{}", resumed.err);
    assert_eq!(fs::read(log).unwrap(), before);
    let repaired = folder.run(&["--repair", &id], "");
    assert_eq!(repaired.code(), 0, "{}", repaired.err);
    let resumed = folder.run(&again, "");
    assert_eq!(resumed.code(), 0, "{}", resumed.err);
}

#[test]
fn h_089_a_kill_within_a_write_leaves_whole_lines_and_a_tail_that_is_put_aside() {
    let model = Model::start();
    let text = "x".repeat(LONG);
    // The kill comes a little later than it is asked for, so the last part of the write is left to it.
    let spread = LONG * 2 / 3 / WITHIN_A_WRITE;
    let mut torn = 0;

    for number in 0..WITHIN_A_WRITE {
        let folder = Folder::with(&model.list(""));
        let mut running = Running::start(folder.command(&["-"]));
        running.write(&text);
        running.end_of_input();
        wait_until_written(&folder, 1000 + spread * number, Duration::ZERO);
        running.kill();
        let log = folder.sessions().remove(0);
        torn += usize::from(!fs::read(&log).unwrap().ends_with(b"\n"));

        check(&folder, &model, "");
        let kept: u64 = fs::read_dir(log.parent().unwrap())
            .unwrap()
            .map(|it| it.unwrap().path())
            .filter(|it| it.extension().is_some_and(|it| it == "torn"))
            .map(|it| it.metadata().unwrap().len())
            .sum();
        assert!(kept == 0 || kept > (spread * number) as u64);
    }

    assert!(torn > 0, "no kill came within a write");
}

#[test]
fn h_090_a_repair_that_is_killed_can_be_done_again() {
    let model = Model::start();
    let calls = vec!["$ true"; 300].join(" § ");
    let whole = Folder::with(&model.list(""));
    assert_eq!(whole.run(&[&calls], "").code(), 0);
    let text = fs::read_to_string(&whole.sessions()[0]).unwrap();
    let open: String = text.split_inclusive('\n').take(6).collect();

    for number in 1..=20 {
        let folder = Folder::with(&model.list(""));
        let log = folder.path().join(".nano/sessions/20260101-000000-abcdef.jsonl");
        fs::create_dir_all(log.parent().unwrap()).unwrap();
        fs::write(&log, &open).unwrap();
        let repair = Running::start(folder.command(&["--repair", &id_of(&log)]));
        wait_until_written(&folder, open.len() + number * 2000, Duration::ZERO);
        repair.kill();
        assert!(fs::read_to_string(&log).unwrap().starts_with(&open));

        check(&folder, &model, "");
        assert_eq!(texts(&events(&log), "tool/result").len(), 301);
    }
}

/// Waits until the log has so many bytes. Nothing tells of this but looking, so often.
fn wait_until_written(folder: &Folder, bytes: usize, pause: Duration) {
    let begun = Instant::now();
    let log = loop {
        if let Some(log) = folder.sessions().pop() {
            break log;
        }
        thread::park_timeout(Duration::from_millis(1));
    };
    while fs::metadata(&log).unwrap().len() < bytes as u64 {
        assert!(begun.elapsed() < Duration::from_mins(1), "the event is not written");
        if pause.is_zero() {
            std::hint::spin_loop();
        } else {
            thread::park_timeout(pause);
        }
    }
}
