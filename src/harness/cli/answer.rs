//! What a line means as the answer to a question.
//!
//! Part of `cli`.
//! Watch for: exactly `y` and `yes` approve, and `a` and `always` where the question offers it; there is no way in which
//! silence, the end of input or a slip does.

use std::time::Duration;

use super::asking::Answered;
use super::text::seconds;
use crate::harness::approval::Answer;

/// How much of a line that is no answer is repeated, in characters.
const REPEATED: usize = 40;

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// A person, or a script that gave one prompt: whatever the line is, it was meant for the question.
    Asked,
    /// A script whose lines are turns: a line answers only if it can be nothing else.
    Script,
}

/// What follows from an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) answer: Answer,
    /// Why it is a no, where that is not plain.
    pub(super) why: Option<String>,
    /// The line that was no answer and stays the next turn.
    pub(super) next_turn: Option<String>,
}

pub(super) fn judge(answered: Answered, who: Who, patience: Duration) -> Verdict {
    match answered {
        Answered::Line(line) => Verdict::of(line, who),
        Answered::Silence => {
            Verdict::nobody(format!("nobody answered within {}", seconds(patience)))
        }
        Answered::Unread => Verdict::nobody(
            "nobody answered an earlier question in time, so no answer is read any more",
        ),
        Answered::Nobody(why) => Verdict::nobody(format!("nobody can answer ({why})")),
    }
}

/// Whether the answer is a yes for all times. Only where the question offers that.
pub(super) fn is_always(answered: &Answered) -> bool {
    matches!(answered, Answered::Line(line) if is_one_of(line, &["a", "always"]))
}

fn is_one_of(line: &str, words: &[&str]) -> bool {
    let word = line.trim_matches([' ', '\t', '\r']);
    words.iter().any(|it| it.eq_ignore_ascii_case(word))
}

impl Verdict {
    fn of(line: String, who: Who) -> Self {
        let word = line.trim_matches([' ', '\t', '\r']);
        match who {
            _ if is_one_of(word, &["y", "yes"]) => Self::plain(Answer::Yes),
            _ if is_one_of(word, &["n", "no"]) => Self::plain(Answer::No),
            Who::Asked if word.is_empty() => Self::plain(Answer::No),
            Who::Asked => Verdict {
                why: Some(format!("{} is neither y nor yes", repeated(word))),
                ..Self::plain(Answer::No)
            },
            Who::Script if word.is_empty() => Self::nobody("an empty line is no answer"),
            Who::Script => {
                let what = format!("{} is no answer (y, yes, n, no)", repeated(word));
                let said = format!("{what}; it stays the next turn");
                Verdict { why: Some(said), next_turn: Some(line), ..Self::nobody(what) }
            }
        }
    }

    fn plain(answer: Answer) -> Self {
        Verdict { answer, why: None, next_turn: None }
    }

    /// A no that nobody said: the model is told the same reason.
    fn nobody(why: impl Into<String>) -> Self {
        let why = why.into();
        Verdict { why: Some(why.clone()), ..Self::plain(Answer::Nobody(why)) }
    }
}

fn repeated(word: &str) -> String {
    match word.char_indices().nth(REPEATED) {
        Some((end, _)) => format!("\"{}…\"", &word[..end]),
        None => format!("\"{word}\""),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Answer, Answered, Verdict, Who, judge};

    fn said(line: &str, who: Who) -> Verdict {
        judge(Answered::Line(line.into()), who, Duration::from_secs(10))
    }

    #[test]
    fn only_y_and_yes_approve_in_any_case_and_with_blanks_around() {
        let approved = ["y", "Y", " YES ", "yEs\t"].map(|it| said(it, Who::Asked).answer);
        let others = [
            "",
            "yep",
            "yes, but not in src",
            "ｙ",
            "1",
            "true",
            "n",
            "y\0",
            "\x1b[Ay",
            "y y",
            "\u{a0}y",
        ];

        assert_eq!(approved, [const { Answer::Yes }; 4]);
        assert_eq!(others.map(|it| said(it, Who::Asked).answer), [const { Answer::No }; 11]);
        assert_eq!(said(&"y".repeat(10_000), Who::Asked).answer, Answer::No);
    }

    #[test]
    fn a_slip_is_refused_and_named_but_not_repeated_at_any_length() {
        assert_eq!(said("yep", Who::Asked).why.unwrap(), "\"yep\" is neither y nor yes");
        assert!(said(&"y".repeat(10_000), Who::Asked).why.unwrap().len() < 100);
    }

    #[test]
    fn a_line_of_a_script_that_is_no_answer_stays_the_next_turn() {
        let verdict = said("what else", Who::Script);

        assert!(matches!(verdict.answer, Answer::Nobody(_)), "{verdict:?}");
        assert_eq!(verdict.next_turn.as_deref(), Some("what else"));
        assert!(verdict.why.unwrap().contains("stays the next turn"));
    }

    #[test]
    fn a_no_of_a_script_is_used_up() {
        assert_eq!(
            said("No", Who::Script),
            Verdict { answer: Answer::No, why: None, next_turn: None }
        );
    }

    #[test]
    fn silence_and_the_end_of_input_refuse_and_the_model_is_told_why_as_well() {
        for (answered, why) in [
            (Answered::Silence, "nobody answered within 10 s"),
            (Answered::Unread, "nobody answered an earlier question in time"),
            (Answered::Nobody("end of input".into()), "nobody can answer (end of input)"),
        ] {
            let verdict = judge(answered, Who::Asked, Duration::from_secs(10));

            let said = verdict.why.unwrap();
            assert!(said.starts_with(why), "{said}");
            assert_eq!(verdict.answer, Answer::Nobody(said));
        }
    }
}
