//! What a machine can hold of the promise to the reader: headers, the map, budgets, rows, and words that do not belong.
#![expect(clippy::unwrap_used, reason = "a file that cannot be read is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a source file, comments included.
const FILE: usize = 300;

/// Files that may be longer, each with its reason.
const LONGER: [(&str, usize, &str); 0] = [];

/// Lines of the reading path that are not blank: the files of these folders, without the parts in folders of their own.
const READING_PATH: usize = 5_000;
const PARTS: [&str; 2] = ["src/cordis/", "src/harness/"];

/// Words that do not belong in the tree, split so that this file does not hold them.
const UNWANTED: [(&str, &str); 7] = [
    ("TO", "DO"),
    ("FIX", "ME"),
    ("todo", "!("),
    ("unimplemented", "!("),
    ("dbg", "!("),
    ("#[ig", "nore"),
    ("allow(clippy", "::all"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files below a folder, as paths from the root of the project.
fn files(folder: &str, extension: &str) -> Vec<String> {
    let (mut found, mut todo) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true if !path.ends_with("target") => todo.push(path),
                false if path.extension().is_some_and(|it| it == extension) => {
                    found.push(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
                }
                _ => {}
            }
        }
    }
    found.sort();
    found
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn sources() -> Vec<String> {
    ["src", "tests", "benches", "examples"].iter().flat_map(|it| files(it, "rs")).collect()
}

#[test]
fn every_file_begins_with_what_it_is() {
    let bare: Vec<_> =
        sources().into_iter().filter(|path| !read(path).starts_with("//! ")).collect();

    assert_eq!(bare, Vec::<String>::new());
}

#[test]
fn the_map_of_both_readmes_is_complete() {
    for readme in ["README.md", "README.zh.md"] {
        let text = read(readme);
        let rows: Vec<_> = text.lines().filter(|line| line.starts_with("| ")).collect();
        let missing: Vec<_> =
            files("src", "rs").into_iter().filter(|path| !is_on_the_map(&rows, path)).collect();

        assert_eq!(missing, Vec::<String>::new(), "{readme}");
    }
}

/// A file stands in a row with its name; a part in the folder of a file, in the row of that file.
fn is_on_the_map(rows: &[&str], path: &str) -> bool {
    let path = PathBuf::from(path);
    let folder = path.parent().unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    let whole = format!("`{}`", path.display());
    let is_part = root().join(folder).with_extension("rs").exists();
    rows.iter().any(|row| {
        let parent = format!("{}.rs`", folder.file_name().unwrap().to_str().unwrap());
        let has_folder = row.contains("folder") || row.contains("文件夹");
        let stem = format!("`{}`", name.trim_end_matches(".rs"));
        let in_folder = row.contains(&format!("`{}/", folder.display()));
        row.contains(&whole)
            || (in_folder && row.contains(&format!("`{name}`")))
            || (is_part && row.contains(&parent) && (has_folder || row.contains(&stem)))
    })
}

#[test]
fn no_file_outgrows_its_budget() {
    let budget = |path: &str| LONGER.iter().find(|it| it.0 == path).map_or(FILE, |it| it.1);
    let long: Vec<_> = files("src", "rs")
        .into_iter()
        .map(|path| (read(&path).lines().count(), path))
        .filter(|(lines, path)| *lines > budget(path))
        .collect();

    assert_eq!(long, Vec::new(), "two ideas in one file?");
}

#[test]
fn the_reading_path_can_be_read_in_an_afternoon() {
    let is_in =
        |path: &str, part| path.strip_prefix(part).is_some_and(|it: &str| !it.contains('/'));
    let on_path = |path: &&String| PARTS.iter().any(|part| is_in(path, part));
    let sources = files("src", "rs");
    let lines = |path: &String| read(path).lines().filter(|line| !line.trim().is_empty()).count();
    let total: usize = sources.iter().filter(on_path).map(lines).sum();

    assert!(total <= READING_PATH, "{total} lines that are not blank");
}

#[test]
fn the_kernel_does_not_know_that_agents_exist() {
    let knows = |path: &String| {
        read(path)
            .lines()
            .any(|line| !line.trim_start().starts_with("//") && line.contains("harness::"))
    };
    let importing: Vec<_> = files("src/cordis", "rs").into_iter().filter(knows).collect();

    assert_eq!(importing, Vec::<String>::new());
}

#[test]
fn every_row_and_case_is_proved_by_a_test_of_its_number() {
    let names = test_names();
    let proved = |row: &String| names.iter().any(|name| name.starts_with(row.as_str()));
    let kernel = (1..=227).map(|row| format!("k_{row:03}_"));
    let agent = (1..=176).map(|row| format!("h_{row:03}_"));
    let cases = (1..=40).map(|case| format!("a_{case:02}_"));
    let missing: Vec<_> = kernel.chain(agent).chain(cases).filter(|row| !proved(row)).collect();

    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn behaviour_at_the_edges_is_proved_by_the_tests_that_both_readmes_name() {
    let names = test_names();
    let rows = ["README.md", "README.zh.md"].map(|readme| {
        let text = read(readme);
        let columns =
            |row: &str| row.split(" | ").last().unwrap().trim_matches(['`', ' ', '|']).to_owned();
        let rows = text.lines().filter(|line| line.starts_with("| ") && line.ends_with("` |"));
        rows.map(columns).filter(|it| it.matches('_').count() > 3).collect::<Vec<_>>()
    });
    let unknown: Vec<_> = rows[0].iter().filter(|name| !names.contains(name)).collect();

    assert!(rows[0].len() > 30, "{rows:?}");
    assert_eq!(rows[0], rows[1]);
    assert_eq!(unknown, Vec::<&String>::new());
}

/// Of all tests, those beside the code too.
fn test_names() -> Vec<String> {
    let name = |rest: &str| Some(rest.split_once("fn ")?.1.split_once('(')?.0.to_owned());
    let names =
        |path: String| read(&path).split("#[test]").skip(1).filter_map(name).collect::<Vec<_>>();
    ["src", "tests"].iter().flat_map(|it| files(it, "rs")).flat_map(names).collect()
}

#[test]
fn nothing_unfinished_is_in_the_tree() {
    let unwanted: Vec<String> = UNWANTED.iter().map(|(a, b)| format!("{a}{b}")).collect();
    let found: Vec<_> = sources()
        .into_iter()
        .filter(|path| unwanted.iter().any(|word| read(path).contains(word)))
        .collect();

    assert_eq!(found, Vec::<String>::new());
}

/// Second ways of doing what one crate does here already, or code that nobody keeps.
const CRATES_NOT_WANTED: [&str; 6] =
    ["openssl", "native-tls", "aws-lc-rs", "aws-lc-sys", "unsafe-libyaml", "indicatif"];

#[test]
fn no_unwanted_crate_comes_in() {
    let lock = read("Cargo.lock");
    let found: Vec<_> = CRATES_NOT_WANTED
        .into_iter()
        .filter(|name| lock.contains(&format!("name = \"{name}\"\n")))
        .collect();

    assert_eq!(found, Vec::<&str>::new());
}

#[test]
fn snippets_of_both_readmes_stand_in_the_code() {
    let code = [files("src", "rs"), files("examples", "rs"), files("examples", "ts")].concat();
    let code: Vec<String> = code.iter().map(|path| squeezed(&read(path))).collect();
    for readme in ["README.md", "README.zh.md"] {
        let text = read(readme);
        let lost: Vec<_> = ["rust", "ts"]
            .into_iter()
            .flat_map(|it| blocks(&text, it))
            .filter(|snippet| !code.iter().any(|code| code.contains(&squeezed(snippet))))
            .collect();

        assert_eq!(lost, Vec::<String>::new(), "{readme}");
    }
}

#[test]
fn both_readmes_show_the_same_code() {
    let (english, chinese) = (read("README.md"), read("README.zh.md"));
    for language in ["rust", "ts", "console", "yaml"] {
        assert_eq!(blocks(&english, language), blocks(&chinese, language));
    }
}

/// The fenced blocks of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let parts = text.split(fence.as_str()).skip(1);
    parts.map(|part| part.split("```").next().unwrap().to_owned()).collect()
}

/// The text without its indentation.
fn squeezed(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("\n").trim().to_owned()
}
