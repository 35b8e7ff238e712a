//! Logs as other programs, other versions and other users leave them: the cases of the session log, with the real program.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::model::Model;
use crate::support::{Ended, Folder, Running, id_of, said, scripted};

/// A folder with a session of two turns, each with a call; and the log of that.
fn folder_with_a_session(model: &Model) -> (Folder, PathBuf) {
    let folder = Folder::with(&model.list(""));
    folder.run(&[], "$ echo Grüße\n$ echo two\n");
    let log = folder.sessions().remove(0);
    (folder, log)
}

/// The lines of a log, with their ends, of which one is replaced.
fn with_line(text: &str, number: usize, change: impl Fn(&str) -> Vec<u8>) -> Vec<u8> {
    let lines = text.split_inclusive('\n').zip(1..);
    lines.flat_map(|(line, n)| if n == number { change(line) } else { line.into() }).collect()
}

/// Resumes this log and says something.
fn resume(folder: &Folder, log: &Path, text: &[u8]) -> Ended {
    fs::write(log, text).unwrap();
    folder.run(&["--resume", &id_of(log), "more"], "")
}

#[test]
fn a_21_damage_is_refused_by_file_and_line_and_no_byte_changes() {
    let model = Model::start();
    let (folder, log) = folder_with_a_session(&model);
    let good = fs::read_to_string(&log).unwrap();
    let lines: Vec<_> = good.split_inclusive('\n').collect();
    let swapped = [&lines[..4], &[lines[5], lines[4]], &lines[6..]].concat().concat();
    let cases = [
        (5, with_line(&good, 5, |_| [&[0; 300][..], b"\n"].concat())),
        (5, with_line(&good, 5, |line| [&line.as_bytes()[..line.len() / 2], b"\n"].concat())),
        (5, swapped.into_bytes()),
        (7, with_line(&good, 6, |line| line.repeat(2).into())),
        (
            3,
            with_line(&good, 3, |line| {
                [&line.as_bytes()[..60], b"\xff", &line.as_bytes()[60..]].concat()
            }),
        ),
        (3, with_line(&good, 3, |line| line.replace("Gr", "\\ud83d").into())),
        (1, with_line(&good, 1, |line| line.replace("\"seq\":0", "\"seq\":2").into())),
    ];
    for (line, text) in cases {
        let ended = resume(&folder, &log, &text);

        let place = format!("{}, line {line}: ", log.display());
        assert_eq!((ended.code(), ended.err.lines().count()), (2, 1), "{}", ended.err);
        assert!(ended.err.contains(&place), "line {line}: {}", ended.err);
        assert_eq!(fs::read(&log).unwrap(), text);
    }
    assert_eq!(folder.run(&["another session"], "").code(), 0);
    assert_eq!(folder.run(&["--sessions"], "").out.lines().count(), 2);
}

#[test]
fn a_21_line_ends_of_other_systems_a_mark_at_the_start_and_empty_lines_are_no_damage() {
    let model = Model::start();
    let (folder, log) = folder_with_a_session(&model);
    let good = fs::read_to_string(&log).unwrap();
    let theirs =
        format!("\u{feff}{}", good.replace('\n', "\r\n").replacen("\r\n", "\r\n\r\n \r\n", 3));

    let ended = resume(&folder, &log, theirs.as_bytes());

    assert_eq!(ended.code(), 0, "{}", ended.err);
    assert!(fs::read_to_string(&log).unwrap().starts_with(&theirs));
    assert_eq!(model.faults(), Vec::<String>::new());
}

#[test]
fn a_22_what_is_no_id_touches_no_file() {
    let folder = Folder::with(&scripted("{content: Hello}"));
    let long = "a".repeat(5000);
    let odd = [
        "../../victim",
        "sub/x",
        ".",
        "..",
        "",
        "a\nb",
        "/etc/passwd",
        "-",
        &long,
        "20260101-000000-abcdef",
    ];
    for id in odd {
        for flag in ["--resume=", "--repair="] {
            let ended = folder.run(
                &[&format!("{flag}{id}"), "hi"][..if flag == "--resume=" { 2 } else { 1 }],
                "",
            );

            assert_eq!(
                (ended.code(), ended.err.lines().count()),
                (2, 1),
                "{flag}{id}: {}",
                ended.err
            );
            assert!(!folder.has(".nano"), "{flag}{id}");
        }
    }
    assert_eq!(folder.run(&["--resume"], "").code(), 2);
}

#[test]
fn a_22_an_id_that_leads_outside_is_not_followed_and_says_something_else_than_an_unknown_one() {
    let model = Model::start();
    let (folder, log) = folder_with_a_session(&model);
    let victim = folder.path().join("victim.jsonl");
    fs::copy(&log, &victim).unwrap();
    let before = fs::read(&victim).unwrap();
    symlink("../../victim.jsonl", log.with_file_name("20260101-000000-link00.jsonl")).unwrap();
    fs::create_dir(log.with_file_name("20260101-000000-folder.jsonl")).unwrap();

    for id in ["20260101-000000-link00", "20260101-000000-folder"] {
        for arguments in [&["--resume", id, "hi"][..], &["--repair", id]] {
            let ended = folder.run(arguments, "");

            assert_eq!(ended.code(), 2, "{}", ended.err);
            assert!(ended.err.contains("is not a regular file"), "{}", ended.err);
        }
    }
    assert_eq!(fs::read(&victim).unwrap(), before);
    let unknown = folder.run(&["--resume", "20260101-000000-nobody", "hi"], "");
    assert!(unknown.err.contains("no session `20260101-000000-nobody`"), "{}", unknown.err);
}

#[test]
fn h_094_a_session_in_use_is_neither_gone_on_with_nor_repaired_nor_continued() {
    let model = Model::start();
    let (folder, log) = folder_with_a_session(&model);
    let id = id_of(&log);
    let mut holder = Running::start(folder.command(&["--resume", &id]));
    holder.wait_for_error(&id);
    let before = fs::read(&log).unwrap();

    for arguments in [&["--resume", &id, "more"][..], &["--repair", &id], &["-c", "more"]] {
        let ended = folder.run(arguments, "");
        assert_eq!((ended.code(), ended.err.contains("in use")), (2, true), "{}", ended.err);
    }
    assert_eq!(fs::read(&log).unwrap(), before);
    holder.end_of_input();
    assert_eq!(holder.ended().code(), 0);
}

#[test]
fn h_094_of_many_programs_that_resume_at_once_each_has_the_session_alone() {
    let model = Model::start();
    let (folder, log) = folder_with_a_session(&model);
    let id = id_of(&log);
    let before = said(&folder.log()).len();

    let all = (0..8).map(|_| {
        let mut running = Running::start(folder.command(&["--resume", &id, "$ echo more"]));
        running.end_of_input();
        running
    });
    let all: Vec<_> = all.collect();
    let codes: Vec<_> = all.into_iter().map(|it| it.ended().code()).collect();

    let done = codes.iter().filter(|it| **it == 0).count();
    assert!(done > 0 && codes.iter().all(|it| [0, 2].contains(it)), "{codes:?}");
    assert_eq!((said(&folder.log()).len(), model.faults()), (before + done, vec![]));
    assert_eq!(folder.run(&["--resume", &id, "more"], "").code(), 0);
}

#[test]
fn a_folder_whose_name_is_not_utf_8_is_the_same_one_at_resume() {
    let model = Model::start();
    let outside = Folder::new();
    let odd = outside.path().join(OsStr::from_bytes(b"odd-\xff"));
    fs::create_dir(&odd).unwrap();
    fs::write(odd.join("cordis.yml"), model.list("")).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = outside.command(arguments);
        command.current_dir(&odd);
        let mut running = Running::start(command);
        running.end_of_input();
        running.ended()
    };

    run(&["$ pwd"]);
    let ended = run(&["-c", "more"]);

    assert_eq!((ended.code(), ended.err.as_str()), (0, ""));
}

#[test]
fn a_23_whatever_the_umask_nobody_else_can_read_anything_at_any_moment() {
    let model = Model::start();
    let folder = Folder::with(&model.list(""));
    let nano = folder.path().join(".nano");
    let (is_over, folder_path) = (AtomicBool::new(false), nano.clone());
    let seen = thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut open = Vec::new();
            while !is_over.load(Ordering::SeqCst) {
                open.extend(
                    entries(&folder_path).into_iter().filter(|(_, mode)| mode & 0o077 != 0),
                );
            }
            open
        });
        let line = "umask 000; exec nano-cordis '$ head -c 40000 /dev/zero'";
        let mut running = Running::start(folder.shell_command(line));
        running.end_of_input();
        let ended = running.ended();
        is_over.store(true, Ordering::SeqCst);
        assert_eq!(ended.code(), 0, "{}", ended.err);
        watch.join().unwrap()
    });

    assert_eq!(seen, []);
    let now: Vec<_> = entries(&nano).into_iter().map(|(_, mode)| mode).collect();
    assert_eq!(now.iter().filter(|it| **it == 0o700).count(), 3, "{:?}", entries(&nano));
    assert_eq!(now.iter().filter(|it| **it == 0o600).count(), 3, "{:?}", entries(&nano));
}

#[test]
fn a_23_a_log_that_was_too_open_is_closed_when_it_is_resumed() {
    let model = Model::start();
    let (folder, log) = folder_with_a_session(&model);
    fs::set_permissions(&log, Permissions::from_mode(0o666)).unwrap();

    folder.run(&["-c", "more"], "");

    assert_eq!(log.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

/// What is in a folder at any depth, the folder too, with the modes.
fn entries(folder: &Path) -> Vec<(PathBuf, u32)> {
    let Ok(this) = folder.symlink_metadata() else { return Vec::new() };
    let mut found = vec![(folder.to_owned(), this.permissions().mode() & 0o777)];
    let inside = fs::read_dir(folder).into_iter().flatten().flatten();
    found.extend(inside.flat_map(|it| entries(&it.path())));
    found
}

#[test]
fn a_24_a_log_of_another_version_is_gone_on_with_or_refused_by_line_and_name() {
    let model = Model::start();
    let (folder, log) = folder_with_a_session(&model);
    let good = fs::read_to_string(&log).unwrap();
    let end = good.lines().count();
    let strange = format!("{{\"seq\":{end},\"type\":\"todo/changed\",\"x\":1");
    let fuller = good.replace("\",\"data\":{", "\",\"extra\":{\"a\":1},\"data\":{\"extra\":[1],");
    let older = good.replace(",\"format\":1", "").replace("\"isError\":false,", "");
    let older = older.split_inclusive('\n').map(|line| {
        let (head, rest) = line.split_once(",\"time\":").unwrap();
        format!("{head},{}", rest.split_once(',').unwrap().1)
    });

    for accepted in
        [fuller.clone(), older.collect(), good.clone() + &strange + ",\"ignorable\":true}\n"]
    {
        let ended = resume(&folder, &log, accepted.as_bytes());
        assert_eq!(ended.code(), 0, "{}", ended.err);
        assert!(fs::read_to_string(&log).unwrap().starts_with(&accepted));
    }
    assert_eq!(model.faults(), Vec::<String>::new());

    let newer = good.replacen("\"format\":1", "\"format\":999", 1);
    let unknown = format!("{good}{strange}}}\n");
    let (newer_says, unknown_says) = (
        "line 1: format 999 is newer than this nano-cordis reads".to_owned(),
        format!("line {}: event type `todo/changed` is not known here", end + 1),
    );
    for (text, says) in [(newer, newer_says), (unknown, unknown_says)] {
        let ended = resume(&folder, &log, text.as_bytes());
        assert_eq!(ended.code(), 2);
        assert!(ended.err.contains(&says), "{}", ended.err);
        assert_eq!(fs::read_to_string(&log).unwrap(), text);
    }
}

/// A closed log of so many turns, each with a call whose result has 10 kB.
fn long_log(turns: usize) -> String {
    let (mut text, mut seq) = (String::new(), 0);
    let mut add = |kind: &str, data: Value| {
        text += &json!({"seq": seq, "time": 1, "type": kind, "data": data}).to_string();
        text.push('\n');
        seq += 1;
    };
    for turn in 1..=turns {
        let id = format!("c{turn}");
        let function = json!({"name": "bash", "arguments": "{}"});
        let asked = json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": function}]});
        let told = json!({"role": "tool", "tool_call_id": id, "content": "x".repeat(10_000)});
        add("turn/start", json!({"turn": turn, "format": 1, "cwd": ""}));
        add("step/start", json!({"turn": turn, "step": 1}));
        add(
            "user/message",
            json!({"turn": turn, "step": 1, "message": {"role": "user", "content": "go"}}),
        );
        add("assistant/message", json!({"turn": turn, "step": 1, "message": asked}));
        add(
            "tool/call",
            json!({"turn": turn, "step": 1, "callId": id, "name": "bash", "arguments": "{}"}),
        );
        add(
            "tool/result",
            json!({"turn": turn, "step": 1, "callId": id, "name": "bash", "isError": false, "message": told}),
        );
        add("step/end", json!({"turn": turn, "step": 1}));
        add("turn/end", json!({"turn": turn, "reason": "completed"}));
    }
    text
}

/// Bytes that a program read, and the most memory that it had, after one turn beside or on a log of so many turns.
fn cost_of_a_turn(turns: usize, arguments: &[&str]) -> (u64, u64, u64) {
    let folder = Folder::with(&scripted("{content: ok}"));
    let log = folder.path().join(".nano/sessions/20260101-000000-abcdef.jsonl");
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    fs::write(&log, long_log(turns)).unwrap();
    let size = fs::metadata(&log).unwrap().len();

    let mut running = Running::start(folder.command(arguments));
    running.write("more\n");
    running.wait_for_output("assistant> ok");
    let of = |file: &str, field: &str| -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/{file}", running.id())).unwrap();
        let value = text.lines().find_map(|it| it.strip_prefix(field)).unwrap();
        value.trim().trim_end_matches(" kB").parse().unwrap()
    };
    let (read, peak) = (of("io", "rchar:"), of("status", "VmHWM:") * 1024);
    running.end_of_input();
    assert_eq!(running.ended().code(), 0);
    (size, read, peak)
}

#[test]
fn a_25_ten_times_the_log_is_read_once_and_takes_less_than_twice_its_size() {
    let resume = ["--resume", "20260101-000000-abcdef"];

    let (size, read, peak) = cost_of_a_turn(200, &resume);
    let (tenfold, read_tenfold, peak_tenfold) = cost_of_a_turn(2000, &resume);

    let more = tenfold - size;
    assert!((read_tenfold - read).abs_diff(more) < more / 100, "{read} then {read_tenfold} bytes");
    assert!(peak_tenfold - peak < 2 * more, "{peak} then {peak_tenfold} bytes for {more} more");
}

#[test]
fn a_25_a_new_session_does_not_read_the_logs_beside_it() {
    let (_, read, peak) = cost_of_a_turn(1, &[]);
    let (_, read_beside, peak_beside) = cost_of_a_turn(2000, &[]);

    assert!(read_beside < read + 20_000, "{read} then {read_beside} bytes");
    assert!(peak_beside < peak + 4_000_000, "{peak} then {peak_beside} bytes");
}
