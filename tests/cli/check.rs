//! `--check`: everything is mounted and told, and nothing else happens.

use crate::support::{Folder, Running, list, scripted};

#[test]
fn a_check_tells_each_entry_and_leaves_nothing_behind() {
    let folder = Folder::with(&list(&[
        ("bash", "name: tool-bash, disabled: true"),
        ("approval", "name: approval, config: {tools: []}"),
    ]));

    let ended = folder.run(&["--check"], "");

    let rows: Vec<Vec<&str>> =
        ended.out.lines().map(|it| it.split_whitespace().collect()).collect();
    let ids: Vec<_> = rows.iter().map(|it| it[0]).collect();
    assert_eq!(
        ids,
        [
            "session",
            "persistence",
            "prompt",
            "llm",
            "tools",
            "shell",
            "bash",
            "approval",
            "loop",
            "cli",
            "hmr"
        ]
    );
    assert_eq!(
        (&rows[3], &rows[6]),
        (&vec!["llm", "llm-fake", "active"], &vec!["bash", "tool-bash", "disabled"])
    );
    assert_eq!((ended.err.as_str(), ended.code(), folder.has(".nano")), ("", 0, false));
}

#[test]
fn a_check_names_what_failed_and_what_each_entry_waits_for() {
    let folder = Folder::with(&format!(
        "{}- {{id: second, name: session}}\n- {{id: odd, name: ./none.xyz}}\n",
        list(&[("llm", "")])
    ));

    let ended = folder.run(&["--check"], "");

    for row in [
        "loop         agent-loop   waits for llm\n",
        "cli          cli          waits for agentLoop\n",
        "second       session      failed: ",
        "odd          ./none.xyz   not loaded: ",
    ] {
        assert!(ended.out.contains(row), "{row} is not in\n{}", ended.out);
    }
    assert_eq!(ended.code(), 2, "{}", ended.err);
}

#[test]
fn an_optional_entry_that_does_not_run_fails_a_check_too() {
    let folder =
        Folder::with(&format!("{}- {{id: second, name: llm-fake, optional: true}}\n", list(&[])));

    assert_eq!(folder.run(&["--check"], "").code(), 2);
}

#[test]
fn a_check_of_a_list_that_does_not_fit_says_what_is_wrong() {
    let folder = Folder::with(&list(&[("loop", "name: agent-loop, config: {maxSteps: many}")]));

    let ended = folder.run(&["--check"], "");

    assert!(ended.err.contains("maxSteps"), "{}", ended.err);
    assert_eq!((ended.out.as_str(), ended.code()), ("", 2));
}

#[test]
fn a_check_warns_of_a_key_that_is_not_there_and_sends_nothing() {
    let llm = "name: llm-openai, config: {baseUrl: 'http://127.0.0.1:9', model: m, apiKeyEnv: NO_SUCH_KEY}";
    let folder = Folder::with(&list(&[("llm", llm)]));

    let without = folder.run(&["--check", "-q"], "");
    let mut command = folder.command(&["--check"]);
    command.env("NO_SUCH_KEY", "sk-12345678");
    let with = Running::start(command).ended_with_input_open();

    assert!(without.err.contains("NO_SUCH_KEY is not set"), "{}", without.err);
    assert_eq!((with.err.as_str(), without.code(), with.code()), ("", 0, 0));
    assert!(!format!("{with:?}").contains("12345"));
}

#[test]
fn a_check_warns_of_a_guard_that_guards_nothing() {
    let folder = Folder::with(&list(&[("approval", "name: approval, config: {tools: [bsh]}")]));

    let ended = folder.run(&["--check", "-q"], "");

    for warning in ["bash: runs without asking", "approval: there is no tool named `bsh`"] {
        assert!(ended.err.contains(warning), "{}", ended.err);
    }
}

#[test]
fn what_the_command_line_says_of_entries_is_checked_as_well() {
    let folder = Folder::with(&scripted("{content: Hello}"));

    let set = folder.run(&["--check", "--set", "loop.maxSteps=0"], "");
    let disabled = folder.run(&["--check", "--disable", "llm"], "");

    assert!(set.err.contains("--set loop.maxSteps"), "{}", set.err);
    assert!(disabled.out.contains("llm          llm-fake     disabled\n"), "{}", disabled.out);
    assert_eq!((set.code(), disabled.code()), (2, 2));
}
