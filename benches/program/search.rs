//! The tool `grep` over a large tree, beside ripgrep, if that is installed.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use tempfile::TempDir;

use crate::measure::measured;
use crate::row;

/// 100 folders with 20 in each, and 50 files in each of these.
const TREE: [usize; 3] = [100, 20, 50];
const RUNS: usize = 5;

/// The quickest of several runs each, one beside the other, so that both find the same machine.
pub(crate) fn rows() {
    let tree = tree();
    let (mut ours, mut theirs) = (f64::MAX, f64::MAX);
    for _ in 0..RUNS {
        ours = ours.min(measured(tree.path(), "", &["find it"]).wall_ms);
        theirs = theirs.min(ripgrep(tree.path()).unwrap_or(f64::MAX));
    }
    if theirs < f64::MAX {
        row("one turn with grep over 100,000 files, to ripgrep", ours / theirs, "ratio", 1.2);
    } else {
        eprintln!("there is no `rg` to compare with");
    }
}

fn ripgrep(tree: &Path) -> Option<f64> {
    let begin = Instant::now();
    let mut command = Command::new("rg");
    command.args(["--line-number", "--hidden", "needle", "."]).current_dir(tree);
    command.stdout(Stdio::null()).status().ok()?;
    Some(begin.elapsed().as_secs_f64() * 1e3)
}

/// A tree of small files of words, some with what is looked for, and the list of an agent that looks for it.
fn tree() -> TempDir {
    let tree = tempfile::tempdir().expect("a folder");
    let script = "name: llm-fake\n  config: {script: [{tool: grep, args: {pattern: needle}}, {content: done}]}";
    let list = include_str!("../../cordis.yml").replace("name: llm-fake", script);
    let list = list + "- {id: files, name: tool-files}\n";
    fs::write(tree.path().join("cordis.yml"), list).expect("the folder is ours");
    let [many, some, few] = TREE;
    for number in 0..many * some {
        let folder = tree.path().join(format!("{}/{}", number / some, number % some));
        fs::create_dir_all(&folder).expect("the folder is ours");
        for file in 0..few {
            let text = text(number * few + file);
            fs::write(folder.join(format!("{file}.rs")), text).expect("room on the disk");
        }
    }
    tree
}

fn text(number: usize) -> String {
    let mut text = String::new();
    for line in 0..10 + number * 7 % 140 {
        writeln!(text, "    let value_{line} = handle.stream({number}, buffer, index)?;")
            .expect("a string takes all");
    }
    if number.is_multiple_of(1_000) {
        text.push_str("    // the needle\n");
    }
    text
}
