//! Part of `tool-files`: `grep`, the lines that a regular expression finds.
//!
//! Watch for: files are searched on all cores in any order, and told in the order of their paths. So what is kept is only
//! what comes first, and a file that would come after all of that is not even opened.

use std::{
    collections::BTreeMap,
    fmt::Write,
    path::{Path, PathBuf},
    rc::Rc,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use ignore::{DirEntry, WalkBuilder, WalkState};
use regex::bytes::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::{
    change::parsed,
    error::FileError,
    job::on_thread,
    open::open_at_once,
    place::{Place, Root},
    scan::{Hit, Scanner},
    walk::{Pattern, walk},
};
use crate::harness::{
    cli::text::line,
    tools::{Call, Tool},
};

/// So many lines are told,
const HITS: usize = 250;
/// with so many bytes in all,
const BYTES: usize = 102_400;
/// of what is found in so long.
const PATIENCE: Duration = Duration::from_secs(30);

const DESCRIPTION: &str = "Find lines by a regular expression (the syntax of ripgrep), line by line. Gives \
                           `path:line:text`, sorted by path, at most 250 lines; binary files and what `.gitignore` names \
                           are left out.";

/// What the model fills in.
#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The regular expression.
    pattern: String,
    /// The file or folder to search.
    path: Option<String>,
    /// Only files whose path fits this pattern: `*.rs`, `src/**/*.ts`.
    glob: Option<String>,
    /// Takes large and small letters for the same.
    ignore_case: Option<bool>,
}

pub(super) fn tool(root: &Root) -> Tool {
    let (asked, root) = (root.clone(), root.clone());
    let run = async move |arguments: Arguments, call: Rc<Call>| {
        let search = Search::new(&root, &arguments)?;
        on_thread(&call.cancel, move |stop| search.run(stop)).await
    };
    Tool::typed("grep", DESCRIPTION, run).checked(move |arguments| {
        let arguments: Arguments = parsed(arguments)?;
        Search::new(&asked, &arguments).map(drop).map_err(|it| it.to_string())
    })
}

/// What is looked for, and where.
struct Search {
    walk: WalkBuilder,
    from: Place,
    base: PathBuf,
    regex: Regex,
    files: Option<Pattern>,
}

impl Search {
    fn new(root: &Root, asked: &Arguments) -> Result<Self, FileError> {
        let from = root.find(asked.path.as_deref().unwrap_or("."))?;
        let files = asked.glob.as_deref().map(|it| Pattern::new(it, root, &from.path));
        Ok(Self {
            regex: regex(&asked.pattern, asked.ignore_case == Some(true))?,
            walk: walk(root, &from.path),
            base: root.path().to_owned(),
            files: files.transpose()?,
            from,
        })
    }

    fn run(&self, stop: &CancellationToken) -> String {
        let deadline = Instant::now() + PATIENCE;
        let (found, is_late) = (Shared::default(), AtomicBool::new(false));
        let is_over = || {
            let late = Instant::now() > deadline;
            is_late.fetch_or(late, Ordering::Relaxed);
            late || stop.is_cancelled()
        };
        self.walk.build_parallel().run(|| {
            let mut scanner = Scanner::new(self.regex.clone());
            let (found, is_over) = (&found, &is_over);
            Box::new(move |entry| {
                match entry {
                    _ if is_over() => return WalkState::Quit,
                    Ok(entry) => self.visit(&entry, &mut scanner, found, is_over),
                    Err(_) => found.lock().unread += 1,
                }
                WalkState::Continue
            })
        });
        let mut text = found.lock().text();
        if is_late.into_inner() {
            let seconds = PATIENCE.as_secs();
            write!(text, "\n[stopped after {seconds} s; search in fewer files]").ok();
        }
        text
    }

    fn visit(
        &self,
        entry: &DirEntry,
        scanner: &mut Scanner,
        found: &Shared,
        is_over: &dyn Fn() -> bool,
    ) {
        let path = entry.path();
        if !entry.file_type().is_some_and(|it| it.is_file()) || !self.is_meant(path) {
            return;
        }
        if found.is_full.load(Ordering::Relaxed) && found.lock().is_after_all(path) {
            return;
        }
        match open_at_once(path).and_then(|it| scanner.scan(it, HITS + 1, is_over)) {
            Ok(it) if it.is_binary && entry.depth() == 0 => found.lock().is_binary = true,
            Ok(it) if it.hits.is_empty() => {}
            Ok(it) => {
                let name = path.strip_prefix(&self.base).unwrap_or(path);
                let is_full = found.lock().add(path, line(&name.to_string_lossy()), it.hits);
                found.is_full.fetch_or(is_full, Ordering::Relaxed);
            }
            Err(_) => found.lock().unread += 1,
        }
    }

    fn is_meant(&self, path: &Path) -> bool {
        let Some(files) = &self.files else { return true };
        match path.strip_prefix(&self.from.path) {
            Ok(inner) if !inner.as_os_str().is_empty() => files.fits(inner),
            _ => path.file_name().is_some_and(|it| files.fits(Path::new(it))),
        }
    }
}

fn regex(pattern: &str, ignore_case: bool) -> Result<Regex, FileError> {
    let mut builder = RegexBuilder::new(pattern);
    builder.multi_line(true).crlf(true).case_insensitive(ignore_case);
    let wrong = |problem| Err(FileError::Regex { pattern: line(pattern), problem });
    match builder.build() {
        _ if pattern.contains('\n') => {
            wrong("it is about several lines, and a match is in one".into())
        }
        Ok(regex) => Ok(regex),
        Err(err) => {
            let text = err.to_string();
            let last = text.lines().last().unwrap_or_default();
            wrong(last.trim_start_matches("error: ").to_owned())
        }
    }
}

/// What all threads have found.
#[derive(Default)]
struct Shared {
    found: Mutex<Found>,
    is_full: AtomicBool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first lines of all: never fewer than are told, if there are so many.
#[derive(Default)]
struct Found {
    files: BTreeMap<PathBuf, (String, Vec<Hit>)>,
    hits: usize,
    unread: usize,
    is_binary: bool,
}

impl Found {
    /// Whether there are enough now.
    fn add(&mut self, path: &Path, name: String, hits: Vec<Hit>) -> bool {
        self.hits += hits.len();
        self.files.insert(path.to_owned(), (name, hits));
        while let Some(last) = self.files.last_entry() {
            let without = self.hits - last.get().1.len();
            if without <= HITS {
                break;
            }
            self.hits = without;
            last.remove();
        }
        self.hits > HITS
    }

    fn is_after_all(&self, path: &Path) -> bool {
        self.files.last_key_value().is_some_and(|(last, _)| last.as_path() < path)
    }

    fn text(&self) -> String {
        let hits =
            self.files.values().flat_map(|(name, hits)| hits.iter().map(move |it| (name, it)));
        let (mut text, mut told) = (String::new(), 0);
        for (name, Hit { line, text: found }) in hits.take(HITS) {
            if text.len() + found.len() > BYTES {
                break;
            }
            told += 1;
            writeln!(text, "{name}:{line}:{found}").ok();
        }
        text.pop();
        match told {
            0 if self.is_binary => text.push_str("(no match: the file is binary)"),
            0 => text.push_str("(no match)"),
            _ if told < self.hits => {
                write!(text, "\n\n[the first {told} matches; there are more, search for less]")
                    .ok();
            }
            _ => {}
        }
        if self.unread > 0 {
            write!(text, "\n[{} could not be read]", self.unread).ok();
        }
        text
    }
}
