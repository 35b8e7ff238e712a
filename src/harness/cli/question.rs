//! The question before a guarded call.
//!
//! Part of `cli`.
//! Watch for: nobody can approve what cannot be seen, so all of the call is in it.

use serde_json::{Map, Value};

use super::text::{json, line};

/// Questions longer than this say how long they are, so that nobody takes the end of the screen for the end of them.
const LONG_QUESTION: usize = 1000;

/// The question before a guarded call: all of it, on one line, and nothing after it.
pub(super) fn question(name: &str, arguments: &Map<String, Value>, choices: &str) -> String {
    let shown = json(&Value::Object(arguments.clone()));
    let length = match shown.chars().count() {
        long @ LONG_QUESTION.. => format!(" ({long} characters)"),
        _ => String::new(),
    };
    format!("Allow {} {shown}{length}? [{choices}] ", line(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::question;

    #[test]
    fn a_question_shows_the_whole_call_on_one_line() {
        let short = json!({ "command": "echo\nrm -rf build # end" });
        let long = json!({ "command": format!("{}; rm -rf build", "x".repeat(5000)) });
        let ask = |it: &serde_json::Value| question("bash", it.as_object().unwrap(), "y/N");

        assert_eq!(ask(&short), r#"Allow bash {"command":"echo\nrm -rf build # end"}? [y/N] "#);
        assert!(ask(&long).ends_with(r#"; rm -rf build"} (5028 characters)? [y/N] "#));
    }
}
