//! Calls and results, turns and steps: a log in which they do not fit together is not gone on with.

use super::{Desk, desk};

/// A log of these events, numbered, each `type` and the rest of its data.
fn log(events: &[(&str, &str)]) -> String {
    let line = |(seq, (kind, data)): (usize, &(&str, &str))| {
        let comma = if data.is_empty() { "" } else { "," };
        let number = if kind.starts_with("turn") { "" } else { ",\"step\":1" };
        format!(
            "{{\"seq\":{seq},\"time\":1,\"type\":\"{kind}\",\"data\":{{\"turn\":1{number}{comma}{data}}}}}\n"
        )
    };
    events.iter().enumerate().map(line).collect()
}

const ASKS: (&str, &str) = (
    "assistant/message",
    r#""message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{}"}}]}"#,
);
const SAYS: (&str, &str) =
    ("assistant/message", r#""message":{"role":"assistant","content":"done"}"#);
const CALL: (&str, &str) = ("tool/call", r#""callId":"c1","name":"bash","arguments":"{}""#);
const RESULT: (&str, &str) = (
    "tool/result",
    r#""callId":"c1","isError":false,"message":{"role":"tool","tool_call_id":"c1","content":"x"}"#,
);
const RESULT_OF_ANOTHER: &str =
    r#""callId":"c1","isError":false,"message":{"role":"tool","tool_call_id":"c2","content":"x"}"#;
const SAID: (&str, &str) = ("user/message", r#""message":{"role":"user","content":"go"}"#);
const BEGIN: [(&str, &str); 2] = [("turn/start", ""), ("step/start", "")];
const END: [(&str, &str); 2] = [("step/end", ""), ("turn/end", r#""reason":"completed""#)];

/// A turn of one step that holds these events, closed.
fn turn(events: &[(&str, &str)]) -> String {
    log(&[&BEGIN, events, &END].concat())
}

/// The log is refused by both, with this line and reason.
fn refused(desk: &Desk<'_>, text: &str, reason: &str) {
    desk.put("one", text);

    let refused = desk.refusal("one");
    let repair = desk.persistence().repair("one").unwrap_err().to_string();

    let wanted = format!("{}, {reason}; the file was left as it is", desk.path("one").display());
    assert_eq!(refused, wanted);
    assert_eq!(repair, format!("{wanted}: a repair only adds lines at the end"));
    assert_eq!(desk.text("one"), text);
}

#[test]
fn h_085_a_call_without_its_one_result_is_damage() {
    let cases = [
        (turn(&[SAID, ASKS]), "line 5: `step/end`: call `c1` has no result"),
        (turn(&[SAID, ASKS, CALL]), "line 6: `step/end`: call `c1` has no result"),
        (turn(&[SAID, ASKS, SAYS, RESULT]), "line 5: `assistant/message`: call `c1` has no result"),
        (
            turn(&[SAID, ASKS, CALL, CALL, RESULT]),
            "line 6: `tool/call`: call `c1` was started already",
        ),
        (
            turn(&[SAID, ASKS, RESULT, RESULT]),
            "line 6: `tool/result`: the model did not ask for call `c1`, or it has its result",
        ),
        (
            turn(&[SAID, ASKS, ("tool/result", RESULT_OF_ANOTHER)]),
            "line 5: `tool/result`: its message is not the result of call `c1`",
        ),
        (
            turn(&[SAID, RESULT]),
            "line 4: `tool/result`: the model did not ask for call `c1`, or it has its result",
        ),
        (
            turn(&[SAID, CALL, SAYS]),
            "line 4: `tool/call`: the model did not ask for call `c1`, or it has its result",
        ),
    ];
    desk(async move |desk| {
        for (text, reason) in cases {
            refused(desk, &text, reason);
        }
    });
}

#[test]
fn h_085_a_result_in_a_later_step_is_none() {
    let later =
        [&BEGIN[..], &[SAID, ASKS, CALL, RESULT], &END[..1], &[("step/start", r#""step":2"#)]];
    let text = log(&later.concat()).replace("\"step\":1,\"step\":2", "\"step\":2");
    let result =
        log(&[RESULT]).replace("\"seq\":0", "\"seq\":8").replace("\"step\":1", "\"step\":2");
    desk(async move |desk| {
        refused(
            desk,
            &(text + &result),
            "line 9: `tool/result`: the model did not ask for call `c1`, or it has its result",
        );
    });
}

#[test]
fn h_085_events_out_of_their_turn_and_step_are_damage() {
    let wrong = turn(&[SAID, SAYS]).replacen(
        "\"turn\":1,\"step\":1,\"message",
        "\"turn\":3,\"step\":1,\"message",
        2,
    );
    let cases = [
        (
            log(&[BEGIN[0], BEGIN[0]]),
            "line 2: `turn/start`: out of place: turn 1 is open, but no step",
        ),
        (log(&[BEGIN[1]]), "line 1: `step/start`: out of place: no turn is open"),
        (
            log(&[BEGIN[0], SAID, SAYS]),
            "line 3: `assistant/message`: out of place: turn 1 is open, but no step",
        ),
        (
            log(&[BEGIN[0], BEGIN[1], END[1]]),
            "line 3: `turn/end`: out of place: step 1 of turn 1 is open",
        ),
        (
            wrong,
            "line 4: `assistant/message`: numbered turn 3, step 1 where turn 1, step 1 is next",
        ),
    ];
    desk(async move |desk| {
        for (text, reason) in cases {
            refused(desk, &text, reason);
        }
    });
}

#[test]
fn h_085_such_an_event_is_no_torn_write_although_its_line_has_no_end() {
    let text = turn(&[SAID, SAYS]) + log(&[RESULT]).replace("\"seq\":0", "\"seq\":6").trim_end();
    desk(async move |desk| {
        refused(desk, &text, "line 7: `tool/result`: out of place: no turn is open");
    });
}

#[test]
fn turns_and_steps_may_be_counted_otherwise_than_here() {
    let text = turn(&[SAID, ASKS, CALL, RESULT]).replace("\"turn\":1", "\"turn\":7");
    desk(async move |desk| {
        desk.put("one", text.replace("\"step\":1", "\"step\":3"));

        let session = desk.resume("one");

        assert_eq!((session.turns(), session.messages().len()), (7, 3));
    });
}

#[test]
fn h_090_a_repair_closes_the_open_turn_of_a_log_that_leaves_numbers_out() {
    let text = turn(&[SAID, SAYS]) + &log(&[BEGIN[0], BEGIN[1], SAID, ASKS, CALL]);
    let numbered = text.lines().enumerate().map(|(seq, line)| {
        let (_, rest) = line.split_once(",\"time\"").unwrap();
        format!("{{\"seq\":{seq},\"time\"{rest}\n")
    });
    let text = numbered.collect::<String>();
    let text = text.replace("\"turn\":1,\"step\":1,", "").replace("{\"turn\":1,\"step\":1}", "{}");
    let text = text.replace("{\"turn\":1}", "{\"turn\":0}").replace("\"turn\":1,", "\"turn\":0,");
    desk(async move |desk| {
        desk.put("one", text);

        desk.refusal("one");
        let added = desk.persistence().repair("one").unwrap().added;
        let session = desk.resume("one");

        let places: Vec<_> = added.iter().map(|it| it.body.place()).collect();
        assert_eq!(places, [(2, 1), (2, 1), (2, 0)]);
        assert_eq!((session.turns(), session.messages().len()), (2, 5));
    });
}
