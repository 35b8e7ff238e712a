//! Finding sessions: ids, prefixes, the newest, the list.

use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    time::{Duration, SystemTime},
};

use nano_cordis::harness::persistence::saved::SavedState;

use super::{desk, stop_in_calls};
use crate::support::talk;

#[test]
fn h_086_an_unknown_id_is_named_with_the_newest_ones() {
    desk(async |desk| {
        let none = desk.refusal("abc");
        for (id, age) in [("first", 30), ("third", 10), ("second", 20)] {
            desk.put(id, "");
            let changed = SystemTime::now() - Duration::from_secs(age);
            File::options()
                .append(true)
                .open(desk.path(id))
                .unwrap()
                .set_modified(changed)
                .unwrap();
        }

        let unknown = desk.refusal("abc");

        let dir = desk.dir();
        assert_eq!(
            none,
            format!("no session `abc` in {}; nothing was saved there yet", dir.display())
        );
        assert_eq!(
            unknown,
            format!("no session `abc` in {}; the newest are third, second, first", dir.display())
        );
        assert_eq!(desk.persistence().newest().unwrap(), "third");
    });
}

#[test]
fn h_087_what_is_no_id_reaches_no_file() {
    desk(async |desk| {
        desk.save("inside", 1).await;
        fs::write(desk.folder.path().join("victim.jsonl"), "").unwrap();
        symlink("../../victim.jsonl", desk.path("link")).unwrap();

        for id in ["../../victim", "sub/x", ".", "..", "", "a\nb", "/etc/passwd", &"a".repeat(5000)]
        {
            let refused = desk.refusal(id);
            assert!(refused.ends_with("is not the id of a session"), "{refused}");
        }
        let link = desk.refusal("link");

        assert!(
            link.ends_with("link.jsonl is not a regular file; nothing was read from it"),
            "{link}"
        );
    });
}

#[test]
fn a_unique_beginning_of_an_id_is_enough() {
    desk(async |desk| {
        for id in ["20261130-160000-aaaaaa", "20261130-160000-bbbbbb", "20261130-160000"] {
            desk.put(id, "");
        }

        let unique = desk.load("20261130-160000-b").unwrap().id;
        let exact = desk.load("20261130-160000").unwrap().id;
        let ambiguous = desk.refusal("2026");

        assert_eq!(
            (unique.as_str(), exact.as_str()),
            ("20261130-160000-bbbbbb", "20261130-160000")
        );
        assert!(
            ambiguous.starts_with("`2026` may be any of ") && ambiguous.contains("160000-aaaaaa"),
            "{ambiguous}"
        );
    });
}

#[test]
fn h_094_a_session_in_use_is_refused_until_it_is_closed() {
    desk(async |desk| {
        desk.save("one", 1).await;
        let other = File::open(desk.path("one")).unwrap();
        other.try_lock().unwrap();

        let refused = desk.refusal("one");
        drop(other);
        desk.resume("one");
        let ours = File::open(desk.path("one")).unwrap();
        let held = ours.try_lock();
        desk.restart().await;

        assert_eq!(refused, "session `one` is in use by another nano-cordis");
        assert!(held.is_err());
        assert_eq!(
            desk.refusal("one"),
            refused,
            "the session is open still, and persistence has it again"
        );
    });
}

#[test]
fn a_session_is_locked_from_its_first_event() {
    desk(async |desk| {
        let session = desk.open("one");
        talk(&session, "hi", "hello");

        let held = File::open(desk.path("one")).unwrap().try_lock();

        assert!(held.is_err());
    });
}

#[test]
fn the_list_tells_turns_state_and_first_words_of_each() {
    desk(async |desk| {
        let closed = desk.save("closed", 2).await;
        stop_in_calls(&desk.open("open"), true);
        desk.put("empty", "");
        desk.put("begun", "{\"seq\":0,");
        desk.put("torn", closed.clone() + "{\"seq\":");
        desk.put("damaged", closed.clone() + "\0\0\n");
        let long = "x".repeat(100_000);
        desk.put("long", closed.replace("answer 2", &long));
        desk.put("endless", format!("{closed}{{\"seq\":12,\"x\":\"{long}{long}\"}}\n"));

        let mut list: Vec<_> = desk.persistence().list().unwrap();

        list.sort_by(|a, b| a.id.cmp(&b.id));
        let shown: Vec<_> =
            list.iter().map(|it| (it.id.as_str(), it.turns, it.state, it.words.as_str())).collect();
        let expected = [
            ("begun", 0, SavedState::Closed, ""),
            ("closed", 2, SavedState::Closed, "question 1"),
            ("damaged", 0, SavedState::Damaged, "question 1"),
            ("empty", 0, SavedState::Closed, ""),
            ("endless", 0, SavedState::Open, "question 1"),
            ("long", 2, SavedState::Closed, "question 1"),
            ("open", 1, SavedState::Open, "go"),
            ("torn", 2, SavedState::Closed, "question 1"),
        ];
        assert_eq!(shown, expected);
    });
}
