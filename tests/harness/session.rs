//! The log of a conversation: appending, broadcasting, order, ownership.

mod derive;
mod format;
mod store;

use std::{cell::Cell, rc::Rc};

use nano_cordis::{
    cordis::{BoxError, Context},
    harness::session::{
        Session, SessionEvent, Sessions,
        error::SessionError,
        event::{Event, EventBody, FORMAT, Reason},
        id::{Surroundings, is_id},
        message::{AssistantMessage, Header, Message, ToolSchema},
    },
};
use serde::{Serialize, Serializer, ser::Error};
use serde_json::{Value, json};

use crate::support::{App, answered, run, talk};

/// A session without a turn.
async fn session(app: &App) -> Rc<Session> {
    app.mount("session", json!({})).await;
    app.service::<Sessions>().create().unwrap()
}

fn turn_start(turn: u32) -> EventBody {
    EventBody::TurnStart { turn, format: FORMAT, cwd: String::new() }
}

fn note(text: &str) -> EventBody {
    EventBody::ignorable("test/note", &text).unwrap()
}

fn history(numbers: &[u64]) -> Vec<Event> {
    numbers.iter().map(|&seq| Event { seq, time: 5, body: note("old") }).collect()
}

#[test]
fn h_001_the_numbers_of_events_rise_by_one() {
    run(async |app| {
        let session = session(app).await;

        talk(&session, "hi", "hello");

        let numbers: Vec<_> = session.events().iter().map(|it| it.seq).collect();
        assert_eq!(numbers.len(), 6);
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    });
}

#[test]
fn h_002_the_first_event_of_a_fresh_session_has_the_number_0() {
    run(async |app| {
        let session = session(app).await;

        let event = session.append(turn_start(1)).unwrap();

        assert_eq!(event.seq, 0);
        assert_eq!(session.events()[0].seq, 0);
    });
}

#[test]
fn h_003_a_listener_gets_an_event_once_when_it_is_in_the_log() {
    run(async |app| {
        let session = session(app).await;
        let seen = app.record(|it: &SessionEvent| (it.event.seq, it.session.len()));

        session.append(turn_start(1)).unwrap();

        assert_eq!(*seen.borrow(), [(0, 1)]);
    });
}

#[test]
fn h_004_a_listener_cannot_append() {
    run(async |app| {
        let session = session(app).await;
        let refused = app
            .record(|it: &SessionEvent| it.session.append(note("inner")).unwrap_err().to_string());

        session.append(turn_start(1)).unwrap();
        let later = session.append(note("later"));

        assert_eq!(
            refused.borrow()[0],
            "cannot append `test/note` while another event is being recorded"
        );
        assert!(later.is_ok());
        let kinds: Vec<_> = session.events().iter().map(|it| it.body.kind().to_string()).collect();
        assert_eq!(kinds, ["turn/start", "test/note"]);
    });
}

#[test]
fn h_005_all_listeners_see_the_order_of_the_log() {
    run(async |app| {
        let session = session(app).await;
        let first = app.record(|it: &SessionEvent| it.event.seq);
        let second = app.record(|it: &SessionEvent| it.event.seq);

        talk(&session, "hi", "hello");

        assert_eq!(*first.borrow(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(*second.borrow(), *first.borrow());
    });
}

#[test]
fn h_006_a_listener_that_fails_stops_neither_the_append_nor_the_others() {
    run(async |app| {
        let session = session(app).await;
        app.on(|_: &Context, _: &SessionEvent| Err::<(), BoxError>("broken".into()));
        let seen = app.record(|it: &SessionEvent| it.event.seq);

        let appended = session.append(turn_start(1));

        assert!(appended.is_ok() && session.len() == 1);
        assert_eq!(*seen.borrow(), [0]);
        assert!(app.take_report().contains("broken"));
    });
}

#[test]
fn h_007_what_the_caller_does_to_its_value_does_not_reach_the_log() {
    run(async |app| {
        let session = session(app).await;
        let mut mine =
            Rc::new(AssistantMessage { content: Some("said".into()), ..Default::default() });
        session.append(turn_start(1)).unwrap();
        session.append(EventBody::StepStart { turn: 1, step: 1 }).unwrap();
        let mut body = answered(1, 1, AssistantMessage::default());
        if let EventBody::AssistantMessage { message, .. } = &mut body {
            *message = Rc::clone(&mine);
        }
        session.append(body).unwrap();

        Rc::make_mut(&mut mine).content = Some("changed".into());

        assert_eq!(session.messages()[0].text(), "said");
    });
}

#[test]
fn h_008_a_snapshot_of_the_events_is_the_callers_own() {
    run(async |app| {
        let session = session(app).await;
        session.append(turn_start(1)).unwrap();

        let mut snapshot = session.events();
        snapshot.push(Rc::new(Event { seq: 9, time: 9, body: note("mine") }));
        *Rc::make_mut(&mut snapshot[0]) = Event { seq: 8, time: 8, body: note("mine") };

        assert_eq!(session.len(), 1);
        assert_eq!(session.events()[0].body, turn_start(1));
    });
}

#[test]
fn h_009_a_history_is_not_broadcast_and_the_numbers_go_on() {
    run(async |app| {
        app.mount("session", json!({})).await;
        let seen = app.record(|it: &SessionEvent| it.event.seq);

        let session = app.service::<Sessions>().restore("old", history(&[0, 1, 2])).unwrap();
        let quiet = seen.borrow().is_empty();
        session.append(turn_start(1)).unwrap();

        assert!(quiet);
        assert_eq!(*seen.borrow(), [3]);
    });
}

#[test]
fn h_010_a_history_with_a_gap_or_a_duplicate_is_refused_by_index() {
    run(async |app| {
        app.mount("session", json!({})).await;
        let sessions = app.service::<Sessions>();

        let gap = |numbers: &[u64]| match sessions.restore("old", history(numbers)) {
            Err(SessionError::Gap { index, .. }) => Some(index),
            _ => None,
        };

        assert_eq!(gap(&[0, 1, 3]), Some(2));
        assert_eq!(gap(&[0, 1, 1]), Some(2));
        assert_eq!(gap(&[2, 3]), Some(0));
        assert_eq!(sessions.open().len(), 0);
        assert_eq!(gap(&[1, 2, 3]), None, "other writers begin at 1");
    });
}

#[test]
fn h_010_a_history_whose_events_are_out_of_place_is_refused_by_index() {
    run(async |app| {
        app.mount("session", json!({})).await;
        let (turn, step, message) = (1, 1, Message::tool("c1", "done"));
        let (call_id, name, is_error) = ("c1".to_owned(), "bash".to_owned(), false);
        let orphan = EventBody::ToolResult { turn, step, call_id, name, is_error, message };
        let bodies = [turn_start(1), EventBody::StepStart { turn, step }, orphan];
        let history = (0..).zip(bodies).map(|(seq, body)| Event { seq, time: 5, body }).collect();

        let refused = app.service::<Sessions>().restore("old", history).err().unwrap().to_string();

        assert!(
            refused.starts_with("event 2 of the history, `tool/result`: the model did not ask")
        );
    });
}

/// A value that has no JSON.
struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("no such form"))
    }
}

#[test]
fn h_011_what_is_no_json_or_could_not_be_read_back_is_refused_by_type() {
    run(async |app| {
        let session = session(app).await;
        let deep = (0..200).fold(Value::Null, |inner, _| json!([inner]));

        let no_json = EventBody::ignorable("test/odd", &Unwritable).unwrap_err().to_string();
        let too_deep = session
            .append(EventBody::ignorable("test/deep", &deep).unwrap())
            .unwrap_err()
            .to_string();
        let disguised = EventBody::Ignorable {
            kind: "turn/end".into(),
            data: json!({ "turn": 1, "reason": "error" }),
        };
        let disguised = session.append(disguised).unwrap_err().to_string();

        assert_eq!(no_json, "`test/odd`: no such form");
        assert!(
            too_deep.starts_with("cannot append `test/deep`: it would not be read back: "),
            "{too_deep}"
        );
        assert_eq!(disguised, "cannot append `turn/end`: it would be read back as another event");
        assert_eq!(session.len(), 0);
    });
}

#[test]
fn h_012_sessions_count_for_themselves_and_events_tell_theirs() {
    run(async |app| {
        app.mount("session", json!({})).await;
        let sessions = app.service::<Sessions>();
        let (one, two) = (sessions.create().unwrap(), sessions.create().unwrap());
        let seen = app.record(|it: &SessionEvent| (it.session.id().to_string(), it.event.seq));

        one.append(turn_start(1)).unwrap();
        two.append(turn_start(1)).unwrap();
        one.append(note("more")).unwrap();

        let (one, two) = (one.id().to_string(), two.id().to_string());
        assert_ne!(one, two);
        assert_eq!(*seen.borrow(), [(one.clone(), 0), (two, 0), (one, 1)]);
    });
}

#[test]
fn h_013_the_time_of_an_event_is_never_before_that_of_the_one_before() {
    run(async |app| {
        let clock = Rc::new(Cell::new(1_796_054_400_000));
        let now = Rc::clone(&clock);
        let outside = Surroundings { now: Box::new(move || now.get()), random: Box::new(|| 7) };
        app.ctx.provide(Rc::new(Sessions::new(&app.ctx, outside))).unwrap();
        let session = app.service::<Sessions>().create().unwrap();

        for time in [1_796_054_400_000, 1_796_054_399_000, 1_796_054_400_001] {
            clock.set(time);
            session.append(note("tick")).unwrap();
        }

        let times: Vec<_> = session.events().iter().map(|it| it.time).collect();
        assert_eq!(times, [1_796_054_400_000, 1_796_054_400_000, 1_796_054_400_001]);
    });
}

#[test]
fn a_fresh_id_tells_the_time_and_is_not_in_use() {
    run(async |app| {
        let outside = Surroundings { now: Box::new(|| 1_796_054_400_000), random: Box::new(|| 7) };
        app.ctx.provide(Rc::new(Sessions::new(&app.ctx, outside))).unwrap();
        let sessions = app.service::<Sessions>();

        let (one, two) = (sessions.create().unwrap(), sessions.create().unwrap());

        assert_eq!((one.id(), two.id()), ("20261130-160000-700000", "20261130-160000-800000"));
        assert!(is_id(one.id()));
    });
}

#[test]
fn an_event_out_of_its_place_is_refused() {
    run(async |app| {
        let session = session(app).await;
        let refused = |body| session.append(body).unwrap_err().to_string();
        let end = |turn| EventBody::TurnEnd { turn, reason: Reason::Completed, error: None };

        let early = refused(EventBody::StepStart { turn: 1, step: 1 });
        let wrong_turn = refused(turn_start(2));
        session.append(turn_start(1)).unwrap();
        let nested = refused(turn_start(2));
        session.append(EventBody::StepStart { turn: 1, step: 1 }).unwrap();
        let unclosed = refused(end(1));
        let message = Message::tool("c1", "done");
        let (call_id, name) = ("c1".to_string(), "bash".to_string());
        let unasked = refused(EventBody::ToolResult {
            turn: 1,
            step: 1,
            call_id,
            name,
            is_error: false,
            message,
        });

        assert_eq!(early, "cannot append `step/start`: out of place: no turn is open");
        assert_eq!(
            wrong_turn,
            "cannot append `turn/start`: numbered turn 2, step 0 where turn 1, step 0 is next"
        );
        assert_eq!(nested, "cannot append `turn/start`: out of place: turn 1 is open, but no step");
        assert_eq!(unclosed, "cannot append `turn/end`: out of place: step 1 of turn 1 is open");
        assert_eq!(
            unasked,
            "cannot append `tool/result`: the model did not ask for call `c1`, or it has its result"
        );
        assert_eq!(session.len(), 2);
    });
}

#[test]
fn a_session_is_closed_when_its_owner_unloads() {
    run(async |app| {
        app.mount("session", json!({})).await;
        let sessions = app.caller::<Sessions>("guest").await;
        let session = sessions.create().unwrap();
        let open = sessions.open().len();

        app.unmount("guest").await;

        assert_eq!((open, sessions.open().len()), (1, 0));
        let refused = session.append(turn_start(1)).unwrap_err().to_string();
        assert!(refused.ends_with("takes no more events: it is closed"), "{refused}");
    });
}

#[test]
fn a_session_cannot_be_open_twice_nor_have_an_odd_id() {
    run(async |app| {
        app.mount("session", json!({})).await;
        let sessions = app.service::<Sessions>();
        sessions.restore("one", vec![]).unwrap();

        let again = sessions.restore("one", vec![]);
        let odd = sessions.restore("../one", vec![]);

        assert!(matches!(again, Err(SessionError::AlreadyOpen(_))));
        assert!(matches!(odd, Err(SessionError::BadId(_))));
    });
}

#[test]
fn the_newest_header_counts() {
    run(async |app| {
        let session = session(app).await;
        let header = |model: &str| {
            Header::new(model, "Be brief.", vec![ToolSchema::new("b", "", json!({}))])
        };
        session.append(turn_start(1)).unwrap();
        session.append(EventBody::StepStart { turn: 1, step: 1 }).unwrap();
        let none = session.header();

        for model in ["first", "second"] {
            session
                .append(EventBody::RequestHeader { turn: 1, step: 1, header: header(model) })
                .unwrap();
        }

        assert_eq!((none, session.header()), (None, Some(header("second"))));
        assert_eq!((session.turns(), session.is_mid_turn()), (1, true));
    });
}
