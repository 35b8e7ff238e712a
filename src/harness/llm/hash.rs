//! The hash of a request, taken while its JSON is written: a long conversation is not copied for it.

use std::io::{self, BufWriter, Write};

use ring::digest::{Context, SHA256};
use serde::Serialize;

use crate::harness::session::message::{Header, Message};

/// SHA-256, in hexadecimal, of a value as compact JSON.
pub(super) fn of_json(value: &impl Serialize) -> String {
    let mut hashing = Hashing(Context::new(&SHA256));
    hashing.json(value);
    hashing.finish()
}

/// The hash of a request that grows: each message is read once, however many requests it is part of.
pub struct Growing {
    hashing: Hashing,
    is_empty: bool,
}

impl Growing {
    /// A request without messages.
    pub fn new(header: &Header) -> Self {
        let mut hashing = Hashing(Context::new(&SHA256));
        hashing.0.update(b"{\"header\":");
        hashing.json(header);
        hashing.0.update(b",\"messages\":[");
        Self { hashing, is_empty: true }
    }

    /// One message more.
    pub fn push(&mut self, message: &Message) {
        if !std::mem::take(&mut self.is_empty) {
            self.hashing.0.update(b",");
        }
        self.hashing.json(message);
    }

    /// What [`Request::hash`](super::Request::hash) says of it.
    pub fn hash(&self) -> String {
        let mut hashing = self.hashing.clone();
        hashing.0.update(b"]}");
        hashing.finish()
    }
}

#[derive(Clone)]
struct Hashing(Context);

impl Hashing {
    fn json(&mut self, value: &impl Serialize) {
        let mut writer = BufWriter::new(self);
        serde_json::to_writer(&mut writer, value).expect("it is plain JSON");
        writer.flush().expect("hashing does not fail");
    }

    fn finish(self) -> String {
        let digest = self.0.finish();
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
    }
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::proptest};

    use super::Growing;
    use crate::harness::{
        llm::Request,
        session::message::{Header, Message},
    };

    proptest! {
        #[test]
        fn a_request_that_grew_has_the_hash_of_the_whole(
            texts in collection::vec(".{0,9}", 0..6), system in ".{0,9}",
        ) {
            let header = Header::new("m", &system, Vec::new());
            let messages: Vec<_> = texts.iter().map(|it| Message::user(it)).collect();
            let mut growing = Growing::new(&header);
            for message in &messages {
                growing.push(message);
            }

            assert_eq!(growing.hash(), Request { header, messages }.hash());
        }
    }
}
