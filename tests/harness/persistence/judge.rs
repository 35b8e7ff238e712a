//! Which logs are gone on with, which are refused, and what becomes of their bytes.

use std::fs;

use nano_cordis::harness::{
    persistence::read::{Fault, Tail, read},
    session::event::EventBody,
};
use proptest::{collection::vec, prelude::any, proptest};

use super::{desk, stop_in_calls};
use crate::support::talk;

const TURN: &str = concat!(
    r#"{"seq":0,"time":1,"type":"turn/start","data":{"turn":1,"format":1,"cwd":"/elsewhere"}}"#,
    "\n",
    r#"{"seq":1,"time":1,"type":"step/start","data":{"turn":1,"step":1}}"#,
    "\n",
    r#"{"seq":2,"time":1,"type":"user/message","data":{"turn":1,"step":1,"message":{"role":"user","content":"Grüße"}}}"#,
    "\n",
    r#"{"seq":3,"time":1,"type":"assistant/message","data":{"turn":1,"step":1,"message":{"role":"assistant","content":"hi"}}}"#,
    "\n",
    r#"{"seq":4,"time":1,"type":"step/end","data":{"turn":1,"step":1}}"#,
    "\n",
    r#"{"seq":5,"time":1,"type":"turn/end","data":{"turn":1,"reason":"completed"}}"#,
    "\n",
);

/// The first `count` lines.
fn head(count: usize) -> String {
    TURN.split_inclusive('\n').take(count).collect()
}

/// All lines, one of them changed.
fn with_line(number: usize, change: impl Fn(&str) -> Vec<u8>) -> Vec<u8> {
    let lines = TURN.split_inclusive('\n').zip(1..);
    lines.flat_map(|(line, n)| if n == number { change(line) } else { line.into() }).collect()
}

#[test]
fn h_081_a_log_that_stops_after_the_start_of_a_turn_is_refused() {
    desk(async |desk| {
        desk.put("one", head(1));

        let refused = desk.refusal("one");

        let path = desk.path("one");
        let expected = "stops within turn 1, at `turn/start` (line 1); `nano-cordis --repair one` closes the turn";
        assert_eq!(refused, format!("{} {expected}", path.display()));
    });
}

#[test]
fn h_082_a_log_that_stops_after_a_call_is_refused() {
    desk(async |desk| {
        stop_in_calls(&desk.open("one"), true);
        desk.app.unmount("persistence").await;
        desk.mount_without_sessions().await;

        let refused = desk.refusal("one");

        assert!(refused.contains("at `tool/call` (line 5)"), "{refused}");
    });
}

#[test]
fn h_084_a_torn_write_after_a_closed_turn_is_put_aside_and_the_session_goes_on() {
    desk(async |desk| {
        let torn = b"{\"seq\":6,\"time\":1,\"ty\xc3";
        desk.put("one", [TURN.as_bytes(), torn].concat());
        fs::write(desk.path("one").with_extension("jsonl.torn"), "of last week").unwrap();

        let loaded = desk.load("one").unwrap();
        let session =
            desk.app.service::<super::Sessions>().restore(&loaded.id, loaded.history).unwrap();
        let cut = desk.text("one");
        talk(&session, "more", "yes");

        assert_eq!(cut, TURN);
        assert_eq!(desk.names(), ["one.jsonl", "one.jsonl.torn", "one.jsonl.torn.2"]);
        let aside = desk.snapshot();
        assert_eq!((&aside[1].1[..], &aside[2].1[..]), (&b"of last week"[..], &torn[..]));
        assert!(loaded.notes[0].contains("its bytes (22) are now in"), "{:?}", loaded.notes);
        assert!(desk.text("one").starts_with(TURN) && desk.text("one").lines().count() == 12);
    });
}

#[test]
fn h_084_a_torn_write_in_an_open_turn_is_refused_unchanged_and_cut_by_a_repair() {
    desk(async |desk| {
        desk.put("one", head(3) + r#"{"seq":3,"#);

        let refused = desk.refusal("one");
        let repaired = desk.persistence().repair("one").unwrap();

        assert!(refused.contains("at `user/message` (line 3)"), "{refused}");
        assert_eq!((repaired.added.len(), repaired.notes.len()), (2, 1));
        assert!(desk.text("one").starts_with(&head(3)) && desk.text("one").lines().count() == 5);
        assert_eq!(desk.load("one").unwrap().history.len(), 5);
    });
}

#[test]
fn h_084_a_whole_event_without_a_line_end_counts_and_gets_its_line_end() {
    desk(async |desk| {
        desk.put("one", TURN.trim_end());

        let loaded = desk.load("one").unwrap();
        let (count, untouched) = (loaded.history.len(), desk.text("one"));
        let session = desk.app.service::<super::Sessions>().restore("one", loaded.history).unwrap();
        talk(&session, "more", "yes");

        assert_eq!((count, untouched.as_str()), (6, TURN.trim_end()));
        assert!(desk.text("one").starts_with(TURN));
        assert_eq!(desk.text("one").lines().count(), 12);
    });
}

#[test]
fn h_085_damage_is_refused_with_its_line_and_its_reason() {
    desk(async |desk| {
        let invalid =
            |line: &str| [&line.as_bytes()[..30], b"\xff", &line.as_bytes()[30..]].concat();
        let lines: Vec<_> = TURN.split_inclusive('\n').collect();
        let swapped = [lines[0], lines[1], lines[2], lines[4], lines[3], lines[5]].concat();
        let foreign = |line: &str| {
            format!(r#"{{"seq":3,"type":"todo/changed"}}{}"#, &line[line.len() - 1..]).into()
        };
        let cases = [
            ("nul", with_line(5, |_| [&[0; 300][..], b"\n"].concat()), "line 5: not a JSON object"),
            (
                "half",
                with_line(5, |line| [&line.as_bytes()[..20], b"\n"].concat()),
                "line 5: not a JSON object",
            ),
            ("swapped", swapped.into(), "line 4: seq is 4 where 3 is next"),
            (
                "twice",
                with_line(4, |line| line.repeat(2).into()),
                "line 5: seq is 3 where 4 is next",
            ),
            ("utf8", with_line(3, invalid), "line 3: not UTF-8"),
            (
                "half-pair",
                with_line(3, |line| line.replace("Gr", "\\ud83d").into()),
                "line 3: not a JSON object: an unpaired",
            ),
            ("type", with_line(4, foreign), "line 4: event type `todo/changed` is not known here"),
            (
                "format",
                with_line(1, |line| line.replace("\"format\":1", "\"format\":2").into()),
                "line 1: format 2 is newer",
            ),
            (
                "late",
                TURN.replace("\"seq\":", "\"seq\":1").into(),
                "line 1: seq is 10 where 1 is next",
            ),
        ];
        for (id, text, expected) in cases {
            desk.put(id, text);

            let refused = desk.refusal(id);

            let wanted = format!("{}, {expected}", desk.path(id).display());
            assert!(refused.starts_with(&wanted), "{refused}");
            assert!(desk.persistence().repair(id).is_err());
        }
    });
}

#[test]
fn h_085_an_event_of_a_newer_version_at_the_end_is_not_taken_for_a_torn_write() {
    desk(async |desk| {
        desk.put("one", TURN.to_string() + r#"{"seq":6,"type":"todo/changed"}"#);

        let refused = desk.refusal("one");

        assert!(
            refused.contains("line 7: event type `todo/changed` is not known here"),
            "{refused}"
        );
    });
}

#[test]
fn what_other_systems_and_writers_add_is_accepted() {
    desk(async |desk| {
        let header = "{\"type\":\"session\",\"version\":1}\n";
        desk.put("windows", format!("\u{feff}{}", TURN.replace('\n', "\r\n\r\n")));
        desk.put("header", format!("{header}{}", TURN.replace("\"time\":1,", "")));
        desk.put(
            "from-1",
            (0..6).rev().fold(TURN.to_string(), |text, n| {
                text.replace(&format!("\"seq\":{n},"), &format!("\"seq\":{},", n + 1))
            }),
        );
        desk.put("empty", "");

        let counts =
            ["windows", "header", "from-1", "empty"].map(|id| desk.load(id).unwrap().history.len());

        assert_eq!(counts, [6, 6, 6, 0]);
    });
}

#[test]
fn h_095_an_ignorable_event_of_an_unknown_type_is_loaded_and_not_derived() {
    desk(async |desk| {
        let strange = r#"{"seq":6,"type":"todo/changed","data":{"x":1},"ignorable":true}"#;
        desk.put("one", format!("{TURN}{strange}\n"));

        let session = desk.resume("one");

        assert_eq!((session.len(), session.messages().len()), (7, 2));
        assert!(
            matches!(&session.events()[6].body, EventBody::Ignorable { kind, .. } if kind == "todo/changed")
        );
    });
}

#[test]
fn a_session_of_another_folder_says_where_commands_run_now() {
    desk(async |desk| {
        desk.put("one", TURN);

        let loaded = desk.load("one").unwrap();

        let now = std::env::current_dir().unwrap();
        assert_eq!(
            loaded.notes,
            [format!("this session ran in /elsewhere; commands run in {} now", now.display())]
        );
    });
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in vec(any::<u8>(), 0..400), at in 0..TURN.len()) {
        let (before, after) = TURN.as_bytes().split_at(at);
        for text in [&bytes[..], &[before, &bytes].concat(), &[before, &bytes, after].concat()] {
            if let Ok(log) = read(text) {
                assert!(log.whole <= text.len() as u64);
                assert!(log.tail == Tail::Torn || log.whole == text.len() as u64);
            }
        }
    }

    #[test]
    fn no_cut_loses_a_whole_line(at in 0..=TURN.len(), rest in vec(any::<u8>(), 0..9)) {
        let kept = &TURN.as_bytes()[..at];
        let whole: Vec<_> = kept.split_inclusive(|&byte| byte == b'\n').filter(|it| it.ends_with(b"\n")).collect();
        let text = [kept, &rest].concat();

        match read(&text[..]) {
            Ok(log) => {
                assert!(log.events.len() >= whole.len());
                assert!(log.whole >= whole.concat().len() as u64);
            }
            Err(Fault::Line(line, _)) => assert_eq!(line, whole.len() + 1),
            Err(Fault::Io(err)) => panic!("{err}"),
        }
    }
}
