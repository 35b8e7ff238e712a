//! The question before a guarded call, and what follows from its answer.
//!
//! Part of `cli`.
//! Watch for: nobody can approve what cannot be seen, so all of the call is in it.

use serde_json::{Map, Value};

use super::Cli;
use super::answer::{Who, is_always, judge};
use super::excerpt::excerpt;
use super::text::{json, line};
use crate::cordis::Context;
use crate::harness::approval::{Answer, Memory};
use crate::harness::tools::Call;

/// Questions longer than this say how long they are, so that nobody takes the end of the screen for the end of them.
const LONG_QUESTION: usize = 1000;

impl Cli {
    /// Asks about a call of this conversation; for others somebody else may answer.
    pub(super) async fn decide(&self, ctx: &Context, call: &Call) -> Option<Answer> {
        if !call.session.as_ref().is_some_and(|it| self.is_ours(it)) {
            return None;
        }
        let is_script = !self.console.is_terminal() && !self.console.arguments().is_one_shot();
        let memory = ctx.get::<dyn Memory>().filter(|_| !is_script);
        let always = memory.and_then(|it| it.offer(call));
        let choices = if always.is_some() { "y/a/N" } else { "y/N" };
        let question = question(&call.name, &call.arguments, call.preview.as_deref(), choices);
        let answered = tokio::select! {
            biased;
            () = call.cancel.cancelled() => return Some(Answer::No),
            answered = self.console.answer(&question, self.patience) => answered,
        };
        // The tool begins now; until here a person was waited for.
        self.wait_for(&line(&call.name));
        if let Some(remember) = always.filter(|_| is_always(&answered)) {
            remember();
            return Some(Answer::Yes);
        }
        let who = if is_script { Who::Script } else { Who::Asked };
        let verdict = judge(answered, who, self.patience);
        if let Some(why) = verdict.why {
            self.console.notice(&format!("refused: {why}"));
        }
        if let Some(line) = verdict.next_turn {
            self.console.put_back(line);
        }
        Some(verdict.answer)
    }
}

/// The question before a guarded call: all of it, on one line, and nothing after it but what it would change.
fn question(
    name: &str,
    arguments: &Map<String, Value>,
    preview: Option<&str>,
    choices: &str,
) -> String {
    let shown = json(&Value::Object(arguments.clone()));
    let length = match shown.chars().count() {
        long @ LONG_QUESTION.. => format!(" ({long} characters)"),
        _ => String::new(),
    };
    let call = format!("Allow {} {shown}{length}", line(name));
    match preview {
        Some(preview) => format!("{call}\n{}Allow this? [{choices}] ", excerpt(preview)),
        None => format!("{call}? [{choices}] "),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::question;

    #[test]
    fn a_question_shows_the_whole_call_on_one_line() {
        let short = json!({ "command": "echo\nrm -rf build # end" });
        let long = json!({ "command": format!("{}; rm -rf build", "x".repeat(5000)) });
        let ask = |it: &serde_json::Value| question("bash", it.as_object().unwrap(), None, "y/N");

        assert_eq!(ask(&short), r#"Allow bash {"command":"echo\nrm -rf build # end"}? [y/N] "#);
        assert!(ask(&long).ends_with(r#"; rm -rf build"} (5028 characters)? [y/N] "#));
    }
}
