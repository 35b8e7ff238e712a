//! A turn as a person reads it: the events of the log in, text for the screen out.
//!
//! Part of `cli`. It keeps no text of its own, only what it needs to know about the lines before.
//! Watch for: a reply that came in pieces is in the log once more as a whole, and must not be shown twice.

use serde_json::{Map, Value};

use super::text::{arguments, harmless, json, line};
use crate::harness::session::event::EventBody;

/// Questions longer than this say how long they are, so that nobody takes the end of the screen for the end of them.
const LONG_QUESTION: usize = 1000;

/// Where the turn is on the screen.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    has_output: bool,
    /// The part of the reply that has been shown while it came in.
    shown: Option<String>,
}

impl Transcript {
    /// A piece of the reply.
    pub(super) fn delta(&mut self, piece: &str) -> String {
        if piece.is_empty() {
            return String::new();
        }
        let head = if self.shown.is_none() { self.heading() } else { "" };
        self.shown.get_or_insert_default().push_str(piece);
        format!("{head}{}", harmless(piece))
    }

    /// An event of the log.
    pub(super) fn event(&mut self, body: &EventBody) -> String {
        match body {
            EventBody::TurnStart { .. } => {
                *self = Self::default();
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
            EventBody::TurnEnd { .. } => self.end_of_stream().into(),
            _ => String::new(),
        }
    }

    fn reply(&mut self, text: &str) -> String {
        if self.shown.as_deref() == Some(text) {
            return self.end_of_stream().into();
        }
        let cut = self.end_of_stream();
        if text.trim().is_empty() {
            return cut.into();
        }
        format!("{cut}{}{}\n", self.heading(), harmless(text).trim_end_matches('\n'))
    }

    fn heading(&mut self) -> &'static str {
        if std::mem::replace(&mut self.has_output, true) { "\nassistant> " } else { "assistant> " }
    }

    fn end_of_stream(&mut self) -> &'static str {
        match self.shown.take() {
            Some(text) if !text.ends_with('\n') => "\n",
            _ => "",
        }
    }
}

/// All that is shown of a turn where only its end counts.
pub(super) fn final_text(text: &str) -> String {
    match text.trim_end() {
        "" => String::new(),
        text => format!("{}\n", harmless(text)),
    }
}

/// The question before a guarded call: all of it, on one line, and nothing after it.
pub(super) fn question(name: &str, arguments: &Map<String, Value>) -> String {
    let shown = json(&Value::Object(arguments.clone()));
    let length = match shown.chars().count() {
        long @ LONG_QUESTION.. => format!(" ({long} characters)"),
        _ => String::new(),
    };
    format!("Allow {} {shown}{length}? [y/N] ", line(name))
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use serde_json::json;

    use super::{Transcript, question};
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

    #[test]
    fn a_question_shows_the_whole_call_on_one_line() {
        let short = json!({ "command": "echo\nrm -rf build # end" });
        let long = json!({ "command": format!("{}; rm -rf build", "x".repeat(5000)) });
        let ask = |it: &serde_json::Value| question("bash", it.as_object().unwrap());

        assert_eq!(ask(&short), r#"Allow bash {"command":"echo\nrm -rf build # end"}? [y/N] "#);
        assert!(ask(&long).ends_with(r#"; rm -rf build"} (5028 characters)? [y/N] "#));
    }
}
