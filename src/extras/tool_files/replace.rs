//! Part of `tool-files`: one text in place of another, and what of a file stays as it is although no model sees it.
//!
//! Watch for: line ends are `\n` for the model, whatever they are in the file; there they stay what they are.

use memchr::memmem;

const MARK: &[u8] = b"\xef\xbb\xbf";

/// Why there is nothing to replace.
#[derive(Debug, PartialEq)]
pub(super) enum Fault {
    NoMatch,
    Ambiguous(usize),
    /// The result would have more bytes than wanted.
    Large(u64),
}

/// With `new` for `old`: at its one place, or at all of them.
pub(super) fn replaced(
    bytes: &[u8],
    old: &str,
    new: &str,
    scope: Scope,
    limit: u64,
) -> Result<Vec<u8>, Fault> {
    let as_given = (old.to_owned(), new.to_owned());
    let converted = (crlf(old), crlf(new));
    let ways = if has_crlf(bytes) { [converted, as_given] } else { [as_given, converted] };
    for (old, new) in &ways {
        let (old, new) = (old.as_bytes(), new.as_bytes());
        let Some(first) = memmem::find(bytes, old) else { continue };
        let is_only = memmem::find(&bytes[first + 1..], old).is_none();
        let count = if is_only { 1 } else { memmem::find_iter(bytes, old).count() };
        if scope == Scope::One && !is_only {
            return Err(Fault::Ambiguous(count.max(2)));
        }
        let size = bytes.len() as u64 - (count * old.len()) as u64;
        let size = size.saturating_add((count as u64).saturating_mul(new.len() as u64));
        if size > limit {
            return Err(Fault::Large(size));
        }
        return Ok(spliced(bytes, old, new));
    }
    Err(Fault::NoMatch)
}

/// How many places are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    One,
    All,
}

fn spliced(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let (mut result, mut done) = (Vec::with_capacity(bytes.len()), 0);
    for at in memmem::find_iter(bytes, old) {
        result.extend_from_slice(&bytes[done..at]);
        result.extend_from_slice(new);
        done = at + old.len();
    }
    result.extend_from_slice(&bytes[done..]);
    result
}

/// A whole new text for a file: line ends and byte order mark as they were.
pub(super) fn rewritten(before: &[u8], content: &str) -> Vec<u8> {
    let content = if has_crlf(before) { crlf(content) } else { content.to_owned() };
    if before.starts_with(MARK) && !content.as_bytes().starts_with(MARK) {
        return [MARK, content.as_bytes()].concat();
    }
    content.into_bytes()
}

/// Whether most lines end as they do on Windows.
pub(super) fn has_crlf(bytes: &[u8]) -> bool {
    let windows = memmem::find_iter(bytes, b"\r\n").count();
    windows > 0 && windows * 2 > memchr::memchr_iter(b'\n', bytes).count()
}

fn crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

#[cfg(test)]
mod tests {
    use super::{Fault, Scope, replaced, rewritten};

    fn one(bytes: &str, old: &str, new: &str) -> Result<String, Fault> {
        replaced(bytes.as_bytes(), old, new, Scope::One, 100)
            .map(|it| String::from_utf8(it).unwrap())
    }

    #[test]
    fn line_ends_stay_what_they_are() {
        assert_eq!(one("a\r\nb\r\nc", "a\nb", "x\ny\nz").unwrap(), "x\r\ny\r\nz\r\nc");
        assert_eq!(one("a\r\nb\r\n", "b", "b\nc").unwrap(), "a\r\nb\r\nc\r\n");
        assert_eq!(one("a\nb\nc\r\nd\n", "b\nc\nd", "x\ny").unwrap_err(), Fault::NoMatch);
        assert_eq!(one("a\nb\nc\r\nd\n", "c\nd", "x\ny").unwrap(), "a\nb\nx\r\ny\n");
        assert_eq!(rewritten(b"a\r\n", "x\ny"), b"x\r\ny");
        assert_eq!(rewritten(b"\xef\xbb\xbfa", "x"), b"\xef\xbb\xbfx");
    }

    #[test]
    fn places_that_overlap_are_several() {
        assert_eq!(one("aaa", "aa", "b").unwrap_err(), Fault::Ambiguous(2));
        assert_eq!(one("abab", "ab", "b").unwrap_err(), Fault::Ambiguous(2));
    }

    #[test]
    fn what_would_become_too_large_is_not_made() {
        let grown = replaced(&[b'a'; 50], "a", "123456", Scope::All, 100);

        assert_eq!(grown.unwrap_err(), Fault::Large(300));
    }
}
