//! A new session that begins like a saved one.

use serde_json::{Value, json};

use super::{desk, fs};
use nano_cordis::harness::session::event::EventBody;

#[test]
fn a_fork_begins_with_the_bytes_of_the_old_log_and_says_where_it_came_from() {
    desk(async |desk| {
        let old = desk.save("old", 2).await;

        let loaded = desk.persistence().fork("ol").unwrap();

        let new = desk.text(&loaded.id);
        let (header, events) = new.split_once('\n').unwrap();
        let header: Value = serde_json::from_str(header).unwrap();
        assert_eq!((events, desk.text("old")), (old.as_str(), old.clone()));
        assert_eq!((&header["type"], &header["id"]), (&json!("session"), &json!(loaded.id)));
        let last = old.lines().count() - 1;
        assert_eq!(header["forkedFrom"], json!({ "session": "old", "turns": 2, "seq": last }));
        assert_eq!(loaded.notes, ["it begins with 2 turns of session old"]);
    });
}

#[test]
fn a_fork_goes_on_in_its_own_log_and_can_be_resumed_listed_and_forked() {
    desk(async |desk| {
        desk.save("old", 1).await;
        let first = desk.persistence().fork("old").unwrap().id;
        desk.restart().await;

        let session = desk.resume(&first);
        super::talk(&session, "more", "well");
        let second = desk.persistence().fork(&first).unwrap();

        assert_eq!((session.messages().len(), second.history.len()), (4, session.len()));
        let saved = desk.persistence().list().unwrap();
        let of = |id: &str| saved.iter().find(|it| it.id == id).unwrap();
        assert_eq!((of(&first).turns, of(&first).words.as_str()), (2, "question 1"));
        assert_eq!(of(&first).forked_from.as_deref(), Some("old"));
        assert_eq!(of(&second.id).forked_from, Some(first));
        assert_eq!(of("old").forked_from, None);
    });
}

#[test]
fn what_is_no_whole_turn_is_left_out_of_a_fork_and_that_is_said() {
    desk(async |desk| {
        let whole = desk.save("old", 1).await;
        let begun = whole.replace(r#""turn":1"#, r#""turn":2"#);
        let rest = |lines: usize| -> String {
            let line = |(n, line): (usize, &str)| {
                let seq = format!(r#"{{"seq":{}"#, n + whole.lines().count());
                line.replacen(&format!(r#"{{"seq":{n}"#), &seq, 1) + "\n"
            };
            begun.lines().enumerate().map(line).take(lines).collect()
        };
        for (tail, said) in [
            (rest(3), "turn 2 of old did not come to its end and is left out"),
            (rest(3) + r#"{"seq":9,"ti"#, "turn 2 of old did not come to its end and is left out"),
            (r#"{"seq":9,"ti"#.into(), "old ends with a write that was cut short; it is left out"),
        ] {
            desk.put("old", format!("{whole}{tail}"));

            let loaded = desk.persistence().fork("old").unwrap();

            assert_eq!(loaded.notes[1..], [said]);
            assert!(desk.text(&loaded.id).ends_with(&whole), "{tail}");
            assert_eq!(desk.text("old"), format!("{whole}{tail}"));
        }
    });
}

#[test]
fn a_log_in_use_can_be_forked_and_one_without_a_line_end_gets_it() {
    desk(async |desk| {
        let whole = desk.save("old", 1).await;
        desk.put("old", whole.trim_end());
        desk.resume("old");

        let loaded = desk.persistence().fork("old").unwrap();

        assert!(desk.text(&loaded.id).ends_with(&format!("\n{whole}")));
    });
}

#[test]
fn the_logs_of_others_are_forked_without_their_first_line() {
    desk(async |desk| {
        let whole = desk.save("old", 1).await;
        for before in [
            "\u{feff}",
            "{\"type\":\"session\",\"id\":\"x\"}\n\n",
            "\u{feff}{\"type\":\"session\"}\n",
        ] {
            desk.put("old", format!("{before}{whole}"));

            let loaded = desk.persistence().fork("old").unwrap();

            let text = desk.text(&loaded.id);
            assert_eq!(text.split_once('\n').unwrap().1, whole, "{before:?}");
            desk.restart().await;
            assert_eq!(desk.load(&loaded.id).unwrap().history.len(), loaded.history.len());
        }
    });
}

#[test]
fn what_cannot_be_forked_is_refused_by_its_line_and_leaves_nothing() {
    desk(async |desk| {
        let whole = desk.save("old", 1).await;
        let open: String = whole.split_inclusive('\n').take(3).collect();
        let unknown =
            format!("{whole}{{\"seq\":7,\"time\":0,\"type\":\"new/thing\",\"data\":{{}}}}\n");
        for (text, said) in [
            (open, "holds no whole turn"),
            (String::new(), "holds no whole turn"),
            (whole.replacen("user", "us\u{1}er", 1), "line 3"),
            (unknown, "new/thing"),
        ] {
            desk.put("old", &text);

            let refused = desk.persistence().fork("old").unwrap_err().to_string();

            assert!(refused.contains(said), "{refused}");
            assert_eq!(desk.text("old"), text);
        }
        for (id, said) in [("nowhere", "no session `nowhere`"), ("../old", "not the id")] {
            let refused = desk.persistence().fork(id).unwrap_err().to_string();
            assert!(refused.contains(said), "{refused}");
        }
        assert_eq!(fs::read_dir(desk.dir()).unwrap().count(), 1, "nothing new");
    });
}

#[test]
fn the_unknown_fields_of_a_log_come_along() {
    desk(async |desk| {
        let whole = desk.save("old", 1).await;
        let text = whole.replacen(r#""turn":1"#, r#""extra":"kept","turn":1"#, 1);
        desk.put("old", &text);

        let loaded = desk.persistence().fork("old").unwrap();

        assert!(matches!(loaded.history[0].body, EventBody::TurnStart { turn: 1, .. }));
        assert!(desk.text(&loaded.id).contains(r#""extra":"kept""#));
    });
}
