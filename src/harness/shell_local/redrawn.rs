//! Lines that a program draws over and over, as a progress bar does, reduced to how they look in the end.
//!
//! Watch for: this happens while they come, before anything is cut, so that the last state of each is what is kept. And
//! memory stays within bounds: a line that is longer than any bar passes as it is.

/// What a terminal shows in one line has some hundred bytes.
const LONGEST: usize = 4096;

/// A stream of bytes on its way.
#[derive(Default)]
pub(super) struct Redrawn {
    /// What stands in the line, and what is being drawn over it.
    before: Vec<u8>,
    now: Vec<u8>,
    /// A part of the line has passed already, because it is no bar.
    has_passed: bool,
}

impl Redrawn {
    /// Hands on what is settled of the stream so far.
    pub(super) fn pass(&mut self, bytes: &[u8], mut on: impl FnMut(&[u8])) {
        let mut settled = Vec::with_capacity(bytes.len());
        if !bytes.contains(&b'\r') && self.before.is_empty() {
            self.pass_plain(bytes, &mut settled);
        } else {
            bytes
                .split_inclusive(|it| matches!(it, b'\r' | b'\n'))
                .for_each(|it| self.draw(it, &mut settled));
        }
        on(&settled);
    }

    /// What was held back, when nothing more comes.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        let (before, now) = (std::mem::take(&mut self.before), std::mem::take(&mut self.now));
        if now.is_empty() { before } else { now }
    }

    /// Nothing is drawn over: whole lines pass, and the last one waits for its end.
    fn pass_plain(&mut self, bytes: &[u8], settled: &mut Vec<u8>) {
        let end = bytes.iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
        if end > 0 {
            settled.append(&mut self.now);
            settled.extend_from_slice(&bytes[..end]);
            self.has_passed = false;
        }
        self.now.extend_from_slice(&bytes[end..]);
        self.let_long_pass(settled);
    }

    /// A piece of a line, with what ends it if that has come.
    fn draw(&mut self, piece: &[u8], settled: &mut Vec<u8>) {
        let (text, end) = match piece {
            [text @ .., end @ (b'\r' | b'\n')] => (text, Some(*end)),
            text => (text, None),
        };
        self.now.extend_from_slice(text);
        self.let_long_pass(settled);
        match end {
            Some(b'\n') => {
                settled.extend(self.rest());
                settled.push(b'\n');
                self.has_passed = false;
            }
            Some(_) if self.has_passed => {
                settled.append(&mut self.now);
                settled.push(b'\r');
                self.has_passed = false;
            }
            Some(_) if !self.now.is_empty() => self.before = std::mem::take(&mut self.now),
            Some(_) | None => {}
        }
    }

    fn let_long_pass(&mut self, settled: &mut Vec<u8>) {
        if self.has_passed || self.now.len() > LONGEST {
            settled.append(&mut self.now);
            self.before.clear();
            self.has_passed = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::any, prop_assert_eq, proptest, sample::Index};

    use super::{LONGEST, Redrawn};

    fn passed(text: &[u8], cuts: &[usize]) -> Vec<u8> {
        let (mut lines, mut shown, mut from) = (Redrawn::default(), Vec::new(), 0);
        for to in cuts.iter().copied().chain([text.len()]) {
            lines.pass(&text[from..to], |it| shown.extend_from_slice(it));
            assert!(lines.before.len() + lines.now.len() <= 2 * LONGEST);
            from = to;
        }
        shown.extend(lines.rest());
        shown
    }

    /// The same, of the whole text at once.
    fn last_states(text: &str) -> String {
        let last = |line: &str| {
            let (line, end) = line.strip_suffix('\n').map_or((line, ""), |it| (it, "\n"));
            let shown = line.rsplit('\r').find(|it| !it.is_empty()).unwrap_or_default();
            format!("{shown}{end}")
        };
        text.split_inclusive('\n').map(last).collect()
    }

    proptest! {
        #[test]
        fn a_16_in_whatever_pieces_it_comes_a_line_is_as_it_looks_in_the_end(
            text in "([ab%]{0,4}[\\r\\n]{0,2}){0,12}",
            cuts in vec(any::<Index>(), 0..6),
        ) {
            let mut cuts: Vec<_> = cuts.iter().map(|it| it.index(text.len() + 1)).collect();
            cuts.sort_unstable();

            let shown = passed(text.as_bytes(), &cuts);

            prop_assert_eq!(String::from_utf8(shown).unwrap(), last_states(&text));
        }

        #[test]
        fn a_16_a_line_that_is_longer_than_any_bar_passes_and_holds_nothing_up(
            text in "(x{1,3}[\\r\\n]?){0,4}",
            cuts in vec(any::<Index>(), 0..6),
        ) {
            let text = text.replace("xxx", &"x".repeat(LONGEST + 1));
            let mut cuts: Vec<_> = cuts.iter().map(|it| it.index(text.len() + 1)).collect();
            cuts.sort_unstable();

            let shown = passed(text.as_bytes(), &cuts);

            prop_assert_eq!(last_states(&String::from_utf8(shown).unwrap()), last_states(&text));
        }
    }
}
