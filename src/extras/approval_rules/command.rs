//! Part of `approval-rules`: what can be said of a command without being bash.
//!
//! Watch for: bash is not imitated. What is not certain is never allowed by a rule; what a rule denies is looked for twice,
//! where it stands for certain and, in doubt, wherever it could be meant.

/// Ends one command and begins another, or sends what it prints elsewhere.
const SEPARATORS: &str = ";&|<>()\n\r";
/// What bash changes before it runs anything.
const CHANGES: &str = "'\"\\$`{}";

/// The words of a command that bash would run as one program.
pub(super) type Words = Vec<String>;

/// A command as text, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// The commands that it surely runs, up to where that is no longer certain.
    pub(super) certain: Vec<Words>,
    /// That is all of it; else the last of these may go on.
    pub(super) is_clear: bool,
    /// The same without all quoting, to its end: what it could run.
    pub(super) possible: Vec<Words>,
    /// One program and its words, as they stand there.
    pub(super) is_plain: bool,
}

impl Command {
    pub(super) fn read(text: &str) -> Self {
        let end = text.find(is_unclear).unwrap_or(text.len());
        let mut certain = split(&text[..end]);
        // A word that goes on is not known.
        if end < text.len() && !text[..end].ends_with([' ', '\t']) {
            certain.last_mut().and_then(Vec::pop);
        }
        let is_clear = end == text.len() && certain.iter().all(begins_plainly);
        let is_plain = is_clear
            && !text.contains(|it| SEPARATORS.contains(it))
            && certain.first().is_some_and(|it| !it.is_empty());
        let unquoted: String = text.chars().filter_map(unquoted).collect();
        Self { certain, is_clear, possible: split(&unquoted), is_plain }
    }
}

/// Whether it is no longer certain what bash makes of a command from here on.
fn is_unclear(it: char) -> bool {
    CHANGES.contains(it) || (it.is_control() && !"\t\n\r".contains(it))
}

/// Without what only quotes; what begins something else separates.
fn unquoted(it: char) -> Option<char> {
    match it {
        '\'' | '"' | '\\' => None,
        it if is_unclear(it) => Some('\n'),
        it => Some(it),
    }
}

/// One list of words for each command. Bash splits words at blanks and tabs, and at no other white space.
fn split(text: &str) -> Vec<Words> {
    let words = |part: &str| -> Words {
        let words = part.split([' ', '\t']).filter(|it| !it.is_empty());
        words.map(str::to_owned).collect()
    };
    text.split(|it| SEPARATORS.contains(it)).map(words).collect()
}

/// Whether the first word is the name of a program and nothing that bash makes one of: no variable is set, no file named.
fn begins_plainly(words: &Words) -> bool {
    let is_plain = |it: char| it.is_alphanumeric() || "_-./+:@%,".contains(it);
    words.first().is_none_or(|it| it.chars().all(is_plain))
}

#[cfg(test)]
mod tests {
    use std::process;

    use proptest::{prop_assert_eq, proptest};

    use super::Command;

    fn words(parts: &[&str]) -> Vec<Vec<String>> {
        parts.iter().map(|it| it.split_whitespace().map(str::to_owned).collect()).collect()
    }

    #[test]
    fn one_program_and_its_words_are_plain() {
        for text in ["git status", " git\tstatus  --short ", "ls *.rs ~ é", "a=", "./x/y.sh a=b #c"]
        {
            let command = Command::read(text);

            assert_eq!(command.is_plain, text != "a=", "{text}");
        }
    }

    #[test]
    fn d_66_whatever_bash_would_make_something_else_of_is_not_plain() {
        for text in [
            "",
            " ",
            "git status; rm x",
            "git status &",
            "a | b",
            "a < b",
            "a > b",
            "a\nb",
            "a\rb",
            "a `b`",
            "a $(b)",
            "a $b",
            "a ${b}",
            "a {b,c}",
            "a 'b'",
            "a \"b\"",
            "a \\b",
            "(a)",
            "a\0b",
            "a \u{b} b",
            "A=b c",
            "! a",
            "/bin/r? a",
            "[ a ]",
            "~/x",
        ] {
            assert!(!Command::read(text).is_plain, "{text:?}");
        }
    }

    #[test]
    fn commands_are_certain_until_something_is_quoted_and_the_word_before_is_not() {
        let command = Command::read("cd x && rm -rf \"a b\"; ls");
        assert_eq!(command.certain, words(&["cd x", "", "rm -rf"]));
        assert!(!command.is_clear);
        assert_eq!(command.possible, words(&["cd x", "", "rm -rf a b", "ls"]));

        let command = Command::read("rm -r'f' x");
        assert_eq!(command.certain, words(&["rm"]));
        assert_eq!(command.possible, words(&["rm -rf x"]));

        let command = Command::read("rm${IFS}-rf x");
        assert_eq!(command.certain, words(&[""]));
        assert_eq!(command.possible[0], ["rm"]);
    }

    proptest! {
        #[test]
        fn d_66_what_is_plain_bash_splits_into_the_same_words(
            rest in r#"[ab=%,./:@+!^?*\[\]\t é-]{0,8}[ab ;&|<>()$`{}'"\\\n\r-]{0,3}"#,
        ) {
            let command = Command::read(&format!("x {rest}"));
            if command.is_plain {
                // A function in the place of the program; names of files are not what this is about.
                let line = format!("set -f; x() {{ printf '<%s>' x \"$@\"; }}\nx {rest}");
                let said = process::Command::new("bash").args(["-c", &line]).output().unwrap();

                let words = command.certain[0].iter().map(|it| format!("<{it}>"));
                prop_assert_eq!(String::from_utf8_lossy(&said.stdout), words.collect::<String>());
            }
        }
    }
}
