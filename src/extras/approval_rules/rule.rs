//! Part of `approval-rules`: one rule, `TOOL` or `TOOL: WORDS`, and whether it is about a call.
//!
//! Watch for: what allows must fit to the letter; what denies or asks is also found where it is only likely.

use std::{
    borrow::Cow,
    fmt::{self, Display, Formatter},
};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::command::{Command, Words};
use crate::harness::approval::pattern::fits;

/// A rule of the config.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Rule {
    /// A name, or a pattern of names.
    pub(super) tool: String,
    /// The words of its command. Without any every call fits.
    pub(super) line: Option<Line>,
}

/// Words that stand at the beginning of a command, or are all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) words: Words,
    has_more: bool,
}

/// Whether a rule that denies or asks is about a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    No,
    /// Its words are in it, but not for certain as a command of their own.
    Maybe,
    Yes,
}

impl Rule {
    pub(super) fn is_of(&self, tool: &str) -> bool {
        fits(&self.tool, tool)
    }

    /// For a rule that allows. A command that is not plain is allowed by none.
    pub(super) fn allows(&self, command: Option<&Command>) -> bool {
        match (&self.line, command) {
            (line, None) => line.is_none(),
            (None, Some(command)) => command.is_plain,
            (Some(line), Some(command)) => {
                command.is_plain && line.begins(&command.certain[0], true)
            }
        }
    }

    /// For a rule that denies or asks.
    pub(super) fn fit(&self, command: Option<&Command>) -> Fit {
        match (&self.line, command) {
            (None, _) => Fit::Yes,
            (Some(_), None) => Fit::No,
            (Some(line), Some(command)) => line.fit(command),
        }
    }
}

impl Line {
    fn fit(&self, command: &Command) -> Fit {
        let last = command.certain.len() - 1;
        let mut certain = command.certain.iter().enumerate();
        let is_there = |words: &[String]| self.is_program(words);
        if certain.any(|(at, words)| self.begins(&self.named(words), at < last || command.is_clear))
        {
            return Fit::Yes;
        }
        let is_likely = |part: &Words| part.windows(self.words.len()).any(is_there);
        if command.possible.iter().any(is_likely) { Fit::Maybe } else { Fit::No }
    }

    fn begins(&self, words: &[String], is_whole: bool) -> bool {
        let is_all = is_whole && words.len() == self.words.len();
        words.starts_with(&self.words) && (self.has_more || is_all)
    }

    fn is_program(&self, words: &[String]) -> bool {
        self.named(words).starts_with(&self.words)
    }

    /// The words with a program that is named as the rule names it: a folder before its name makes no other of it.
    fn named<'a>(&self, words: &'a [String]) -> Cow<'a, [String]> {
        match words {
            [first, rest @ ..] if first.rsplit('/').next() == Some(self.words[0].as_str()) => {
                [&self.words[..1], rest].concat().into()
            }
            words => words.into(),
        }
    }
}

impl TryFrom<String> for Rule {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (tool, line) = match text.split_once(':') {
            Some((tool, line)) => (tool.trim(), Some(line)),
            None => (text.trim(), None),
        };
        let is_letter = |it: char| it.is_ascii_alphanumeric() || "_-*".contains(it);
        if tool.is_empty() || !tool.chars().all(is_letter) {
            return Err(format!(
                "`{text}` does not begin with the name of a tool, as `bash: ls *` does"
            ));
        }
        let line = line.map(|it| read_line(&text, it)).transpose()?.flatten();
        Ok(Self { tool: tool.to_owned(), line })
    }
}

/// The words behind the colon. A star alone stands for all commands, as no words do.
fn read_line(text: &str, line: &str) -> Result<Option<Line>, String> {
    let mut words: Words = line.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() {
        return Err(format!(
            "`{text}` has no words after the colon; without the colon it is about every call"
        ));
    }
    let has_more = words.last().is_some_and(|it| it == "*");
    if has_more {
        words.pop();
    }
    if words.iter().any(|it| it.contains('*')) {
        return Err(format!("`{text}`: `*` stands alone and at the end, for any further words"));
    }
    let joined = words.join(" ");
    let command = Command::read(&joined);
    let is_possible = command.is_plain && command.certain[0] == words;
    if !words.is_empty() && !is_possible {
        let advice = "of one program, without quotes and without what bash would change";
        return Err(format!("`{text}` would never fit: a rule has plain words {advice}"));
    }
    Ok((!words.is_empty()).then_some(Line { words, has_more }))
}

impl Display for Rule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(line) = &self.line else { return f.write_str(&self.tool) };
        let more = if line.has_more { " *" } else { "" };
        write!(f, "{}: {}{more}", self.tool, line.words.join(" "))
    }
}

impl JsonSchema for Rule {
    fn schema_name() -> Cow<'static, str> {
        "Rule".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::{Command, Fit, Rule};

    fn rule(text: &str) -> Rule {
        Rule::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn what_allows_fits_whole_words_and_to_the_letter() {
        for (text, command, allows) in [
            ("bash: git status", "git  status", true),
            ("bash: git status", "git status --short", false),
            ("bash: git status", "git statuss", false),
            ("bash: git status", "git", false),
            ("bash: git status *", "git status", true),
            ("bash: git status *", "git status --short x", true),
            ("bash: git status *", "git status; rm x", false),
            ("bash: git status *", "git statusx y", false),
            ("bash: git status *", "/tmp/git status", false),
            ("bash: git status *", "Git status", false),
            ("bash: git *", "git \"status\"", false),
            ("bash: *", "ls", true),
            ("bash", "ls -l", true),
            ("bash", "ls | wc", false),
        ] {
            assert_eq!(
                rule(text).allows(Some(&Command::read(command))),
                allows,
                "{text}: {command}"
            );
        }
    }

    #[test]
    fn d_66_what_denies_is_certain_at_the_beginning_of_a_command_and_likely_elsewhere() {
        for (command, fit) in [
            ("npm publish", Fit::Yes),
            ("npm publish --tag x", Fit::Yes),
            ("cd x && npm publish", Fit::Yes),
            ("(npm publish)", Fit::Yes),
            ("/usr/bin/npm publish", Fit::Yes),
            ("npm publish \"x\"", Fit::Yes),
            ("npm publish $X", Fit::Yes),
            ("env npm publish", Fit::Maybe),
            ("A=b npm publish", Fit::Maybe),
            ("\"npm\" publish", Fit::Maybe),
            ("n\\pm publish", Fit::Maybe),
            ("echo \"a; npm publish\"", Fit::Maybe),
            ("echo $(npm publish)", Fit::Maybe),
            ("npm run publish", Fit::No),
            ("npm publisher", Fit::No),
            ("npm$IFS\"publish\"", Fit::No),
        ] {
            assert_eq!(
                rule("bash: npm publish *").fit(Some(&Command::read(command))),
                fit,
                "{command}"
            );
        }
        let exact = rule("bash: npm publish");
        for (command, fit) in [
            ("npm publish", Fit::Yes),
            ("npm publish; ls", Fit::Yes),
            ("npm publish -x", Fit::Maybe),
        ] {
            assert_eq!(exact.fit(Some(&Command::read(command))), fit, "{command}");
        }
    }

    #[test]
    fn a_rule_that_could_not_fit_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "does not begin with the name of a tool"),
            (": ls", "does not begin with the name of a tool"),
            ("ba sh", "does not begin with the name of a tool"),
            ("bash:", "has no words after the colon"),
            ("bash: ls *.rs", "`*` stands alone and at the end"),
            ("bash: * ls", "`*` stands alone and at the end"),
            ("bash: a; b", "would never fit"),
            ("bash: echo 'a'", "would never fit"),
            ("bash: A=b c", "would never fit"),
        ] {
            let said = Rule::try_from(text.to_owned()).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    #[test]
    fn a_rule_is_shown_as_it_is_understood() {
        for (text, shown) in [
            (" bash :  ls   -l ", "bash: ls -l"),
            ("bash: *", "bash"),
            ("mcp__*", "mcp__*"),
            ("a: b *", "a: b *"),
        ] {
            assert_eq!(rule(text).to_string(), shown);
        }
    }
}
