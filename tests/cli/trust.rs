//! Changes of the list that may be the agent's own (D-22), in a real terminal.

mod later;

use crate::support::{Folder, list, said, script, texts};
use crate::terminal::{CTRL_C, CTRL_D, Terminal};

const QUESTION: &str = "Apply? [y/N] ";
const KEPT: &str = "[nano-cordis] cordis.yml not applied: it changed while a turn ran: ";

/// The list with an approval that asks about nothing.
fn unguarded() -> String {
    list(&[("approval", "name: approval, config: {tools: []}")])
}

/// A list whose model runs this command, then says that it is done; nothing is asked about commands.
fn agent_that_runs(command: &str) -> String {
    list(&[
        (
            "llm",
            &script(&format!("{{tool: bash, args: {{command: '{command}'}}}}, {{content: Done}}")),
        ),
        ("approval", "name: approval, config: {tools: [other]}"),
    ])
}

/// The same agent with another entry written otherwise.
fn with(agent: &str, id: &str, text: &str) -> String {
    let lines = agent.lines().map(|line| match line.starts_with(&format!("- {{id: {id}, ")) {
        true if text.is_empty() => String::new(),
        true => format!("- {{id: {id}, {text}}}\n"),
        false => format!("{line}\n"),
    });
    lines.collect()
}

/// A conversation in which the agent's first turn has put `new` in the place of its list.
fn after_a_turn_that_saves(agent: &str, new: &str) -> (Folder, Terminal) {
    let folder = Folder::with(agent);
    folder.write("new.yml", new);
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    terminal.wait_for("assistant> Done");
    (folder, terminal)
}

#[test]
fn each_way_to_more_power_is_named_and_asked_about_and_a_no_keeps_the_old_state() {
    let agent = agent_that_runs("cp new.yml cordis.yml; sleep 0.3");
    let cases = [
        (with(&agent, "approval", ""), "`approval` would guard nothing"),
        (
            with(&agent, "approval", "name: approval, config: {tools: [other]}, disabled: true"),
            "`approval` would guard nothing",
        ),
        (
            with(&agent, "approval", "name: approval, config: {tools: []}"),
            "`approval` would guard nothing",
        ),
        (
            with(&agent, "approval", "name: approval, config: {tools: [another]}"),
            r#"`approval` would be approval {"tools":["another"]} instead of approval {"tools":["other"]}"#,
        ),
        (with(&agent, "approval", "name: cli"), "`approval` would be cli instead of approval"),
        (
            with(
                &agent,
                "llm",
                "name: llm-openai, config: {baseUrl: 'http://127.0.0.1:1/v1?k=s', model: m}",
            ),
            "`llm` would have baseUrl \"http://127.0.0.1:1/v1?***\"",
        ),
        (
            agent.clone()
                + "- {id: more, optional: true, name: llm-openai, config: {baseUrl: 'http://[::1]/', model: m, apiKeyEnv: PATH}}\n",
            "`more` would have apiKeyEnv \"PATH\"",
        ),
        (
            with(&agent, "shell", "name: shell-local, config: {passEnv: [MY_KEY]}"),
            "`shell` would have passEnv [\"MY_KEY\"]",
        ),
        (agent.clone() + "- {id: x, name: ./x.ts, optional: true}\n", "`x` would run ./x.ts"),
    ];
    for (new, danger) in cases {
        let (folder, mut terminal) = after_a_turn_that_saves(&agent, &new);

        terminal.wait_for(danger);
        terminal.wait_for(QUESTION);
        terminal.type_keys("\r");
        terminal.wait_for(KEPT);
        terminal.wait_for(danger);
        terminal.wait_for("nobody said yes, so all stays as it was");
        terminal.wait_for("you> ");
        folder.save(&agent);
        terminal.wait_for("applied cordis.yml (no entry changed)");
        terminal.type_keys(CTRL_D);
        terminal.ended();

        assert_eq!(folder.sessions().len(), 1, "an entry was mounted again");
    }
}

#[test]
fn a_typed_yes_applies_it() {
    let agent = with(
        &agent_that_runs("cp new.yml cordis.yml; sleep 0.3"),
        "approval",
        "name: approval, config: {tools: [bash]}",
    );
    let new = with(&agent, "approval", "name: approval, config: {tools: []}");
    let folder = Folder::with(&agent);
    folder.write("new.yml", &new);
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    terminal.wait_for("[y/N] ");
    terminal.type_keys("y\r");
    terminal.wait_for("changed; applied when this turn ends");

    terminal.wait_for(&format!(
        "cordis.yml changed while a turn ran: `approval` would guard nothing. {QUESTION}"
    ));
    terminal.type_keys("yes\r");
    terminal.wait_for("[nano-cordis] applied cordis.yml");
    terminal.wait_for("you> ");
    terminal.type_keys("two\r");
    terminal.wait_for("assistant> Done");
    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_D);
    let (shown, _) = terminal.ended();

    assert_eq!(shown.matches("Allow bash").count(), 1, "{shown}");
}

#[test]
fn what_is_not_dangerous_is_applied_unasked() {
    let agent = agent_that_runs("cp new.yml cordis.yml; sleep 0.3");
    let new = with(&agent, "prompt", "name: prompt, config: {persona: another}");
    let (folder, mut terminal) = after_a_turn_that_saves(&agent, &new);

    terminal.wait_for("[nano-cordis] applied cordis.yml");
    terminal.wait_for("session 2");
    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_D);
    let (shown, _) = terminal.ended();

    assert!(!shown.contains(QUESTION), "{shown}");
    assert_eq!(folder.sessions().len(), 1);
}

#[test]
fn ctrl_c_and_ctrl_d_at_the_question_are_a_no_and_the_conversation_goes_on() {
    let agent = agent_that_runs("mv new.yml cordis.yml; sleep 0.3");
    for key in [CTRL_C, CTRL_D] {
        let (folder, mut terminal) = after_a_turn_that_saves(&agent, &unguarded());

        terminal.wait_for(QUESTION);
        terminal.type_keys(key);
        terminal.wait_for(KEPT);
        terminal.wait_for("you> ");
        terminal.type_keys("two\r");
        terminal.wait_for("assistant> Done");
        terminal.wait_for("you> ");
        terminal.type_keys(CTRL_D);

        assert_eq!((terminal.ended().1, said(&folder.log())), (0, vec!["one", "two"]));
    }
}

#[test]
fn what_was_typed_before_the_question_is_no_answer() {
    let agent = agent_that_runs(
        "[ -e begun ] || cp new.yml cordis.yml; touch begun; while [ ! -e go ]; do sleep 0.02; done",
    );
    let folder = Folder::with(&agent);
    folder.write("new.yml", &unguarded());
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    terminal.wait_for("applied when this turn ends");

    terminal.type_keys("y\r");
    terminal.wait_for("y\r\n");
    folder.write("go", "");
    terminal.wait_for(QUESTION);
    terminal.type_keys("n\r");
    terminal.wait_for(KEPT);
    // It is a turn: that is what lines typed ahead are.
    terminal.wait_for("you> y");
    terminal.wait_for("assistant> Done");
    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_D);
    terminal.ended();

    assert_eq!(said(&folder.log()), ["one", "y"]);
}

#[test]
fn in_a_pipe_it_is_refused_unasked_and_the_guard_still_guards() {
    let agent = with(
        &agent_that_runs("cp new.yml cordis.yml; sleep 0.3"),
        "approval",
        "name: approval, config: {tools: [bash]}",
    );
    let folder = Folder::with(&agent);
    folder.write("new.yml", &unguarded());

    let ended = folder.run(&[], "one\ny\ntwo\nn\n");

    let kept = format!(
        "{KEPT}`approval` would guard nothing; there is nobody at a terminal to say yes, so all stays as it was\n"
    );
    assert!(ended.err.contains(&kept), "{}", ended.err);
    assert_eq!(ended.out.matches("Allow bash").count(), 2, "{}", ended.out);
    assert!(texts(&folder.log(), "tool/result")[1].starts_with("Error: the user refused"));
}

#[test]
fn a_resumed_conversation_is_no_way_round() {
    let agent = agent_that_runs("cp new.yml cordis.yml; sleep 0.3");
    let folder = Folder::with(&agent);
    folder.write("new.yml", &agent);
    folder.run(&["zero"], "");
    folder.write("new.yml", &unguarded());
    let mut terminal = Terminal::start(folder.command(&["-c"]));
    terminal.wait_for("you> ");
    terminal.type_keys("one\r");

    terminal.wait_for(QUESTION);
    terminal.type_keys("n\r");
    terminal.wait_for(KEPT);
    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_D);
    terminal.ended();

    assert_eq!(said(&folder.log()), ["zero", "one"]);
}
