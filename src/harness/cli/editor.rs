//! The line editor: keys, history, completion, and lines that have several lines.
//!
//! Part of `cli`: it lives on the thread that reads standard input (`stdin`).
//! Watch for: a paste is text, whatever it holds, so nothing here is decided by what a line contains but only by keys.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use rustyline::{
    Cmd, CompletionType, ConditionalEventHandler, Config, Editor, Event, EventContext,
    EventHandler, ExternalPrinter, Helper, KeyCode, KeyEvent, Modifiers, RepeatCount,
    completion::{Completer, FilenameCompleter, Pair},
    error::ReadlineError,
    highlight::Highlighter,
    hint::Hinter,
    history::FileHistory,
    validate::Validator,
};

use super::{commands::Names, stdin::Got};

/// Where what was typed is kept, if there is such a folder: whoever keeps sessions makes it.
const FOLDER: &str = ".nano";
const FILE: &str = "history";
/// So many lines are kept,
const KEPT: usize = 1000;
/// but none that is longer, in bytes: that was a paste.
const LONGEST: usize = 10_000;

/// The editor and its history.
pub(super) struct LineEditor {
    editor: Editor<Assistance, FileHistory>,
    history: PathBuf,
    goes_on: GoesOn,
}

impl LineEditor {
    /// With it comes what prints whole lines above the one that is being typed.
    pub(super) fn new(names: Names) -> Option<(Self, impl ExternalPrinter + Send)> {
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .max_history_size(KEPT)
            .and_then(|it| it.history_ignore_dups(true))
            .ok()?
            .build();
        let mut editor = Editor::<Assistance, FileHistory>::with_config(config).ok()?;
        editor.set_helper(Some(Assistance { names, paths: FilenameCompleter::new() }));
        // Ctrl-D that is typed before the prompt is there comes as the key that the system puts in its place.
        editor.bind_sequence(KeyEvent::ctrl('@'), Cmd::EndOfFile);
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
        let goes_on = GoesOn::default();
        let handler = EventHandler::Conditional(Box::new(goes_on.clone()));
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::NONE), handler);
        let printer = editor.create_external_printer().ok()?;
        let history = Path::new(FOLDER).join(FILE);
        let mut editor = Self { editor, history, goes_on };
        editor.recall();
        Some((editor, printer))
    }

    /// A line, below which the prompt and what is typed already stand.
    pub(super) fn edit(&mut self, prompt: &str, typed: &str) -> Got {
        self.goes_on.0.store(0, Ordering::Relaxed);
        let got = match self.editor.readline_with_initial(prompt, (typed, "")) {
            Ok(line) => {
                let line = self.goes_on.settle(line);
                self.remember(&line);
                Got::Text(line.into_bytes())
            }
            Err(ReadlineError::Interrupted) => Got::Interrupt,
            Err(ReadlineError::Io(err)) if err.kind() == io::ErrorKind::InvalidData => Got::Garbled,
            Err(_) => Got::End,
        };
        self.keep();
        got
    }

    /// A history that cannot be read is none.
    fn recall(&mut self) {
        if self.is_safe() && self.history.exists() {
            self.editor.load_history(&self.history).ok();
        }
    }

    fn remember(&mut self, line: &str) {
        if line.len() <= LONGEST && !line.trim().is_empty() {
            self.editor.add_history_entry(line).ok();
        }
    }

    /// What cannot be kept is known until the program ends.
    fn keep(&mut self) {
        if self.is_safe() {
            self.editor.append_history(&self.history).ok();
        }
    }

    /// Nothing is read or written through a link, which a project that was cloned could bring.
    fn is_safe(&self) -> bool {
        let is_folder = fs::symlink_metadata(FOLDER).is_ok_and(|it| it.is_dir());
        let file = fs::symlink_metadata(&self.history);
        is_folder
            && file.map_or_else(|err| err.kind() == io::ErrorKind::NotFound, |it| it.is_file())
    }
}

/// Enter behind a backslash: the line goes on. How often that was so, is counted.
#[derive(Clone, Default)]
struct GoesOn(Arc<AtomicUsize>);

impl GoesOn {
    /// The line without the backslashes that only said that it goes on. If there are others before line ends, which were
    /// pasted, nobody can tell them apart, and all of them stay.
    fn settle(&self, line: String) -> String {
        let count = self.0.swap(0, Ordering::Relaxed);
        if count == 0 || line.matches("\\\n").count() != count {
            return line;
        }
        line.replace("\\\n", "\n")
    }
}

impl ConditionalEventHandler for GoesOn {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, ctx: &EventContext<'_>) -> Option<Cmd> {
        let is_at_end = ctx.pos() == ctx.line().len();
        let goes_on = is_at_end && ends_with_one_backslash(ctx.line());
        if goes_on {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        goes_on.then_some(Cmd::Newline)
    }
}

/// Two of them stand for themselves.
fn ends_with_one_backslash(line: &str) -> bool {
    let count = line.bytes().rev().take_while(|it| *it == b'\\').count();
    count % 2 == 1
}

/// What the editor asks while a line is being typed.
struct Assistance {
    names: Names,
    paths: FilenameCompleter,
}

impl Completer for Assistance {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..at];
        if typed.starts_with('/') && !typed[1..].contains([' ', '\t', '\n', '/']) {
            let names = self.names.beginning_with(typed);
            if !names.is_empty() {
                let pair = |it: String| Pair { replacement: format!("{it} "), display: it };
                return Ok((0, names.into_iter().map(pair).collect()));
            }
        }
        let (start, mut found) = self.paths.complete_path(line, at)?;
        // The name of a file may hold what a terminal obeys.
        found.retain(|it| !it.replacement.chars().chain(it.display.chars()).any(char::is_control));
        Ok((start, found))
    }
}

impl Hinter for Assistance {
    type Hint = String;
}

impl Highlighter for Assistance {}

impl Validator for Assistance {}

impl Helper for Assistance {}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::{GoesOn, ends_with_one_backslash};

    #[test]
    fn one_backslash_goes_on_and_two_are_one() {
        let lines = ["a\\", "\\", "a\\\\\\", "a\\\\", "a", "", "a\\ "];

        assert_eq!(
            lines.map(ends_with_one_backslash),
            [true, true, true, false, false, false, false]
        );
    }

    #[test]
    fn only_backslashes_that_said_so_are_taken_away() {
        let goes_on = GoesOn::default();
        let settled = |count, line: &str| {
            goes_on.0.store(count, Ordering::Relaxed);
            goes_on.settle(line.to_owned())
        };

        assert_eq!(settled(2, "a\\\nb\\\nc"), "a\nb\nc");
        assert_eq!(settled(0, "pasted\\\nb"), "pasted\\\nb");
        assert_eq!(settled(1, "pasted\\\nb\\\nc"), "pasted\\\nb\\\nc");
    }
}
