//! Part of `approval`: names in which `*` stands for any text.
//!
//! Watch for: a name is of whoever offers the tool, so the time must not depend on how badly it fits.

/// Whether the whole name fits. Each part between two stars is taken where it first stands: a later place leaves less.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(head) else { return false };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        match left.split_once(part) {
            Some((_, after)) => left = after,
            None => return false,
        }
    }
    left.ends_with(end)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::fits;

    #[test]
    fn a_star_stands_for_any_text_and_everything_else_for_itself() {
        for (pattern, name) in [
            ("bash", "bash"),
            ("mcp__*", "mcp__x__read"),
            ("mcp__*", "mcp__"),
            ("*", ""),
            ("*", "a"),
            ("**", "a"),
            ("*a", "ba"),
            ("a*b*c", "abbc"),
            ("a*ab", "aab"),
            ("*ab*ab", "abab"),
        ] {
            assert!(fits(pattern, name), "{pattern} fits {name}");
        }
        for (pattern, name) in [
            ("bash", "bash2"),
            ("bash", "Bash"),
            ("mcp__*", "mcp_x"),
            ("a*b", "abc"),
            ("a*a", "a"),
            ("*ab*ab", "ab"),
            ("*a*b", "ba"),
            ("", "a"),
        ] {
            assert!(!fits(pattern, name), "{pattern} does not fit {name}");
        }
    }

    #[test]
    fn a_name_that_almost_fits_takes_no_longer() {
        let (pattern, name) = ("*a".repeat(20) + "b", "a".repeat(64));
        let begun = Instant::now();

        assert!(!fits(&pattern, &name));

        assert!(begun.elapsed() < Duration::from_secs(1));
    }
}
