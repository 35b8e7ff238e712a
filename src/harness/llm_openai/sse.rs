//! Server-sent events: bytes in, events out.
//!
//! Watch for: bytes are cut at line ends only and never decoded here, so that a character may come in two pieces. A line
//! is searched once, however many pieces it comes in.

const BOM: &[u8] = b"\xef\xbb\xbf";

/// What one event carries.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Whether it calls itself `error`.
    pub is_error: bool,
    /// The values of its `data` lines, with a line feed between each two.
    pub data: Vec<u8>,
}

/// Bytes that are no event yet.
#[derive(Debug, Default)]
pub(super) struct Events {
    bytes: Vec<u8>,
    /// Where the next line begins, and up to where no end of it was found.
    line: usize,
    searched: usize,
    /// The last line ended in a carriage return; a line feed after it belongs to it.
    after_return: bool,
    /// The first line is behind us, and with it the mark that may precede it.
    began: bool,
    data: Option<Vec<u8>>,
    is_error: bool,
}

impl Events {
    /// Takes the next bytes as they come.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.line);
        self.searched -= self.line;
        self.line = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Nothing more comes: an event without its empty line is complete too.
    // Differs: by the standard such an event is dropped. Servers forget the last line end, and half an event is no JSON.
    pub(super) fn end(&mut self) {
        self.push(b"\n\n");
    }

    /// The next event that is complete.
    pub(super) fn next(&mut self) -> Option<Event> {
        while let Some((from, to)) = self.next_line() {
            if from == to {
                let is_error = std::mem::take(&mut self.is_error);
                if let Some(data) = self.data.take() {
                    return Some(Event { is_error, data });
                }
            } else {
                self.field(from, to);
            }
        }
        None
    }

    /// How much is kept for later.
    pub(super) fn held(&self) -> usize {
        self.bytes.len() - self.line + self.data.as_ref().map_or(0, Vec::len)
    }

    /// Beginning and end of the next line, without its line end.
    fn next_line(&mut self) -> Option<(usize, usize)> {
        if self.after_return {
            let next = *self.bytes.get(self.line)?;
            self.after_return = false;
            self.line += usize::from(next == b'\n');
            self.searched = self.line;
        }
        let found = self.bytes[self.searched..].iter().position(|it| matches!(it, b'\n' | b'\r'));
        let Some(length) = found else {
            self.searched = self.bytes.len();
            return None;
        };
        let (mut from, to) = (self.line, self.searched + length);
        if !std::mem::replace(&mut self.began, true) && self.bytes[from..to].starts_with(BOM) {
            from += BOM.len();
        }
        self.after_return = self.bytes[to] == b'\r';
        (self.line, self.searched) = (to + 1, to + 1);
        Some((from, to))
    }

    /// Only `data` and the name `error` mean something; `:` begins a comment, `id` and `retry` are for browsers.
    fn field(&mut self, from: usize, to: usize) {
        let line = &self.bytes[from..to];
        let colon = line.iter().position(|it| *it == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match (name, &mut self.data) {
            (b"data", None) => self.data = Some(value.to_vec()),
            (b"data", Some(data)) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            (b"event", _) => self.is_error = value == b"error",
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let (mut events, mut read) = (Events::default(), Vec::new());
        for piece in pieces {
            events.push(piece);
            read.extend(std::iter::from_fn(|| events.next()));
        }
        events.end();
        read.extend(std::iter::from_fn(|| events.next()));
        let text = |it: Event| {
            format!("{}{}", if it.is_error { "!" } else { "" }, String::from_utf8_lossy(&it.data))
        };
        read.into_iter().map(text).collect()
    }

    #[test]
    fn h_113_comments_and_other_fields_are_skipped_and_every_line_end_is_one() {
        for end in ["\n", "\r", "\r\n"] {
            let stream = ": busy||:||retry: 3||data:||data: : ping|id: 7||data:{1}||dataset: x|data:  a|data|data: b||event: error|data: e||event: error||data: f||data: [DONE]"
                .replace('|', end);

            let wanted = ["", ": ping", "{1}", " a\n\nb", "!e", "f", "[DONE]"];
            assert_eq!(read(&[stream.as_bytes()]), wanted, "{end:?}");
        }
    }

    #[test]
    fn a_mark_of_byte_order_may_come_first_and_only_first() {
        let stream = "\u{feff}data: 1\n\n\u{feff}data: 2\n\ndata: \u{feff}3";

        assert_eq!(read(&[stream.as_bytes()]), ["1", "\u{feff}3"]);
    }

    #[test]
    fn a_long_line_in_small_pieces_is_searched_once() {
        let (mut events, piece) = (Events::default(), [b'x'; 64]);
        events.push(b"data:");
        for _ in 0..160_000 {
            events.push(&piece);
            assert!(events.next().is_none());
            assert_eq!(events.searched, events.bytes.len());
        }
        events.end();

        assert_eq!(events.next().unwrap().data.len(), 160_000 * 64);
        assert_eq!((events.next(), events.held()), (None, 0));
    }

    proptest! {
        #[test]
        fn h_113_any_split_of_the_bytes_gives_the_same_events(
            stream in prop::collection::vec(
                prop_oneof![
                    Just(b"data: ".to_vec()), Just(b"\r".to_vec()), Just(b"\n".to_vec()), Just(b"\r\n\r\n".to_vec()),
                    Just(BOM.to_vec()), Just("event: error".into()), Just(": é😀".into()),
                    prop::collection::vec(any::<u8>(), 0..6),
                ],
                0..24,
            ),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..9),
        ) {
            let stream = stream.concat();
            let mut at: Vec<_> = cuts.iter().map(|it| it.index(stream.len() + 1)).collect();
            at.extend([0, stream.len()]);
            at.sort_unstable();
            let pieces: Vec<_> = at.windows(2).map(|it| &stream[it[0]..it[1]]).collect();
            let single: Vec<_> = stream.chunks(1).collect();

            let whole = read(&[&stream]);

            prop_assert_eq!(&read(&pieces), &whole);
            prop_assert_eq!(&read(&single), &whole);
        }
    }
}
