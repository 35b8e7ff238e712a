//! The body of an answer while it comes in: a document or a stream of events, whichever was asked for.
//!
//! Watch for: the first bytes decide, not the type that the server states; some send events as JSON or plain text.

use super::{
    answer::Answer,
    reply,
    sse::Events,
    stream::{Fault, LARGEST, Stream},
};
use crate::harness::{
    env::mask::{Mask, Veil},
    llm::{Delta, LlmError, Reply},
};

/// What errors may quote of a stream.
const LONGEST_START: usize = 2_000;
const BOM: &[u8] = "\u{feff}".as_bytes();
const FIELDS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];

/// What has come so far.
#[derive(Debug, Default)]
pub(super) struct Body {
    /// All of a document, the beginning of a stream.
    start: Vec<u8>,
    kind: Kind,
}

#[derive(Debug, Default)]
enum Kind {
    #[default]
    Unknown,
    Document,
    Stream(Box<Streaming>),
}

#[derive(Debug, Default)]
struct Streaming {
    events: Events,
    stream: Stream,
    text: Veil,
    thoughts: Veil,
}

impl Body {
    /// Takes the next bytes; says whether they brought the reply forward.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<bool, Fault> {
        match &mut self.kind {
            Kind::Stream(streaming) => {
                let room = LONGEST_START.saturating_sub(self.start.len());
                self.start.extend_from_slice(&bytes[..bytes.len().min(room)]);
                streaming.take(bytes)
            }
            Kind::Document => {
                self.keep(bytes)?;
                Ok(!bytes.trim_ascii().is_empty())
            }
            Kind::Unknown => self.begin(bytes),
        }
    }

    /// What can be shown of it and was not before.
    pub(super) fn show(&mut self, mask: &Mask, on_delta: &dyn Fn(Delta)) {
        let Kind::Stream(it) = &mut self.kind else { return };
        let thoughts = it.thoughts.lift(it.stream.thoughts(), mask).map(Delta::Reasoning);
        let text = it.text.lift(it.stream.text(), mask).map(Delta::Text);
        thoughts.into_iter().chain(text).for_each(on_delta);
    }

    /// Nothing more is awaited, although the connection may stay open.
    pub(super) fn is_done(&self) -> bool {
        matches!(&self.kind, Kind::Stream(it) if it.stream.is_done())
    }

    /// All that matters is there; if the rest does not come, nothing is lost.
    pub(super) fn is_whole(&self) -> bool {
        matches!(&self.kind, Kind::Stream(it) if it.stream.is_whole())
    }

    /// The reply in it, now that no more comes.
    pub(super) fn end(
        self,
        answer: &mut Answer,
        on_delta: &dyn Fn(Delta),
    ) -> Result<Reply, LlmError> {
        self.quote_in(answer);
        match self.kind {
            Kind::Stream(streaming) => streaming.end(answer, on_delta),
            Kind::Document | Kind::Unknown => reply::read(answer, reply::document(answer)?),
        }
    }

    /// The error that a fault in it is.
    pub(super) fn error(&self, fault: Fault, answer: &mut Answer) -> LlmError {
        self.quote_in(answer);
        error(fault, answer)
    }

    fn quote_in(&self, answer: &mut Answer) {
        let text = String::from_utf8_lossy(without_blanks(&self.start));
        answer.text = answer.mask.text(&text).into_owned();
    }

    /// Blank lines before the document are how some servers say that they are still there.
    fn begin(&mut self, bytes: &[u8]) -> Result<bool, Fault> {
        self.keep(bytes)?;
        let blank = self.start.len() - without_blanks(&self.start).len();
        self.start.drain(..blank);
        let text = self.start.as_slice();
        if BOM.starts_with(text) {
            return Ok(false);
        }
        if FIELDS.iter().any(|field| text.starts_with(field)) {
            let all = self.start.clone();
            self.start.truncate(LONGEST_START);
            let mut streaming = Box::<Streaming>::default();
            let progress = streaming.take(&all);
            self.kind = Kind::Stream(streaming);
            return progress;
        }
        if !FIELDS.iter().any(|field| field.starts_with(text)) {
            self.kind = Kind::Document;
        }
        Ok(true)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        if self.start.len() + bytes.len() > LARGEST {
            return Err(Fault::TooLong);
        }
        self.start.extend_from_slice(bytes);
        Ok(())
    }
}

impl Streaming {
    fn take(&mut self, bytes: &[u8]) -> Result<bool, Fault> {
        let before = (self.stream.size(), self.stream.is_done());
        self.events.push(bytes);
        while let Some(event) = self.events.next() {
            self.stream.take(&event)?;
        }
        if self.events.held() > LARGEST {
            return Err(Fault::TooLong);
        }
        Ok(before != (self.stream.size(), self.stream.is_done()))
    }

    fn end(mut self, answer: &Answer, on_delta: &dyn Fn(Delta)) -> Result<Reply, LlmError> {
        self.events.end();
        while let Some(event) = self.events.next() {
            match self.stream.take(&event) {
                // The connection broke within it; whether that matters is seen below.
                Ok(()) | Err(Fault::Damaged(_)) => {}
                Err(fault) => return Err(error(fault, answer)),
            }
        }
        let Self { stream, mut text, mut thoughts, .. } = self;
        if !stream.is_whole() {
            let said = if stream.size() == 0 { answer.text.as_str() } else { "" };
            return Err(answer.broken(&format!("the stream ended before the reply did {said}")));
        }
        let thoughts = thoughts.end(stream.thoughts(), &answer.mask).map(Delta::Reasoning);
        let text = text.end(stream.text(), &answer.mask).map(Delta::Text);
        thoughts.into_iter().chain(text).for_each(on_delta);
        reply::read(answer, stream.whole())
    }
}

fn without_blanks(mut bytes: &[u8]) -> &[u8] {
    loop {
        let rest = bytes.trim_ascii_start();
        match rest.strip_prefix(BOM) {
            Some(after) => bytes = after,
            None => return rest,
        }
    }
}

fn error(fault: Fault, answer: &Answer) -> LlmError {
    match fault {
        Fault::Stated(body) => answer.error_in(&body),
        Fault::Damaged(problem) => answer.broken(&problem),
        Fault::TooLong => answer.flood(LARGEST),
    }
}
