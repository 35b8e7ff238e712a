//! Markdown on a terminal: headings, code, quotations and bold text get a look, line by line, while the text comes in.
//!
//! Part of `cli`. No character is taken away or added but the codes of the terminal, so what is copied from the screen is
//! what the model wrote.
//! Full-size counterpart: the Markdown of the terminal interface, which lays out tables and colours code by language.
//! Watch for: text arrives in pieces, and a look is decided from what has come: at the beginning of a line a few characters
//! wait until it is known what they begin. Every look ends with its line.

const BOLD: (&str, &str) = ("\x1b[1m", "\x1b[22m");
const DIM: (&str, &str) = ("\x1b[2m", "\x1b[22m");
const CODE: (&str, &str) = ("\x1b[36m", "\x1b[39m");

/// More of these at the beginning of a line are no heading.
const DEEPEST: usize = 6;
/// So many of them are a fence.
const FENCE: usize = 3;
/// And what is further in than this is neither.
const INDENT: usize = 3;

/// Where a text stands.
#[derive(Debug, Default)]
pub(super) struct Markdown {
    line: Line,
    /// Inside of a fenced block: the character of its fence, and how many.
    fence: Option<(char, usize)>,
    is_bold: bool,
    is_code: bool,
    /// Asterisks that wait for what follows them.
    stars: usize,
}

#[derive(Debug)]
enum Line {
    /// So much has come of it that it could still be anything.
    Begun(String),
    /// Text with bold words and code in it.
    Text,
    /// The beginning of a fenced block, whose fence may still grow.
    Opening(char, usize),
    /// All of it looks like this.
    Whole((&'static str, &'static str)),
}

impl Default for Line {
    fn default() -> Self {
        Line::Begun(String::new())
    }
}

impl Markdown {
    /// The next piece of the text, as it is to be shown.
    pub(super) fn piece(&mut self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '\n' => {
                    self.end_line(&mut shown);
                    shown.push('\n');
                }
                _ => self.push(c, &mut shown),
            }
        }
        shown
    }

    /// The end of the text: what still waits, and the end of every look.
    pub(super) fn finish(&mut self) -> String {
        let mut shown = String::new();
        self.end_line(&mut shown);
        *self = Self::default();
        shown
    }

    fn push(&mut self, c: char, shown: &mut String) {
        match &mut self.line {
            Line::Begun(begun) => {
                begun.push(c);
                let begun = begun.clone();
                if let Some(line) = self.judge(&begun) {
                    self.begin(line, &begun, shown);
                }
            }
            Line::Text => self.inline(c, shown),
            Line::Opening(fence, length) => {
                if c == *fence && self.fence == Some((*fence, *length)) {
                    *length += 1;
                    self.fence = Some((*fence, *length));
                } else {
                    self.line = Line::Whole(DIM);
                }
                shown.push(c);
            }
            Line::Whole(_) => shown.push(c),
        }
    }

    /// What a line is that begins like this, once that is plain.
    fn judge(&self, begun: &str) -> Option<Line> {
        let text = begun.trim_start_matches(' ');
        let Some(first) = text.chars().next() else {
            return (begun.len() > INDENT).then_some(self.usual());
        };
        let run = text.chars().take_while(|it| *it == first).count();
        let next = text.chars().nth(run);
        match (first, self.fence) {
            _ if begun.len() - text.len() > INDENT => Some(self.usual()),
            (_, Some((fence, length))) if first == fence => match next {
                None if run < length => None,
                _ if run >= length => Some(Line::Whole(DIM)),
                _ => Some(self.usual()),
            },
            (_, Some(_)) => Some(self.usual()),
            ('#', None) => match next {
                None if run <= DEEPEST => None,
                Some(' ') if run <= DEEPEST => Some(Line::Whole(BOLD)),
                _ => Some(Line::Text),
            },
            ('`' | '~', None) => match next {
                None if run < FENCE => None,
                None => Some(Line::Opening(first, run)),
                Some(_) => Some(Line::Text),
            },
            ('>', None) => Some(Line::Whole(DIM)),
            _ => Some(Line::Text),
        }
    }

    fn usual(&self) -> Line {
        if self.fence.is_some() { Line::Whole(CODE) } else { Line::Text }
    }

    fn begin(&mut self, line: Line, begun: &str, shown: &mut String) {
        self.line = line;
        match self.line {
            Line::Text | Line::Begun(_) => begun.chars().for_each(|c| self.inline(c, shown)),
            Line::Opening(fence, length) => {
                self.fence = Some((fence, length));
                shown.push_str(DIM.0);
                shown.push_str(begun);
            }
            Line::Whole(look) => {
                if look == DIM && self.fence.is_some() {
                    self.fence = None;
                }
                shown.push_str(look.0);
                shown.push_str(begun);
            }
        }
    }

    fn inline(&mut self, c: char, shown: &mut String) {
        if c == '*' && !self.is_code {
            self.stars += 1;
            return;
        }
        self.settle_stars(Some(c), shown);
        if c == '`' && !self.is_code {
            shown.push_str(CODE.0);
        }
        shown.push(c);
        if c == '`' {
            if self.is_code {
                shown.push_str(CODE.1);
            }
            self.is_code = !self.is_code;
        }
    }

    /// Two asterisks begin bold text where a word follows, and end it anywhere.
    fn settle_stars(&mut self, next: Option<char>, shown: &mut String) {
        let stars = "*".repeat(std::mem::take(&mut self.stars));
        let begins = stars.len() == 2 && next.is_some_and(|it| !it.is_whitespace());
        if self.is_bold && stars.len() >= 2 {
            self.is_bold = false;
            shown.push_str(&stars);
            shown.push_str(BOLD.1);
        } else if begins && !self.is_bold {
            self.is_bold = true;
            shown.push_str(BOLD.0);
            shown.push_str(&stars);
        } else {
            shown.push_str(&stars);
        }
    }

    fn end_line(&mut self, shown: &mut String) {
        if let Line::Begun(begun) = &self.line {
            let begun = begun.clone();
            self.begin(self.usual(), &begun, shown);
        }
        match std::mem::take(&mut self.line) {
            Line::Whole(look) => shown.push_str(look.1),
            Line::Opening(..) => shown.push_str(DIM.1),
            Line::Text | Line::Begun(_) => {
                self.settle_stars(None, shown);
                if std::mem::take(&mut self.is_code) {
                    shown.push_str(CODE.1);
                }
                if std::mem::take(&mut self.is_bold) {
                    shown.push_str(BOLD.1);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::proptest};

    use super::Markdown;

    /// What is shown, with `{` for the beginning of a look and `}` for its end.
    fn shown(text: &str) -> String {
        let mut markdown = Markdown::default();
        let whole = markdown.piece(text) + &markdown.finish();
        let looks = [("1", "{b:"), ("2", "{d:"), ("36", "{c:"), ("22", "}"), ("39", "}")];
        looks.iter().fold(whole, |it, (code, look)| it.replace(&format!("\x1b[{code}m"), look))
    }

    #[test]
    fn headings_quotations_bold_words_and_code_have_a_look() {
        for (text, expected) in [
            ("# A *title*\nb", "{b:# A *title*}\nb"),
            ("####### no", "####### no"),
            ("#no", "#no"),
            ("> said\n", "{d:> said}\n"),
            ("a **bold** word", "a {b:**bold**} word"),
            ("2 ** 3 and a*b*c", "2 ** 3 and a*b*c"),
            ("run `ls **` now", "run {c:`ls **`} now"),
            ("    # code", "    # code"),
            ("- item", "- item"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn a_fenced_block_looks_like_code_until_its_own_fence_comes() {
        assert_eq!(
            shown("```rust\nlet a = \"**\";\n```\nb"),
            "{d:```rust}\n{c:let a = \"**\";}\n{d:```}\nb"
        );
        assert_eq!(
            shown("````\n```\n# x\n````\n# y"),
            "{d:````}\n{c:```}\n{c:# x}\n{d:````}\n{b:# y}"
        );
    }

    #[test]
    fn no_look_outlives_its_line() {
        assert_eq!(shown("**a\n`b\nc"), "{b:**a}\n{c:`b}\nc");
    }

    proptest! {
        #[test]
        fn however_a_text_is_cut_it_looks_the_same_and_no_character_is_lost(
            pieces in collection::vec("[ #`*>~a\n漢]{0,5}", 0..10),
        ) {
            let whole = pieces.concat();
            let mut markdown = Markdown::default();
            let mut came: String = pieces.iter().map(|it| markdown.piece(it)).collect();
            came.push_str(&markdown.finish());

            let mut at_once = Markdown::default();
            let once = at_once.piece(&whole) + &at_once.finish();
            assert_eq!(came, once);
            let codes = ["1", "2", "36", "22", "39"];
            let plain = codes.iter().fold(came, |it, code| it.replace(&format!("\x1b[{code}m"), ""));
            assert_eq!(plain, whole);
        }
    }
}
