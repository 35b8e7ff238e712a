//! The doors of the fuzz targets in `fuzz/`, one for each parser of foreign bytes: what must hold whatever comes.
//!
//! Built for the targets (`--cfg fuzzing`) and for the random tests below, which try the same with less patience.
//! Watch for: a door panics when a promise is broken. That is what both of them look for.

use std::rc::Rc;

use serde_json::Value;

use crate::{
    cordis::loader::entries,
    extras::script,
    harness::{
        cli::text,
        llm_openai::probe,
        persistence::read::{Tail, read},
        tools::arguments,
    },
};

/// Bytes into events of a stream. The first byte says into how long pieces the rest is cut, here and below.
pub fn events(bytes: &[u8]) {
    let (size, bytes) = cut(bytes);
    probe::events(bytes, size);
}

/// The body of an answer into a reply.
pub fn reply(bytes: &[u8]) {
    let (size, bytes) = cut(bytes);
    probe::body(bytes, size);
}

/// Chunks of a stream, one a line, into a reply with its tool calls.
pub fn deltas(bytes: &[u8]) {
    let (size, bytes) = cut(bytes);
    probe::deltas(bytes, size);
}

/// The argument text of a call: what is shown before it runs is what runs, and a complaint is short.
pub fn arguments(bytes: &[u8]) {
    let raw = String::from_utf8_lossy(bytes);
    match arguments::parse(&raw) {
        Ok(parsed) => {
            let shown: Value = serde_json::from_str(&text::arguments(&raw)).expect("JSON is shown");
            assert_eq!(shown, Value::Object(parsed));
        }
        Err(problem) => assert!(problem.chars().count() < 600, "{problem}"),
    }
}

/// A log: what was read reads the same once more, and of a torn one the whole part does.
pub fn log(bytes: &[u8]) {
    let Ok(log) = read(bytes) else { return };
    let whole = usize::try_from(log.whole).expect("it came from memory");
    assert!(log.tail == Tail::Torn || whole == bytes.len());
    let again = read(&bytes[..whole]).expect("the whole part was read before");
    assert_eq!(again.events, log.events);
    let lines: String = log.events.iter().map(|it| it.to_line() + "\n").collect();
    assert_eq!(read(lines.as_bytes()).expect("events were written").events, log.events);
}

/// `cordis.yml`: entries have ids of their own, and a refusal can be said.
pub fn list(bytes: &[u8]) {
    let text: Rc<str> = String::from_utf8_lossy(bytes).into();
    match entries::read(&text) {
        Ok(entries) => {
            let mut ids: Vec<_> = entries.iter().map(|it| &it.id).collect();
            ids.sort();
            ids.dedup();
            assert_eq!(ids.len(), entries.len());
        }
        Err(cause) => assert!(!cause.to_string().is_empty()),
    }
}

/// Text for the terminal: nothing hostile is left, and pieces come out as the whole.
pub fn screen(bytes: &[u8]) {
    let whole = String::from_utf8_lossy(bytes);
    let harmless = text::harmless(&whole);
    let is_plain = |it: char| matches!(it, '\n' | '\t') || !it.is_control();
    assert!(harmless.chars().all(|it| is_plain(it) && !('\u{202a}'..='\u{202e}').contains(&it)));
    assert!(!text::line(&whole).contains(|it: char| it.is_control()));
    let pieces = whole.split_inclusive(' ').map(text::harmless);
    assert_eq!(pieces.collect::<String>(), harmless);
}

/// A script: it becomes a module, or is refused at a place of it.
pub fn script(bytes: &[u8]) {
    script::probe::source(bytes);
}

fn cut(bytes: &[u8]) -> (usize, &[u8]) {
    bytes.split_first().map_or((1, bytes), |(size, rest)| (usize::from(*size) + 1, rest))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::Index};

    use super::*;

    const EVENTS: &str = "\u{8}: busy\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"h\u{e9}\"}}]}\n\nevent: error\rdata: 1\r\r";
    const REPLY: &str = "\u{8}\n{\"choices\":[{\"message\":{\"content\":null,\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"x\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"stop\"}],\"usage\":{\"total_tokens\":1}}";
    const DELTAS: &str = "\u{8}{\"choices\":[{\"delta\":{\"content\":\"sk-\",\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"x\",\"arguments\":\"{\"}}]}}]}\n{\"choices\":[{\"delta\":{\"content\":\"secret\",\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"}\"}}]},\"finish_reason\":\"stop\"}]}\n[DONE]";
    const ARGUMENTS: &str =
        "\"{\\\"command\\\": \\\"echo \\\\ud83d\\\\ude00\\\", \\\"n\\\": [1e5, null]}\"";
    const LOG: &str = "{\"seq\":0,\"time\":1,\"type\":\"turn/start\",\"data\":{\"turn\":1,\"format\":1,\"cwd\":\"/\"}}\n{\"seq\":1,\"time\":2,\"type\":\"user/message\",\"data\":{\"turn\":1,\"step\":1,\"message\":{\"role\":\"user\",\"content\":\"h\u{e9}\"}}}\n";
    const LIST: &str = "- id: a\n  name: session\n  config: { x: &b [1, '2'], y: *b }\n- id: c\n  name: cli\n  optional: true\n";
    const SCREEN: &str = "a\u{1b}[2J\r\n\t\u{202e}b \u{9b}\u{1f469}\u{200d}\u{1f467} \u{e0041}";

    const SCRIPT: &str = "import { type A, b } from './b'\nexport const a = <T,>(x?: T): A<T>[] => [`${b!}` as any]\nenum E { B = 1 }\n";

    /// Bytes in place of some of the sample's: most of what is tried is nearly right.
    fn damaged(sample: &str, damage: &[(Index, usize, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = sample.as_bytes().to_vec();
        for (at, length, with) in damage {
            let at = at.index(bytes.len() + 1);
            let end = bytes.len().min(at + length);
            bytes.splice(at..end, with.iter().copied());
        }
        bytes
    }

    proptest! {
        #[test]
        fn hostile_bytes_break_no_promise(
            damage in vec((any::<Index>(), 0..9_usize, vec(any::<u8>(), 0..5)), 0..4),
            other in vec(any::<u8>(), 0..60),
        ) {
            for (door, sample) in [
                (events as fn(&[u8]), EVENTS), (reply, REPLY), (deltas, DELTAS), (arguments, ARGUMENTS), (log, LOG),
                (list, LIST), (screen, SCREEN), (script, SCRIPT),
            ] {
                door(sample.as_bytes());
                door(&damaged(sample, &damage));
                door(&other);
            }
        }
    }
}
