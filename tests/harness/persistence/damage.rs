//! Random logs with random damage: what is read is what was written, or nothing.
//!
//! Watch for: a log has no checksums, so one letter of a text that becomes another one is not seen. What the tests hold is
//! that no event but the damaged one is ever read otherwise than it was written.

use std::fs;

use nano_cordis::harness::{
    persistence::{
        error::PersistenceError,
        file::LogFile,
        read::{Log, Tail},
    },
    session::{
        event::{Event, EventBody, FORMAT, Reason},
        message::{AssistantMessage, Header, Message, ToolCallRequest},
    },
};
use proptest::{
    collection::vec,
    prelude::{ProptestConfig, Strategy, any, prop_oneof},
    prop_assert, prop_assert_eq, proptest,
    sample::Index,
    test_runner::TestCaseResult,
};
use serde_json::json;

use crate::support::{answered, folder};

/// A turn: what the user says, how many calls each of its steps makes, and whether a plugin notes something.
type Plan = (String, Vec<usize>, bool);

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    vec((".{0,12}", vec(0..3_usize, 1..4), any::<bool>()), 1..4)
}

/// The log of these turns.
fn log_of(plans: &[Plan]) -> Vec<Event> {
    let turns = (1..).zip(plans).flat_map(|(turn, plan)| turn_of(turn, plan));
    (0..).zip(turns).map(|(seq, body)| Event { seq, time: 1_796_054_400_000 + seq, body }).collect()
}

fn turn_of(turn: u32, (text, steps, notes): &Plan) -> Vec<EventBody> {
    let mut bodies = vec![EventBody::TurnStart { turn, format: FORMAT, cwd: text.clone() }];
    for (step, calls) in (1..).zip(steps) {
        bodies.push(EventBody::StepStart { turn, step });
        if step == 1 {
            bodies.push(EventBody::UserMessage { turn, step, message: Message::user(text) });
            let header = Header::new("m", text, vec![]);
            bodies.push(EventBody::RequestHeader { turn, step, header });
        }
        bodies.extend(calls_of(turn, step, *calls, text));
        bodies.push(EventBody::StepEnd { turn, step });
    }
    bodies.push(EventBody::TurnEnd { turn, reason: Reason::Completed, error: None });
    bodies.extend(notes.then(|| EventBody::ignorable("test/note", &json!([text])).unwrap()));
    bodies
}

fn calls_of(turn: u32, step: u32, count: usize, text: &str) -> Vec<EventBody> {
    let ids: Vec<_> = (0..count).map(|number| format!("c{turn}-{step}-{number}")).collect();
    let tool_calls = ids.iter().map(|id| ToolCallRequest::new(id, "bash", text)).collect();
    let content = Some(text.into());
    let message = AssistantMessage { content, tool_calls, ..AssistantMessage::default() };
    let mut bodies = vec![answered(turn, step, message)];
    for id in ids {
        let (name, arguments, message) = ("bash".to_owned(), text.into(), Message::tool(&id, text));
        let (call_id, name_too) = (id.clone(), name.clone());
        bodies.push(EventBody::ToolCall { turn, step, call_id, name, arguments });
        bodies.push(EventBody::ToolResult {
            turn,
            step,
            call_id: id,
            name: name_too,
            is_error: false,
            message,
        });
    }
    bodies
}

fn text_of(events: &[Event]) -> Vec<u8> {
    events.iter().map(|it| it.to_line() + "\n").collect::<String>().into()
}

/// What can happen to a file. The places are drawn before it is known how long it is.
#[derive(Clone, Debug)]
enum Damage {
    Flip(Index, u8),
    Insert(Index, Vec<u8>),
    Nulls(Index, usize),
    Remove(Index, usize),
    Swap(Index, Index),
    Repeat(Index, Index),
    Lose(Index),
}

fn damages() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    prop_oneof![
        (at(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        (at(), vec(any::<u8>(), 1..4)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        (at(), 1..600_usize).prop_map(|(at, count)| Damage::Nulls(at, count)),
        (at(), 1..200_usize).prop_map(|(at, count)| Damage::Remove(at, count)),
        (at(), at()).prop_map(|(one, two)| Damage::Swap(one, two)),
        (at(), at()).prop_map(|(line, to)| Damage::Repeat(line, to)),
        at().prop_map(Damage::Lose),
    ]
}

impl Damage {
    fn to(&self, text: &[u8]) -> Vec<u8> {
        let (mut bytes, length) = (text.to_vec(), text.len());
        let mut lines: Vec<&[u8]> = text.split_inclusive(|it| *it == b'\n').collect();
        let count = lines.len();
        match self {
            Self::Flip(at, bit) => bytes[at.index(length)] ^= 1 << bit,
            Self::Insert(at, new) => {
                drop(bytes.splice(at.index(length)..at.index(length), new.clone()));
            }
            Self::Nulls(at, many) => {
                drop(bytes.splice(at.index(length)..at.index(length), vec![0; *many]));
            }
            Self::Remove(at, many) => {
                let at = at.index(length);
                drop(bytes.drain(at..(at + many).min(length)));
            }
            Self::Swap(one, two) => lines.swap(one.index(count), two.index(count)),
            Self::Repeat(line, to) => lines.insert(to.index(count), lines[line.index(count)]),
            Self::Lose(line) => drop(lines.remove(line.index(count))),
        }
        match self {
            Self::Swap(..) | Self::Repeat(..) | Self::Lose(_) => lines.concat(),
            _ => bytes,
        }
    }
}

/// Reads these bytes as a log in a file; whatever comes of it, no byte of the file changes.
fn read(text: &[u8]) -> Result<Log, (usize, String)> {
    let folder = folder();
    let path = folder.path().join("one.jsonl");
    fs::write(&path, text).unwrap();

    let read = LogFile::open(&path, "one").unwrap().read();

    assert_eq!(fs::read(&path).unwrap(), text);
    read.map_err(|err| match err {
        PersistenceError::Damaged { line, problem, .. } => (line, problem),
        err => unreachable!("{err}"),
    })
}

/// The same events; but of the last ones some may lack, and one may be another if its line was the damaged one.
fn is_read_right(log: &Log, written: &[Event], lacking: bool, others: usize) -> TestCaseResult {
    prop_assert!(
        log.events.len() == written.len() || (lacking && log.events.len() < written.len())
    );
    let changed = log.events.iter().zip(written).filter(|(read, written)| read != written);
    prop_assert!(changed.count() <= others);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_21_what_was_written_is_read_back(plans in plans()) {
        let written = log_of(&plans);

        let log = read(&text_of(&written)).unwrap();

        prop_assert_eq!(log.events, written);
        prop_assert_eq!((log.tail, log.trace.open_turn()), (Tail::Clean, None));
    }

    #[test]
    fn a_21_damage_is_refused_by_line_or_changes_no_event_but_its_own(plans in plans(), damage in damages()) {
        let written = log_of(&plans);
        let text = text_of(&written);
        let damaged = damage.to(&text);

        match read(&damaged) {
            Err((line, problem)) => {
                let lines = damaged.split_inclusive(|it| *it == b'\n').count();
                prop_assert!((1..=lines).contains(&line) && !problem.contains('\n'), "{line}: {problem}");
            }
            Ok(log) => {
                let in_a_line = matches!(damage, Damage::Flip(..) | Damage::Insert(..) | Damage::Remove(..));
                let may_lack = log.tail == Tail::Torn || matches!(damage, Damage::Remove(..) | Damage::Lose(_));
                is_read_right(&log, &written, may_lack, usize::from(in_a_line))?;
            }
        }
    }

    #[test]
    fn a_21_a_cut_tail_leaves_the_whole_events_before_it(plans in plans(), at in any::<Index>()) {
        let written = log_of(&plans);
        let text = text_of(&written);
        let kept = &text[..at.index(text.len() + 1)];
        let whole = kept.split(|it| *it == b'\n').count() - 1;

        let log = read(kept).unwrap();

        let count = whole + usize::from(log.tail == Tail::NoLineEnd);
        prop_assert_eq!(&log.events[..], &written[..count]);
        prop_assert_eq!(log.tail == Tail::Torn, log.whole < kept.len() as u64);
    }
}
