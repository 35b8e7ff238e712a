//! Takes secrets out of a stream of bytes, also those that come in two pieces.
//!
//! Full-size counterpart: none; there the stream goes to its file as it is.
//! Watch for: what may be the beginning of a secret is held back until the next piece tells.

use std::rc::Rc;

const MASK: &[u8] = b"***";

/// One stream on its way.
#[derive(Default)]
pub(super) struct Mask {
    secrets: Vec<Vec<u8>>,
    held: Vec<u8>,
}

impl Mask {
    /// Longer secrets first: one may begin with another.
    pub(super) fn new(secrets: &[Rc<str>]) -> Self {
        let secrets = secrets.iter().filter(|it| !it.is_empty());
        let mut secrets: Vec<Vec<u8>> = secrets.map(|it| it.as_bytes().into()).collect();
        secrets.sort_by_key(|it| std::cmp::Reverse(it.len()));
        Self { secrets, held: Vec::new() }
    }

    /// Hands on what can be shown of the stream so far.
    pub(super) fn pass(&mut self, bytes: &[u8], mut on: impl FnMut(&[u8])) {
        if self.secrets.is_empty() {
            return on(bytes);
        }
        let mut text = std::mem::take(&mut self.held);
        text.extend_from_slice(bytes);
        let mut rest = &text[..];
        while let Some((at, length)) = self.next(rest) {
            on(&rest[..at]);
            on(MASK);
            rest = &rest[at + length..];
        }
        let (shown, held) = rest.split_at(rest.len() - self.begun(rest));
        on(shown);
        self.held = held.to_vec();
    }

    /// What was held back, when nothing more comes.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    fn next(&self, text: &[u8]) -> Option<(usize, usize)> {
        let found = |at: usize| self.secrets.iter().find(|it| text[at..].starts_with(it));
        (0..text.len()).find_map(|at| found(at).map(|it| (at, it.len())))
    }

    /// How many bytes at the end may be the beginning of a secret.
    fn begun(&self, text: &[u8]) -> usize {
        let longest = self.secrets.first().map_or(0, |it| it.len() - 1).min(text.len());
        let begins = |length: &usize| {
            let end = &text[text.len() - length..];
            self.secrets.iter().any(|it| it.len() > *length && it.starts_with(end))
        };
        (1..=longest).rev().find(begins).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::Mask;

    fn masked(secrets: &[&str], pieces: &[&str]) -> String {
        let secrets: Vec<_> = secrets.iter().map(|it| (*it).into()).collect();
        let (mut mask, mut shown) = (Mask::new(&secrets), Vec::new());
        for piece in pieces {
            mask.pass(piece.as_bytes(), |it| shown.extend_from_slice(it));
        }
        shown.extend(mask.rest());
        String::from_utf8(shown).unwrap()
    }

    #[test]
    fn a_secret_is_masked_wherever_it_is_cut() {
        let text = "a key-12345 b key-1234 c key-key-12345key-12345";
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let pieces = [&text[..first], &text[first..second], &text[second..]];

                let shown = masked(&["key-12345"], &pieces);

                assert_eq!(shown, "a *** b key-1234 c key-******", "{pieces:?}");
            }
        }
    }

    #[test]
    fn of_two_secrets_that_begin_alike_the_longer_one_counts() {
        assert_eq!(masked(&["key", "key-2"], &["key-2 ", "key-", "3"]), "*** ***-3");
    }

    #[test]
    fn without_secrets_nothing_is_held_back() {
        assert_eq!(masked(&[], &["ab", "c"]), "abc");
        assert_eq!(masked(&[""], &["ab", "c"]), "abc");
    }
}
