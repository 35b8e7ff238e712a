//! What a turn cost in tokens, from the words of several services.
//!
//! Part of `cli`.
//! Watch for: what a service did not tell is unknown and never 0, and one reply without a number makes the sum unknown.

use serde::Serialize;
use serde_json::Value;

/// Tokens. `cached` is the part of `input` that the service had kept from before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Usage {
    pub(crate) input: Option<u64>,
    pub(crate) cached: Option<u64>,
    pub(crate) output: Option<u64>,
}

const INPUT: [&str; 2] = ["/prompt_tokens", "/input_tokens"];
const CACHED: [&str; 3] = [
    "/prompt_tokens_details/cached_tokens",
    "/input_tokens_details/cached_tokens",
    "/prompt_cache_hit_tokens",
];
const OUTPUT: [&str; 2] = ["/completion_tokens", "/output_tokens"];

impl Usage {
    /// Of one reply.
    pub(crate) fn of(reply: Option<&Value>) -> Self {
        let read = |places: &[&str]| places.iter().find_map(|it| reply?.pointer(it)?.as_u64());
        Self { input: read(&INPUT), cached: read(&CACHED), output: read(&OUTPUT) }
    }

    /// Of two.
    pub(crate) fn plus(self, other: Self) -> Self {
        let sum = |one: Option<u64>, two: Option<u64>| one?.checked_add(two?);
        Self {
            input: sum(self.input, other.input),
            cached: sum(self.cached, other.cached),
            output: sum(self.output, other.output),
        }
    }

    /// Nothing, if nothing of it is known.
    pub(super) fn known(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

/// A count in few characters.
pub(crate) fn count(number: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", number / unit, number % unit * 10 / unit);
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}k", tenths(1_000)),
        _ => format!("{}M", tenths(1_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Usage, count};

    #[test]
    fn a_count_is_told_in_few_characters() {
        let counts = [0, 999, 1_000, 12_345, 999_999, 1_000_000, 2_050_000];
        let expected = ["0", "999", "1.0k", "12.3k", "999.9k", "1.0M", "2.0M"];

        assert_eq!(counts.map(count), expected);
    }

    fn of(reply: &serde_json::Value) -> serde_json::Value {
        json!(Usage::of(Some(reply)).known())
    }

    #[test]
    fn each_service_has_its_own_words() {
        let openai = json!({ "prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": { "cached_tokens": 4 } });
        let deepseek =
            json!({ "prompt_tokens": 7, "completion_tokens": 3, "prompt_cache_hit_tokens": 4 });
        let expected = json!({ "input": 7, "cached": 4, "output": 3 });

        assert_eq!((of(&openai), of(&deepseek)), (expected.clone(), expected));
    }

    #[test]
    fn what_is_not_told_is_unknown_and_not_nothing() {
        assert_eq!(
            of(&json!({ "prompt_tokens": 7, "completion_tokens": null })),
            json!({ "input": 7, "cached": null, "output": null })
        );
        assert_eq!((of(&json!({})), of(&json!("many"))), (json!(null), json!(null)));
    }

    #[test]
    fn one_reply_without_a_number_makes_the_sum_unknown() {
        let whole = Usage::of(Some(&json!({ "prompt_tokens": 7, "completion_tokens": 3 })));
        let part = Usage::of(Some(&json!({ "prompt_tokens": 1 })));

        assert_eq!(json!(whole.plus(part)), json!({ "input": 8, "cached": null, "output": null }));
        assert_eq!(whole.plus(Usage::of(None)).known(), None);
    }
}
