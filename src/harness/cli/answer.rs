//! What a line means as the answer to a question.
//!
//! Part of `cli`.
//! Watch for: exactly `y` and `yes` approve; there is no way in which silence, the end of input or a slip does.

use std::time::Duration;

use super::input::Answered;
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
    let refused = |why: String| Verdict { answer: Answer::No, why: Some(why), next_turn: None };
    let line = match answered {
        Answered::Line(line) => line,
        Answered::Silence => {
            return refused(format!("no answer within {} s", patience.as_secs_f32()));
        }
        Answered::Unread => {
            return refused("an earlier question got no answer in time, so none is read".into());
        }
        Answered::End => return refused("there is nobody to answer: the input has ended".into()),
    };
    let word = line.trim_matches([' ', '\t', '\r']);
    let is_one_of = |words: &[&str]| words.iter().any(|it| it.eq_ignore_ascii_case(word));
    match who {
        _ if is_one_of(&["y", "yes"]) => {
            Verdict { answer: Answer::Yes, why: None, next_turn: None }
        }
        _ if is_one_of(&["n", "no"]) => Verdict { answer: Answer::No, why: None, next_turn: None },
        Who::Asked if word.is_empty() => Verdict { answer: Answer::No, why: None, next_turn: None },
        Who::Asked => refused(format!("{} is neither y nor yes", repeated(word))),
        Who::Script if word.is_empty() => refused("an empty line is no answer".into()),
        Who::Script => {
            let why =
                format!("{} is no answer (y, yes, n, no); it stays the next turn", repeated(word));
            Verdict { next_turn: Some(line), ..refused(why) }
        }
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

        assert_eq!(approved, [Answer::Yes; 4]);
        assert_eq!(others.map(|it| said(it, Who::Asked).answer), [Answer::No; 11]);
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

        assert_eq!((verdict.answer, verdict.next_turn.as_deref()), (Answer::No, Some("what else")));
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
    fn silence_and_the_end_of_input_refuse_with_a_reason() {
        let silence = judge(Answered::Silence, Who::Asked, Duration::from_secs(10));
        let later = judge(Answered::Unread, Who::Asked, Duration::from_secs(10));
        let end = judge(Answered::End, Who::Asked, Duration::from_secs(10));

        assert_eq!(
            (silence.answer, silence.why.as_deref()),
            (Answer::No, Some("no answer within 10 s"))
        );
        assert_eq!((later.answer, later.why != silence.why), (Answer::No, true));
        assert_eq!((end.answer, end.why.is_some()), (Answer::No, true));
    }
}
