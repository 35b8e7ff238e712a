//! Approval rules in the program: the third answer at the terminal, and the example of the README.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::support::{Folder, list, reason, script, texts};
use crate::terminal::Terminal;

const RULES: &str = "- {id: rules, name: approval-rules}\n";

/// A model that has these commands run in one turn.
fn commands(commands: &[&str]) -> String {
    let calls = commands.iter().map(|it| {
        let arguments = json!({ "command": it });
        format!("{{tool: bash, args: {}}}, ", json!(arguments.to_string()))
    });
    list(&[("llm", &script(&format!("{}{{content: done}}", calls.collect::<String>())))])
}

#[test]
fn an_a_at_the_terminal_approves_this_call_and_the_same_one_later_but_no_other() {
    let list = commands(&["echo \"x\" >> one", "echo \"x\" >> one", "echo \"x\" >> two"]);
    let folder = Folder::with(&(list + RULES));
    let mut terminal = Terminal::start(folder.command(&["hi"]));

    terminal.wait_for(">> one\"}? [y/a/N] ");
    terminal.type_keys("a\r");
    terminal.wait_for("exactly this call of `bash` is not asked about again in this session");
    terminal.wait_for(">> two\"}? [y/a/N] ");
    terminal.type_keys("n\r");
    let (shown, status) = terminal.ended();

    assert_eq!((shown.matches("Allow ").count(), status), (2, 0), "{shown}");
    assert_eq!(fs::read_to_string(folder.path().join("one")).unwrap(), "x\nx\n");
    assert!(!folder.has("two"));
}

#[test]
fn without_rules_an_a_is_a_no() {
    let folder = Folder::with(&commands(&["touch ran"]));
    let mut terminal = Terminal::start(folder.command(&["hi"]));

    terminal.wait_for("? [y/N] ");
    terminal.type_keys("a\r");
    let (shown, _) = terminal.ended();

    assert!(shown.contains("refused: \"a\" is neither y nor yes"), "{shown}");
    assert!(!folder.has("ran"));
}

#[test]
fn what_is_always_asked_about_offers_no_always_and_takes_none() {
    let folder = Folder::with(&(commands(&["rm cordis.yml"]) + RULES));
    let mut terminal = Terminal::start(folder.command(&["hi"]));

    terminal.wait_for("approval-rules: `rm` is always asked about");
    terminal.wait_for("? [y/N] ");
    terminal.type_keys("a\r");
    let (shown, _) = terminal.ended();

    assert!(shown.contains("[result] Error: the user refused"), "{shown}");
    assert!(folder.has("cordis.yml"));
}

#[test]
fn a_pipe_can_say_it_for_one_turn_but_not_where_its_lines_are_turns() {
    let folder = Folder::with(&(commands(&["echo \"x\" >> ran"; 2]) + RULES));
    let ended = folder.run(&["hi"], "a\n");
    assert_eq!((ended.code(), ended.out.matches("Allow ").count()), (0, 1), "{ended:?}");
    assert_eq!(fs::read_to_string(folder.path().join("ran")).unwrap(), "x\nx\n");

    let folder = Folder::with(&(commands(&["touch ran"]) + RULES));
    let ended = folder.run(&[], "hi\na\n");
    assert!(ended.out.contains("? [y/N] ") && !folder.has("ran"), "{ended:?}");
    assert!(ended.err.contains("it stays the next turn"), "{ended:?}");
}

#[test]
fn a_change_of_the_configuration_is_not_approved_for_ever() {
    let save = "echo '- {id: x, name: hooks}' >> cordis.yml; sleep 0.3";
    let folder = Folder::with(&(commands(&[save]) + RULES));
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys("hi\r");
    terminal.wait_for("? [y/a/N] ");
    terminal.type_keys("a\r");

    terminal.wait_for("Apply? [y/N] ");
    terminal.type_keys("a\r");

    terminal.wait_for("refused: \"a\" is neither y nor yes");
}

#[test]
fn a_denied_call_is_told_to_the_model_and_is_no_failure() {
    let rules = "- {id: rules, name: approval-rules, config: {deny: ['bash: touch *']}}\n";
    let folder = Folder::with(&(commands(&["touch ran"]) + rules));

    let ended = folder.run(&["hi"], "");

    let log = folder.log();
    let [told] = texts(&log, "tool/result")[..] else { panic!("{log:?}") };
    assert!(told.starts_with("Error: the rule `bash: touch *` denies this call"), "{told}");
    assert_eq!((ended.code(), reason(&log), folder.has("ran")), (0, "completed", false));
}

#[test]
fn the_rules_of_the_readme_are_a_configuration_that_fits() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = fs::read_to_string(readme).unwrap();
    let mut blocks = text.split("```yaml\n").skip(1).map(|it| it.split("```").next().unwrap());
    let block = blocks.find(|it| it.contains("name: approval-rules")).unwrap();
    let folder = Folder::with(&(list(&[]) + block));

    let ended = folder.run(&["--check"], "");

    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(ended.err.contains("there is no tool named `mcp__files__delete`"), "{ended:?}");
}
