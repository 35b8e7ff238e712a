//! A turn as a person reads it: the events of the log in, text for the screen out.
//!
//! Part of `cli`. It keeps no text of its own, only what it needs to know about the lines before.
//! Watch for: a reply that came in pieces is in the log once more as a whole, and must not be shown twice.

use super::markdown::Markdown;
use super::text::{arguments, harmless, line};
use crate::harness::session::event::EventBody;

/// Where the turn is on the screen.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    has_output: bool,
    /// What has come of a reply that is still coming in.
    came: String,
    /// The blanks at its end, which wait for what follows them.
    held: String,
    /// Whether it has its heading.
    has_heading: bool,
    /// The look of replies, where the screen can show one.
    markdown: Option<Markdown>,
}

impl Transcript {
    /// One for a terminal that can show more than letters.
    pub(super) fn styled() -> Self {
        Self { markdown: Some(Markdown::default()), ..Self::default() }
    }

    /// A piece of the reply. Blanks are shown with the text behind them, so that a reply of blanks shows nothing.
    pub(super) fn delta(&mut self, piece: &str) -> String {
        self.came.push_str(piece);
        self.held.push_str(&harmless(piece));
        let end = self.held.trim_end().len();
        if end == 0 {
            return String::new();
        }
        let rest = self.held.split_off(end);
        let text = std::mem::replace(&mut self.held, rest);
        let head = if self.has_heading { "" } else { self.heading() };
        self.has_heading = true;
        format!("{head}{}", self.looking(&text))
    }

    /// The reply begins again; what was shown of it is no part of it.
    pub(super) fn starts_anew(&mut self) -> String {
        self.end_of_stream()
    }

    /// An event of the log.
    pub(super) fn event(&mut self, body: &EventBody) -> String {
        match body {
            EventBody::TurnStart { .. } => {
                let markdown = self.markdown.take().map(|_| Markdown::default());
                *self = Self { markdown, ..Self::default() };
                String::new()
            }
            EventBody::AssistantMessage { message, .. } => {
                self.reply(message.content.as_deref().unwrap_or_default())
            }
            EventBody::ToolCall { name, arguments: raw, .. } => {
                self.has_output = true;
                format!("[tool] {} {}\n", line(name), arguments(raw))
            }
            EventBody::ToolResult { message, .. } => {
                self.has_output = true;
                format!("[result] {}\n", harmless(message.text()).trim_end_matches('\n'))
            }
            EventBody::TurnEnd { .. } => self.end_of_stream(),
            _ => String::new(),
        }
    }

    /// The whole reply, of which pieces may have been shown.
    fn reply(&mut self, text: &str) -> String {
        if self.came == text {
            return self.end_of_stream();
        }
        let cut = self.end_of_stream();
        if text.trim().is_empty() {
            return cut;
        }
        let text = self.looking(harmless(text).trim_end());
        format!("{cut}{}{text}{}\n", self.heading(), self.look_ends())
    }

    /// A piece of a reply as the screen shows it.
    fn looking(&mut self, piece: &str) -> String {
        self.markdown.as_mut().map_or_else(|| piece.to_owned(), |it| it.piece(piece))
    }

    fn look_ends(&mut self) -> String {
        self.markdown.as_mut().map(Markdown::finish).unwrap_or_default()
    }

    fn heading(&mut self) -> &'static str {
        if std::mem::replace(&mut self.has_output, true) { "\nassistant> " } else { "assistant> " }
    }

    /// Ends the line of what came in.
    fn end_of_stream(&mut self) -> String {
        self.came.clear();
        self.held.clear();
        let end = self.look_ends();
        if std::mem::take(&mut self.has_heading) { end + "\n" } else { String::new() }
    }
}

/// All that is shown of a turn where only its end counts.
pub(super) fn final_text(text: &str) -> String {
    match text.trim_end() {
        "" => String::new(),
        text => format!("{}\n", harmless(text)),
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use proptest::{collection, prelude::proptest};

    use super::Transcript;
    use crate::harness::session::event::{EventBody, Reason};
    use crate::harness::session::message::{AssistantMessage, Message};

    fn start() -> EventBody {
        EventBody::TurnStart { turn: 1, format: 1, cwd: String::new() }
    }

    fn reply(text: &str) -> EventBody {
        let message =
            Rc::new(AssistantMessage { content: Some(text.into()), ..Default::default() });
        let (usage, finish_reason, request_hash) = (None, None, None);
        EventBody::AssistantMessage {
            turn: 1,
            step: 1,
            message,
            usage,
            finish_reason,
            request_hash,
            interrupted: false,
        }
    }

    fn call(name: &str, arguments: &str) -> EventBody {
        EventBody::ToolCall {
            turn: 1,
            step: 1,
            call_id: "c".into(),
            name: name.into(),
            arguments: arguments.into(),
        }
    }

    fn result(text: &str) -> EventBody {
        let message = Message::tool("c", text);
        EventBody::ToolResult {
            turn: 1,
            step: 1,
            call_id: "c".into(),
            name: "bash".into(),
            is_error: false,
            message,
        }
    }

    fn shown(events: &[EventBody]) -> String {
        let mut transcript = Transcript::default();
        events.iter().map(|it| transcript.event(it)).collect()
    }

    #[test]
    fn a_call_its_result_and_the_reply_are_laid_out_as_documented() {
        let turn = [
            start(),
            reply(""),
            call("bash", "{\"command\": \"x\"}"),
            result("hello\n\n[exit code: 0]"),
            reply("Done."),
        ];

        assert_eq!(
            shown(&turn),
            "[tool] bash {\"command\":\"x\"}\n[result] hello\n\n[exit code: 0]\n\nassistant> Done.\n"
        );
    }

    #[test]
    fn a_reply_alone_has_no_empty_line_before_it() {
        assert_eq!(
            shown(&[start(), reply("Hi"), start(), reply("Again")]),
            "assistant> Hi\nassistant> Again\n"
        );
    }

    #[test]
    fn text_beside_calls_comes_before_them_and_calls_follow_results_at_once() {
        let turn =
            [start(), reply("First"), call("a", "{}"), result("1"), call("b", "{}"), result("2")];

        assert_eq!(
            shown(&turn),
            "assistant> First\n[tool] a {}\n[result] 1\n[tool] b {}\n[result] 2\n"
        );
    }

    #[test]
    fn a_reply_that_came_in_pieces_is_shown_once() {
        let mut transcript = Transcript::default();
        let pieces = ["", "He", "llo"].map(|it| transcript.delta(it));

        let rest = transcript.event(&reply("Hello"));

        assert_eq!((pieces.concat(), rest), ("assistant> Hello".into(), "\n".into()));
    }

    #[test]
    fn a_reply_that_began_otherwise_is_shown_again_in_full() {
        let mut transcript = Transcript::default();
        transcript.delta("Hel");

        assert_eq!(transcript.event(&reply("Hello")), "\n\nassistant> Hello\n");
    }

    #[test]
    fn after_a_retry_the_reply_begins_on_a_line_of_its_own_and_only_the_new_one_counts() {
        let mut transcript = Transcript::default();
        let first = transcript.delta("Hel");
        let cut = transcript.starts_anew();

        let second = transcript.delta("Hello");
        let rest = transcript.event(&reply("Hello"));

        let shown = [first, cut, second, rest].concat();
        assert_eq!(shown, "assistant> Hel\n\nassistant> Hello\n");
    }

    #[test]
    fn an_escape_sequence_that_is_split_over_pieces_stays_harmless() {
        let mut transcript = Transcript::default();

        let shown = ["a\x1b", "[2J", "\x1b", "]0;t", "\x07b"].map(|it| transcript.delta(it));

        assert_eq!(shown.concat(), "assistant> a␛[2J␛]0;t␇b");
    }

    proptest! {
        #[test]
        fn however_a_reply_is_cut_into_pieces_it_looks_like_the_whole(
            pieces in collection::vec("[ \n\r\ta\u{1b}漢]{0,4}", 0..8),
        ) {
            let whole = pieces.concat();
            let mut transcript = Transcript::default();

            let mut came: String = pieces.iter().map(|it| transcript.delta(it)).collect();
            came.push_str(&transcript.event(&reply(&whole)));

            assert_eq!(came, Transcript::default().event(&reply(&whole)));
        }
    }

    #[test]
    fn a_turn_that_ends_within_a_reply_ends_its_line() {
        let mut transcript = Transcript::default();
        transcript.delta("Hel");
        let end = EventBody::TurnEnd { turn: 1, reason: Reason::Aborted, error: None };

        assert_eq!(transcript.event(&end), "\n");
    }

    #[test]
    fn nothing_of_a_tool_reaches_the_terminal_as_a_command() {
        let turn = [call("ba\x1b[2Jsh\n", "\x1b"), result("A\x1b]0;T\x07\u{9b}B")];

        assert!(!shown(&turn).contains(|c: char| c.is_control() && c != '\n'));
    }
}
