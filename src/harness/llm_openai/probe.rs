//! What holds whatever a server sends: said once, and tried by random tests here and by the fuzz targets.

use std::cell::RefCell;

use reqwest::StatusCode;

use super::{
    answer::Answer,
    body::Body,
    sse::{Event, Events},
};
use crate::harness::{
    env::mask::Mask,
    llm::{Delta, LlmError, Reply},
};

const KEY: &str = "sk-secret";

/// Events do not depend on how their bytes are cut, and none of them is longer than what came.
pub(crate) fn events(bytes: &[u8], size: usize) {
    let whole = events_of(&[bytes]);

    assert_eq!(events_of(&pieces(bytes, size)), whole);
    assert!(whole.iter().map(|it| it.data.len()).sum::<usize>() <= bytes.len());
}

/// A body is a reply or an error of one line, the same however it is cut; text that was shown is the text of the reply;
/// the key is in none of it.
pub(crate) fn body(bytes: &[u8], size: usize) {
    let (reply, shown) = read(&[bytes]);
    let (again, shown_again) = read(&pieces(bytes, size));

    assert_eq!(again, reply);
    match reply {
        Ok(reply) => {
            let text = reply.message.content.as_deref().unwrap_or_default();
            assert!(shown.is_empty() || shown == text, "{shown:?} is not {text:?}");
            assert_eq!(shown_again, shown);
            assert!(!format!("{text}{:?}", reply.message).contains(KEY));
        }
        Err(err) => {
            let said = err.to_string();
            assert!(!said.contains(|it: char| it.is_control()), "{said:?}");
            assert!(said.chars().count() < 1_500 && !said.contains(KEY), "{said:?}");
        }
    }
    assert!(!shown_again.contains(KEY));
}

/// The same for the pieces of a reply: each line is the data of an event.
pub(crate) fn deltas(lines: &[u8], size: usize) {
    let events = lines.split(|it| *it == b'\n').map(|it| [b"data: ", it, b"\n\n"].concat());
    body(&events.collect::<Vec<_>>().concat(), size);
}

fn pieces(bytes: &[u8], size: usize) -> Vec<&[u8]> {
    bytes.chunks(size.max(1)).collect()
}

fn events_of(pieces: &[&[u8]]) -> Vec<Event> {
    let (mut events, mut all) = (Events::default(), Vec::new());
    for piece in pieces {
        events.push(piece);
        all.extend(std::iter::from_fn(|| events.next()));
    }
    events.end();
    all.extend(std::iter::from_fn(|| events.next()));
    all
}

fn read(pieces: &[&[u8]]) -> (Result<Reply, LlmError>, String) {
    let mut answer = Answer {
        address: "https://host/v1/chat/completions".into(),
        status: StatusCode::OK,
        location: None,
        retry_after: None,
        text: String::new(),
        mask: Mask::new([KEY.into()]),
    };
    let (mut body, shown) = (Body::default(), RefCell::new(String::new()));
    let on_delta = |delta: Delta| {
        if let Delta::Text(text) = delta {
            shown.borrow_mut().push_str(&text);
        }
    };
    for piece in pieces {
        if body.is_done() {
            break;
        }
        let taken = body.take(piece);
        body.show(&answer.mask, &on_delta);
        if let Err(fault) = taken {
            return (Err(body.error(fault, &mut answer)), shown.into_inner());
        }
    }
    let reply = body.end(&mut answer, &on_delta);
    (reply, shown.into_inner())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// Anything, but with the names that matter, so that most of it gets far.
    fn anything() -> impl Strategy<Value = Value> {
        let name = "choices|message|delta|content|reasoning_content|reasoning_details|tool_calls|id|index|type|function\
                    |name|arguments|error|code|finish_reason|usage|text|role|x";
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            (0..3).prop_map(Value::from),
            "[a-z{}\\[\\]\"]{0,4}|sk-|sk-secret|secret".prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 40, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((name, inner), 0..5)
                    .prop_map(|it| Value::Object(it.into_iter().collect())),
            ]
        })
    }

    /// A piece of a reply in which almost every field is odd at times.
    fn chunk() -> impl Strategy<Value = String> {
        let arguments = r#"("(\{?|\\"a\\":1|\})"|null|\{"b":2\})"#;
        let call = format!(
            r#"\{{("index":[01],)?("id":"[ab]?",)?("type":null,)?"function":\{{("name":"(bash|x)?",)?"arguments":{arguments}\}}\}}"#
        );
        let delta = format!(
            r#"\{{("role":"assistant",)?("content":("([é ]?|sk-|secret)"|null),)?("reasoning":"hm",)?("tool_calls":(null|\[{call}(,{call})?\]),)?"x":1\}}"#
        );
        let choices =
            format!(r#"\[(null|\{{"delta":{delta}(,"finish_reason":("stop"|""|null))?\}})?\]"#);
        let chunk = format!(
            r#"(\[DONE\]|: ping||null|\{{"choices":{choices}(,"usage":(null|\{{"total_tokens":[0-9]\}}))?\}}|\{{"error":(""|null|\{{"message":"no"\}})\}})"#
        );
        proptest::string::string_regex(&chunk).unwrap()
    }

    #[test]
    fn what_does_not_end_is_refused_before_it_fills_the_memory() {
        let piece = vec![b'x'; 1 << 20];
        for first in ["{", "data: ", "data: {\"choices\":[]}\n\n: "] {
            let pieces = [first.as_bytes()].into_iter().chain(std::iter::repeat_n(&piece[..], 66));

            let (reply, _) = read(&pieces.collect::<Vec<_>>());

            let said = reply.unwrap_err().to_string();
            assert!(
                said.ends_with("the reply is longer than 64 MiB (`maxTokens` limits it)"),
                "{said}"
            );
        }
    }

    proptest! {
        #[test]
        fn h_113_no_bytes_make_the_reader_of_events_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), size in 1..9_usize) {
            events(&bytes, size);
        }

        #[test]
        fn no_document_makes_it_panic(value in anything(), size in 1..40_usize) {
            body(value.to_string().as_bytes(), size);
        }

        #[test]
        fn no_text_makes_it_panic(text in r#"( |\n|data:|[{}\[\]",:]|choices|1e999|\\ud800|.){0,20}"#, size in 1..9_usize) {
            body(text.as_bytes(), size);
        }

        #[test]
        fn no_chunk_makes_it_panic(values in prop::collection::vec(anything(), 0..4), size in 1..40_usize) {
            let lines: Vec<_> = values.iter().map(Value::to_string).collect();
            deltas(lines.join("\n").as_bytes(), size);
        }

        #[test]
        fn h_114_pieces_of_a_reply_are_put_together_however_they_are_cut(chunks in prop::collection::vec(chunk(), 0..9), size in 1..60_usize) {
            deltas(chunks.join("\n").as_bytes(), size);
        }

        #[test]
        fn no_bytes_make_the_reader_of_replies_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), size in 1..9_usize) {
            body(&bytes, size);
            deltas(&bytes, size);
        }
    }
}
