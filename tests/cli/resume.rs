//! Going on with a saved session.

use std::fs;

use crate::support::{Folder, Running, id_of, kinds, list, said, script, scripted, texts};

const HELLO: &str = "{content: Hello}";

fn folder_with_a_session() -> (Folder, String) {
    let folder = Folder::with(&scripted(HELLO));
    folder.run(&["first"], "");
    let id = id_of(&folder.sessions()[0]);
    (folder, id)
}

#[test]
fn h_160_a_resumed_conversation_goes_on_in_the_same_log() {
    let (folder, id) = folder_with_a_session();

    let ended = folder.run(&["--resume", &id], "second\n");

    assert_eq!(said(&folder.log()), ["first", "second"]);
    assert_eq!(kinds(&folder.log()).iter().filter(|it| **it == "request/header").count(), 1);
    assert!(ended.err.starts_with(&format!("[nano-cordis] session {id} (")), "{}", ended.err);
}

#[test]
fn h_160_a_session_can_be_resumed_with_a_prompt_and_by_the_beginning_of_its_id() {
    let (folder, id) = folder_with_a_session();

    let ended = folder.run(&["-r", &id[..12], "second"], "");

    assert_eq!((said(&folder.log()), ended.code()), (vec!["first", "second"], 0));
}

#[test]
fn the_session_that_changed_last_can_be_continued() {
    let (folder, _) = folder_with_a_session();

    let ended = folder.run(&["-c", "second"], "");

    assert_eq!((said(&folder.log()), ended.code()), (vec!["first", "second"], 0));
    assert_eq!(Folder::with(&scripted(HELLO)).run(&["-c"], "").code(), 2);
}

#[test]
fn a_session_that_is_not_there_is_an_error_of_use() {
    let folder = Folder::with(&scripted(HELLO));

    for id in ["20260101-000000-abcdef", "../../victim", ""] {
        let ended = folder.run(&["--resume", id, "hi"], "");

        assert_eq!((ended.code(), ended.err.lines().count()), (2, 1), "{}", ended.err);
    }
    assert!(!folder.has(".nano"));
}

#[test]
fn an_open_turn_is_refused_until_it_is_repaired() {
    let (folder, id) = folder_with_a_session();
    let log = &folder.sessions()[0];
    let text = fs::read_to_string(log).unwrap();
    let open: String = text.split_inclusive('\n').take(4).collect();
    fs::write(log, &open).unwrap();

    let refused = folder.run(&["-r", &id, "second"], "");
    assert!(refused.err.contains("--repair") && refused.code() == 2, "{}", refused.err);
    assert_eq!(fs::read_to_string(log).unwrap(), open);
    let repaired = folder.run(&["--repair", &id], "");
    let resumed = folder.run(&["-r", &id, "second"], "");

    assert_eq!(
        (repaired.code(), resumed.code(), said(&folder.log())),
        (0, 0, vec!["first", "second"])
    );
    assert_eq!(repaired.out, format!("session {id} is closed now; appended step/end, turn/end\n"));
}

#[test]
fn a_session_that_is_in_use_is_refused() {
    let (folder, id) = folder_with_a_session();
    let mut holder = Running::start(folder.command(&["-r", &id]));
    holder.write("second\n");
    holder.wait_for_error("[nano-cordis] session ");

    let refused = folder.run(&["-r", &id, "third"], "");
    holder.end_of_input();

    assert!(refused.err.contains("in use") && refused.code() == 2, "{}", refused.err);
    assert_eq!(holder.ended().code(), 0);
}

#[test]
fn sessions_are_listed_one_a_line() {
    let (folder, id) = folder_with_a_session();

    let listed = folder.run(&["--sessions"], "");

    assert_eq!((listed.out.lines().count(), listed.code()), (1, 0));
    for part in [&id, "1 turn ", "closed", "first"] {
        assert!(listed.out.contains(part), "{part} is not in {}", listed.out);
    }
    assert_eq!(Folder::new().run(&["--sessions"], "").out, "");
}

#[test]
fn a_refused_call_is_part_of_the_history_that_is_resumed() {
    let folder = Folder::new();
    folder.run(&["Say hello"], "n\n");
    folder.save(&list(&[("llm", &script("{content: '{{all good}}'}"))]));

    let ended = folder.run(&["-c", "go on"], "");

    assert_eq!((ended.code(), texts(&folder.log(), "tool/result").len()), (0, 1), "{}", ended.err);
}

#[test]
fn a_fork_is_a_new_session_that_knows_the_old_one() {
    let folder = Folder::with(&scripted(HELLO));
    folder.run(&["first"], "");
    let old = folder.sessions()[0].clone();
    let text = fs::read(&old).unwrap();

    let one_shot = folder.run(&["--fork", &id_of(&old)[..12], "second"], "");
    let again = folder.run(&["--fork", &id_of(&old)], "third\n");

    assert_eq!((one_shot.code(), again.code()), (0, 0), "{} {}", one_shot.err, again.err);
    let note = format!("[nano-cordis] it begins with 1 turn of session {}\n", id_of(&old));
    assert!(one_shot.err.contains(&note) && again.err.contains(&note), "{}", again.err);
    assert_eq!(fs::read(&old).unwrap(), text);
    let listed = folder.run(&["--sessions"], "").out;
    assert_eq!(listed.matches(&format!("first  (forked from {})\n", id_of(&old))).count(), 2);
    let new = listed.lines().next().unwrap().split(' ').next().unwrap();
    assert!(!id_of(&old).starts_with(new) && again.err.contains(new), "{listed}");
    assert_eq!(folder.run(&["--resume", new, "fourth"], "").code(), 0);
}

#[test]
fn a_fork_that_makes_no_sense_is_refused() {
    let (folder, id) = folder_with_a_session();
    for arguments in [
        &["--fork", &id, "--resume", &id][..],
        &["--fork", &id, "-c"],
        &["--fork", &id, "--sessions"],
        &["--fork", &id, "--repair", &id],
        &["--fork", &id, "--check"],
        &["--fork", "nowhere", "hi"],
        &["--fork", "../x"],
        &["--fork"],
    ] {
        let ended = folder.run(arguments, "");

        assert_eq!(
            (ended.code(), ended.err.lines().count()),
            (2, 1),
            "{arguments:?} {}",
            ended.err
        );
    }
    assert_eq!(folder.sessions().len(), 1);
}
