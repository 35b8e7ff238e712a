//! Whether a request that failed is sent once more, and when.
//!
//! Watch for: what fails the same way again is never repeated; a wait that a service asks for is kept or, if it is too
//! long, not begun.
// Differs: in the full-size project this is a plugin around the request, with the failures to repeat in its
// configuration and a mode without end. Its list lacks three that occur: a stream without its end, a damaged event, an
// overload within the reply.

use std::{
    hash::{BuildHasher, RandomState},
    time::{Duration, SystemTime},
};

use jiff::{Timestamp, fmt::rfc2822};
use reqwest::header::{HeaderMap, RETRY_AFTER};

use crate::harness::llm::LlmError;

const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// A service that asks for more is not waited for.
const LONGEST_ASKED: Duration = Duration::from_mins(1);

/// One attempt that gave no reply.
#[derive(Debug)]
pub(super) struct Failed {
    pub why: LlmError,
    again: Again,
}

/// Whether another attempt may do better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    Never,
    Soon,
    After(Duration),
}

impl From<LlmError> for Failed {
    fn from(why: LlmError) -> Self {
        let may_pass = match &why {
            LlmError::Transport(_)
            | LlmError::Timeout(_)
            | LlmError::Broken(_)
            | LlmError::Empty => true,
            LlmError::Status { status, .. } => matches!(status, 408 | 409 | 425 | 429 | 500..=599),
            _ => false,
        };
        Self { why, again: if may_pass { Again::Soon } else { Again::Never } }
    }
}

impl Failed {
    /// Another attempt fails the same way, although most of its kind would not.
    pub(super) fn for_good(why: LlmError) -> Self {
        Self { why, again: Again::Never }
    }

    /// The server said for how long it wants to be left alone.
    pub(super) fn not_before(mut self, asked: Option<Duration>) -> Self {
        if let (Again::Soon, Some(asked)) = (self.again, asked) {
            self.again = Again::After(asked);
            if asked > LONGEST_ASKED {
                self.again = Again::Never;
                self.explain(asked);
            }
        }
        self
    }

    /// How long to wait before this attempt, counted from 1. None: it is not worth it.
    pub(super) fn wait(&self, attempt: u32) -> Option<Duration> {
        match self.again {
            Again::Never => None,
            Again::After(asked) => Some(asked),
            Again::Soon => {
                let doubled = FIRST_WAIT.saturating_mul(1 << (attempt - 1).min(16));
                Some(doubled.min(LONGEST_WAIT) * (900 + chance()) / 1_000)
            }
        }
    }

    fn explain(&mut self, asked: Duration) {
        if let LlmError::Status { message, .. } = &mut self.why {
            let (asked, most) = (asked.as_secs(), LONGEST_ASKED.as_secs());
            *message = format!("{message} (it asks to wait {asked} s; {most} s are the most)");
        }
    }
}

/// How long a server asks to be left alone: milliseconds, seconds or a date. What is not in the future says nothing.
pub(super) fn asked(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|it| it.to_str().ok()).map(str::trim);
    let number = |text: &str, unit: f64| {
        text.parse::<f64>().ok().and_then(|it| Duration::try_from_secs_f64(it * unit).ok())
    };
    let millis = text("retry-after-ms").and_then(|it| number(it, 0.001));
    let after = || text(RETRY_AFTER.as_str()).and_then(|it| number(it, 1.0).or_else(|| until(it)));
    millis.filter(|it| !it.is_zero()).or_else(after).filter(|it| !it.is_zero())
}

fn until(date: &str) -> Option<Duration> {
    let date = rfc2822::parse(date).ok()?.timestamp();
    Duration::try_from(date.duration_since(Timestamp::try_from(SystemTime::now()).ok()?)).ok()
}

/// Something up to 200: requests that failed together do not come again together.
fn chance() -> u32 {
    u32::try_from(RandomState::new().hash_one(()) % 201).expect("it is below 201")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reqwest::header::HeaderValue;

    use super::*;

    fn headers(named: &[(&'static str, &str)]) -> HeaderMap {
        named
            .iter()
            .map(|(name, it)| (name.parse().unwrap(), HeaderValue::from_str(it).unwrap()))
            .collect()
    }

    #[test]
    fn h_108_a_server_may_ask_in_seconds_in_milliseconds_or_by_date() {
        for (named, millis) in [
            (vec![("retry-after", "7")], Some(7_000)),
            (vec![("retry-after", " 1.5 ")], Some(1_500)),
            (vec![("retry-after-ms", "250"), ("retry-after", "9")], Some(250)),
            (vec![("retry-after-ms", "x"), ("retry-after", "9")], Some(9_000)),
            (vec![("retry-after", "0")], None),
            (vec![("retry-after", "-1")], None),
            (vec![("retry-after", "inf")], None),
            (vec![("retry-after", "NaN")], None),
            (vec![("retry-after", "1e300")], None),
            (vec![("retry-after", "soon")], None),
            (vec![("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")], None),
            (vec![], None),
        ] {
            assert_eq!(asked(&headers(&named)), millis.map(Duration::from_millis), "{named:?}");
        }
        let far = asked(&headers(&[("retry-after", "Wed, 01 Jan 2200 00:00:00 GMT")])).unwrap();
        assert!(far > Duration::from_hours(24 * 365));
    }

    #[test]
    fn waits_grow_to_a_limit_and_differ() {
        let failed = Failed::from(LlmError::Empty);
        for (attempt, millis) in
            [(1, 500), (2, 1_000), (3, 2_000), (5, 8_000), (6, 10_000), (u32::MAX, 10_000)]
        {
            let wait = failed.wait(attempt).unwrap().as_millis();

            assert!((millis * 9 / 10..=millis * 11 / 10).contains(&wait), "{attempt}: {wait}");
        }
        assert_ne!([failed.wait(9), failed.wait(9), failed.wait(9)], [failed.wait(9); 3]);
    }

    proptest! {
        #[test]
        fn h_108_no_header_makes_it_panic(text in "[ -~]{0,40}|[0-9.e+-]{0,9}|[A-Z][a-z]{2}, [0-9]{1,3} Nov [0-9]{1,5} [0-9:]{0,9} GMT") {
            let asked = asked(&headers(&[("retry-after", &text), ("retry-after-ms", &text)]));

            prop_assert!(asked.is_none_or(|it| !it.is_zero()));
        }
    }
}
