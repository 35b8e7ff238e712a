//! What the program was started with.
//!
//! Part of `cli`: the console carries it, because it belongs to the process and not to a plugin that may be restarted.
//! Watch for: there are no sub-commands, so that any text can be a prompt.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, ColorChoice, CommandFactory, FromArgMatches, Parser, ValueEnum};
use clap_complete::Shell;

use super::text::message;

/// The command line.
#[expect(clippy::struct_excessive_bools, reason = "a flag on the command line is a bool")]
#[derive(Debug, Clone, Default, Parser)]
#[command(name = "nano-cordis", version, color = ColorChoice::Never, about = "A small AI agent in which everything is a plugin")]
#[command(after_help = "Without PROMPT a conversation begins; lines from a pipe are its turns.\n\
    Exit status: 0 completed, 1 the turn failed, 2 usage or configuration, 3 step or token limit, 128+N signal N.")]
pub struct Arguments {
    /// One turn with this text, then exit; several words are one prompt, and `-` reads it from standard input
    #[arg(value_name = "PROMPT")]
    words: Vec<String>,
    /// Continue a saved session: its id, or any beginning that only it has
    #[arg(short, long, value_name = "ID")]
    pub resume: Option<String>,
    /// Continue the session that changed last
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub resume_newest: bool,
    /// Begin a new session with the whole turns of a saved one, which stays as it is
    #[arg(long, value_name = "ID", conflicts_with_all = ["resume", "resume_newest"])]
    pub fork: Option<String>,
    /// List the saved sessions of this folder
    #[arg(long, conflicts_with_all = ["words", "resume", "resume_newest", "fork"])]
    pub sessions: bool,
    /// Close a turn that a session was left in by a program that died
    #[arg(long, value_name = "ID", conflicts_with_all = ["words", "resume", "resume_newest", "fork", "sessions"])]
    pub repair: Option<String>,
    /// Use another configuration than ./cordis.yml
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Set one config value of one entry for this run (--set llm.model=NAME); may be repeated
    #[arg(long, value_name = "ID.KEY=VALUE", value_parser = override_from)]
    pub set: Vec<Override>,
    /// Leave an entry out of this run; may be repeated
    #[arg(long, value_name = "ID")]
    pub disable: Vec<String>,
    /// Mount everything, print each entry and what it waits for, and exit with 0 if all run
    #[arg(long, conflicts_with_all = ["words", "resume", "resume_newest", "fork", "sessions", "repair"])]
    pub check: bool,
    /// Write nano-cordis.d.ts, the types for plugins in TypeScript, into this folder
    #[arg(long, conflicts_with_all = ["words", "resume", "resume_newest", "fork", "sessions", "repair", "config", "set", "disable", "check"])]
    pub types: bool,
    /// Write a commented cordis.yml into this folder (--init deepseek, openai, ollama or openrouter names the model)
    #[arg(long, value_name = "SERVICE", num_args = 0..=1, default_missing_value = "fake", value_enum, hide_possible_values = true)]
    #[arg(conflicts_with_all = ["words", "resume", "resume_newest", "fork", "sessions", "repair", "config", "set", "disable", "check", "types"])]
    pub init: Option<Beginning>,
    /// Print a JSON Schema of cordis.yml, for editors
    #[arg(long, conflicts_with_all = ["words", "resume", "resume_newest", "fork", "sessions", "repair", "config", "set", "disable", "check", "types", "init"])]
    pub schema: bool,
    /// Print the completions of a shell: bash, elvish, fish, powershell, zsh
    #[arg(long, value_name = "SHELL", value_enum, hide_possible_values = true)]
    #[arg(conflicts_with_all = ["words", "resume", "resume_newest", "fork", "sessions", "repair", "config", "set", "disable", "check", "types", "init", "schema"])]
    pub completions: Option<Shell>,
    /// Print the page of the manual (nano-cordis --man | man -l -)
    #[arg(long, conflicts_with_all = ["words", "resume", "resume_newest", "fork", "sessions", "repair", "config", "set", "disable", "check", "types", "init", "schema", "completions"])]
    pub man: bool,
    /// What stdout is for: text for people, json (one object a turn) or stream-json (one an event) for programs
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        value_enum,
        hide_possible_values = true
    )]
    #[arg(conflicts_with_all = ["sessions", "repair", "check", "types", "init", "schema", "completions", "man"])]
    output_format: OutputFormat,
    /// The same as --output-format json
    #[arg(long, conflicts_with_all = ["output_format", "sessions", "repair", "check", "types", "init", "schema", "completions", "man"])]
    json: bool,
    /// Say more on stderr; twice for everything
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
    /// Only the final text on stdout, only errors and warnings on stderr
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
}

/// The model of a configuration to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Beginning {
    /// The one that answers by script.
    Fake,
    /// The service of this name.
    Deepseek,
    /// The service of this name.
    Openai,
    /// A server on this machine.
    Ollama,
    /// The service of this name.
    Openrouter,
}

/// What stdout is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// A transcript.
    #[default]
    Text,
    /// The result of each turn.
    Json,
    /// What is logged, as it is logged, and the result of each turn.
    StreamJson,
}

/// One `--set`: `(entry id, dotted key, text of the value)`.
pub type Override = (String, String, String);

/// Where the prompt of a one-shot comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    /// It stands on the command line.
    Text(String),
    /// All of standard input.
    Stdin,
}

/// Why there is nothing to run.
#[derive(Debug)]
pub enum Refused {
    /// The user asked for a text (help, version), and this is it.
    Asked(String),
    /// The command line is wrong; one line says how, and the format is the one that it seems to ask for.
    Usage(String, OutputFormat),
}

impl Arguments {
    /// Reads a command line, the program's name first.
    pub fn read(line: impl IntoIterator<Item = OsString>) -> Result<Self, Refused> {
        let line: Vec<_> = line.into_iter().collect();
        Self::command()
            .try_get_matches_from(&line)
            .and_then(|matches| Self::from_arg_matches(&matches))
            .map_err(|err| refused(&err, &line))
    }

    /// What stdout is for.
    pub fn format(&self) -> OutputFormat {
        if self.json { OutputFormat::Json } else { self.output_format }
    }

    /// Whether there is one thing to do, and no conversation to lead.
    pub fn is_one_shot(&self) -> bool {
        !self.words.is_empty() || self.sessions || self.repair.is_some() || self.check
    }

    /// The prompt, if there is one.
    pub fn prompt(&self) -> Option<Prompt> {
        match self.words.as_slice() {
            [] => None,
            [one] if one == "-" => Some(Prompt::Stdin),
            words => Some(Prompt::Text(words.join(" "))),
        }
    }
}

fn override_from(text: &str) -> Result<Override, String> {
    let form = "as in loop.maxSteps=5";
    let (place, value) = text.split_once('=').ok_or(format!("it has no `=`, {form}"))?;
    match place.split_once('.') {
        Some((id, key)) if place.split('.').all(|it| !it.trim().is_empty()) => {
            Ok((id.into(), key.into(), value.into()))
        }
        Some(_) => Err(format!("a name is missing beside a `.`; it is ID.KEY=VALUE, {form}")),
        None => Err(format!("what stands before `=` is not ID.KEY, {form}")),
    }
}

/// clap's message is several lines with an empty one between them; here it is one.
fn refused(err: &clap::Error, line: &[OsString]) -> Refused {
    let text = err.to_string();
    if !err.use_stderr() {
        return Refused::Asked(format!("{}\n", text.trim_end()));
    }
    let lines: Vec<_> = text
        .lines()
        .map(str::trim)
        .take_while(|it| !it.starts_with("Usage:"))
        .filter(|it| !it.is_empty())
        .collect();
    let said = lines.join("; ");
    let said = said.trim_start_matches("error: ").split("; For more").next().unwrap_or_default();
    Refused::Usage(message(&format!("{said} (see nano-cordis --help)")), format_of(line))
}

/// A program that asked for JSON wants to be told in JSON that it asked for something else wrongly.
fn format_of(line: &[OsString]) -> OutputFormat {
    let words = line.iter().map(|it| it.to_string_lossy()).take_while(|it| it != "--");
    let words = words.collect::<Vec<_>>().join("=");
    let asks_for = |it: &str| format!("={words}=").contains(&format!("=--{it}="));
    match () {
        () if asks_for("output-format=stream-json") => OutputFormat::StreamJson,
        () if asks_for("output-format=json") || asks_for("json") => OutputFormat::Json,
        () => OutputFormat::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::{Arguments, Prompt, Refused};

    fn read(words: &[&str]) -> Result<Arguments, Refused> {
        Arguments::read(["nano-cordis"].iter().chain(words).map(Into::into))
    }

    fn usage(words: &[&str]) -> String {
        match read(words) {
            Err(Refused::Usage(text, _)) => text,
            other => panic!("{words:?} gave {other:?}"),
        }
    }

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn a_set_that_lacks_a_name_is_refused_with_the_right_form() {
        for argument in [
            "loop..maxSteps=5",
            "loop.=5",
            ".x=5",
            ".=5",
            "loop.a.=5",
            "loop. .a=5",
            "..=",
            "loop.a..b=5",
        ] {
            let text = usage(&["--set", argument]);

            let named = format!(
                "invalid value '{argument}' for '--set <ID.KEY=VALUE>': a name is missing beside a `.`"
            );
            assert!(text.starts_with(&named) && text.contains("as in loop.maxSteps=5"), "{text}");
        }
    }

    #[test]
    fn several_words_are_one_prompt() {
        let prompt = read(&["say", "hello", "--resume", "x", "again"]).unwrap().prompt();

        assert_eq!(prompt, Some(Prompt::Text("say hello again".into())));
    }

    #[test]
    fn a_dash_alone_stands_for_standard_input_and_none_for_a_conversation() {
        assert_eq!(read(&["-"]).unwrap().prompt(), Some(Prompt::Stdin));
        assert_eq!(read(&[]).unwrap().prompt(), None);
    }

    #[test]
    fn after_two_dashes_everything_is_prompt() {
        assert_eq!(
            read(&["--", "--resume"]).unwrap().prompt(),
            Some(Prompt::Text("--resume".into()))
        );
    }

    #[test]
    fn a_value_may_hold_dots_and_equals_signs() {
        let set = read(&["--set", "llm.body.a=b.c=d"]).unwrap().set;

        assert_eq!(set, [("llm".into(), "body.a".into(), "b.c=d".into())]);
    }

    #[test]
    fn a_wrong_command_line_is_one_line_that_names_what_is_wrong() {
        for (words, named) in [
            (&["--resum", "x"][..], "--resum"),
            (&["--resume"], "--resume"),
            (
                &["--set", "llm=1"],
                "'llm=1' for '--set <ID.KEY=VALUE>': what stands before `=` is not ID.KEY, as in loop.maxSteps=5",
            ),
            (&["--set", "llm.model"], "no `=`"),
            (&["-q", "-v"], "--quiet"),
        ] {
            let text = usage(words);

            assert!(text.contains(named) && !text.contains('\n'), "{text}");
        }
    }
}
