//! Lists that mean something else than they look (A29, A30), at the start and as a save: said, and nothing changes.

use std::fmt::Write;

use crate::support::{Folder, Running, list};

/// The built-in list with these lines in the place of an entry.
fn with(id: &str, entry: &str) -> String {
    list(&[(id, "")]) + entry
}

/// What is wrong, and the parts of what is said about it.
type Case = (String, Vec<&'static str>);

const APPROVAL: &str = "- id: approval\n  name: approval\n";

/// Nine levels of nine aliases each.
fn bomb() -> String {
    let mut bomb = "- id: approval\n  name: approval\n  x-0: &a0 [1]\n".to_owned();
    for level in 1..=9 {
        let below = format!("*a{}", level - 1);
        let inner = [below.as_str(); 9].join(",");
        writeln!(bomb, "  x-{level}: &a{level} [{inner}]").unwrap();
    }
    bomb
}

/// The same key or id twice, or none (A29).
fn repeated() -> Vec<Case> {
    vec![
        (
            with("llm", "- id: llm\n  name: llm-fake\n  config: {}\n  config: {}\n"),
            vec!["`llm`", "config", "twice", "lines 13 and 14"],
        ),
        (
            list(&[]) + "- {id: bash, name: tool-bash}\n",
            vec!["entry `bash` (line 12)", "entry 7", "(line 7)"],
        ),
        (list(&[]) + "- {name: prompt}\n", vec!["entry 12 (`prompt`)", "no `id`"]),
        (
            with(
                "llm",
                "- id: llm\n  name: llm-openai\n  config:\n    baseUrl: http://a\n    baseUrl: http://b\n    model: m\n",
            ),
            vec!["`llm`", "config.baseUrl", "twice"],
        ),
        (
            with("approval", &format!("{APPROVAL}  config: {{tools: [bash]}}\n  disable: true\n")),
            vec!["disable", "`disabled`"],
        ),
        (
            with("approval", &format!("{APPROVAL}  confg: {{tools: []}}\n")),
            vec!["confg", "`config`"],
        ),
    ]
}

/// An approval that looks switched off (A30).
fn half_guards() -> Vec<Case> {
    vec![
        (
            with("approval", &format!("{APPROVAL}  disabled: yes\n")),
            vec!["`approval`", "disabled", "true or false", "\"yes\""],
        ),
        (
            with("approval", &format!("{APPROVAL}  disabled: on\n")),
            vec!["`approval`", "disabled", "true or false", "\"on\""],
        ),
        (
            with("approval", &format!("{APPROVAL}  disabled: 'true'\n")),
            vec!["`approval`", "disabled", "true or false"],
        ),
        (
            with("approval", &format!("{APPROVAL}  config: {{tools: no}}\n")),
            vec!["config.tools", "a list", "\"no\""],
        ),
        (
            with("approval", &format!("{APPROVAL}  config: {{tools: bash}}\n")),
            vec!["config.tools", "a list", "\"bash\""],
        ),
        (
            with("approval", &format!("{APPROVAL}  config: {{tools: false}}\n")),
            vec!["config.tools", "a list", "false"],
        ),
        (
            with("approval", &format!("{APPROVAL}  config: {{tools: ~}}\n")),
            vec!["config.tools", "is required"],
        ),
        (
            with("approval", &format!("{APPROVAL}  config: {{Tools: []}}\n")),
            vec!["config.Tools", "unknown key", "`tools`"],
        ),
        (with("approval", APPROVAL), vec!["config.tools", "is required"]),
    ]
}

/// What else is not what it looks like (A30).
fn others() -> Vec<Case> {
    vec![
        (
            with(
                "llm",
                "- {id: llm, name: llm-openai, config: {baseUrl: 'http://a', model: 1.10}}\n",
            ),
            vec!["config.model", "a text", "put it in quotes"],
        ),
        (
            with(
                "llm",
                "- {id: llm, name: llm-openai, config: {baseUrl: 'http://a', model: true}}\n",
            ),
            vec!["config.model", "a text", "put it in quotes"],
        ),
        (
            with(
                "llm",
                "- id: llm\n  name: llm-openai\n  x-base: &b {model: m}\n  config: {<<: *b, baseUrl: 'http://u'}\n",
            ),
            vec!["`llm`", "config.<<", "merge keys are not read"],
        ),
        (with("approval", "- id: approval\n\tname: approval\n"), vec!["line 12", "a tab"]),
        (list(&[("approval", "")]) + &bomb(), vec!["not valid YAML"]),
        (
            with("loop", "- {id: loop, name: agent-loop, config: {maxSteps: 1e3x}}\n"),
            vec!["config.maxSteps", "a whole number"],
        ),
    ]
}

/// Both kinds of A30.
fn misread() -> Vec<Case> {
    half_guards().into_iter().chain(others()).collect()
}

#[test]
fn a_29_at_the_start_what_stands_twice_is_named_and_nothing_runs() {
    at_the_start(repeated());
}

#[test]
fn a_29_as_a_save_what_stands_twice_is_named_and_approval_still_asks() {
    as_a_save(repeated());
}

#[test]
fn a_30_at_the_start_what_means_something_else_is_named_and_nothing_runs() {
    at_the_start(misread());
}

#[test]
fn a_30_as_a_save_what_means_something_else_is_named_and_approval_still_asks() {
    as_a_save(misread());
}

fn at_the_start(cases: Vec<Case>) {
    for (bad, parts) in cases {
        let folder = Folder::with(&bad);

        let ended = folder.run(&["hi"], "y\n");

        for part in parts {
            assert!(ended.err.contains(part), "{part} is not in {}", ended.err);
        }
        assert!(ended.err.starts_with("nano-cordis: cordis.yml: "), "{}", ended.err);
        assert_eq!(
            (ended.out.as_str(), ended.code(), ended.err.lines().count()),
            ("", 2, 1),
            "{}",
            ended.err
        );
    }
}

fn as_a_save(cases: Vec<Case>) {
    let folder = Folder::with(&list(&[]));
    let mut running = Running::start(folder.command(&[]));
    running.wait_for_error("continue later");
    for (number, (bad, parts)) in cases.into_iter().enumerate() {
        folder.save(&bad);

        running.wait_for_errors("cordis.yml not applied: ", number + 1);
        let said = running.errors();
        let last = said.lines().last().unwrap();
        for part in parts {
            assert!(last.contains(part), "{part} is not in {last}");
        }
    }
    running.write("hi\nn\n");
    running.end_of_input();
    let ended = running.ended();

    assert!(
        ended.out.contains("Allow bash ") && ended.out.contains("Error: the user refused"),
        "{}",
        ended.out
    );
    assert!(!ended.err.contains("applied cordis.yml\n"), "{}", ended.err);
    assert_eq!(ended.code(), 0);
}
