//! The same changes, where they are not noticed before the turn has ended, or come from what it left behind.

use std::os::unix::fs::symlink;

use super::{KEPT, QUESTION, after_a_turn_that_saves, agent_that_runs, unguarded, with};
use crate::support::{Folder, events, said};
use crate::terminal::{CTRL_C, CTRL_D, Terminal};

/// The agent, with a watcher that notices a save half a second later.
fn slowly_watched(command: &str) -> String {
    with(&agent_that_runs(command), "hmr", "name: hmr, config: {debounceMs: 500}")
}

/// Answers with no, and the guard is as it was: the second turn of such a test asks nothing that the first did not.
fn refuse(terminal: &mut Terminal) {
    terminal.wait_for(QUESTION);
    terminal.type_keys("n\r");
    terminal.wait_for(KEPT);
}

/// At a prompt, a question waits for the end of the line that may be in the making.
fn refuse_at_the_prompt(terminal: &mut Terminal) {
    terminal.wait_for("would guard nothing; press Enter to be asked");
    terminal.type_keys("\r");
    refuse(terminal);
}

fn leave(mut terminal: Terminal) -> String {
    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_D);
    terminal.ended().0
}

#[test]
fn a_save_in_the_last_instant_of_a_turn_counts_as_made_in_it() {
    let agent = slowly_watched("cp new.yml cordis.yml");
    let (folder, mut terminal) = after_a_turn_that_saves(&agent, &unguarded());

    refuse_at_the_prompt(&mut terminal);
    leave(terminal);

    assert_eq!(folder.sessions().len(), 1);
}

#[test]
fn a_line_that_is_being_typed_is_a_turn_after_the_question() {
    let agent = slowly_watched("cp new.yml cordis.yml");
    let (folder, mut terminal) = after_a_turn_that_saves(&agent, &unguarded());
    terminal.wait_for("you> ");

    terminal.type_keys("two");
    terminal.wait_for("press Enter to be asked");
    terminal.type_keys("\r");
    refuse(&mut terminal);
    terminal.wait_for("assistant> Done");
    leave(terminal);

    assert_eq!(said(&folder.log()), ["one", "two"]);
}

#[test]
fn a_line_whose_turn_waits_for_a_change_that_starts_the_command_line_anew_is_not_lost() {
    let agent = slowly_watched("cp new.yml cordis.yml");
    let new = with(&unguarded(), "prompt", "name: prompt, config: {persona: another}");
    let (folder, mut terminal) = after_a_turn_that_saves(&agent, &new);
    terminal.wait_for("you> ");

    terminal.type_keys("two");
    terminal.wait_for("press Enter to be asked");
    terminal.type_keys("\r");
    terminal.wait_for(QUESTION);
    terminal.type_keys("y\r");
    terminal.wait_for("session 2");
    terminal.wait_for("you> two");
    terminal.wait_for("[result] hello from nano");
    leave(terminal);

    let mut turns: Vec<_> = folder.sessions().iter().map(|it| said(&events(it)).concat()).collect();
    turns.sort();
    assert_eq!(turns, ["one", "two"]);
}

#[test]
fn a_harmless_save_does_not_open_the_door_for_the_one_after_it() {
    let command = "cp harmless.yml cordis.yml; sleep 0.5; cp new.yml cordis.yml";
    let agent = agent_that_runs(command);
    let folder = Folder::with(&agent);
    folder
        .write("harmless.yml", &with(&agent, "prompt", "name: prompt, config: {persona: another}"));
    folder.write("new.yml", &unguarded());
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    terminal.wait_for("changed; applied when this turn ends");

    refuse_at_the_prompt(&mut terminal);
    let shown = leave(terminal);

    assert!(!shown.contains("[nano-cordis] applied cordis.yml\n"), "{shown}");
}

#[test]
fn what_was_refused_does_not_come_in_with_a_save_of_the_user() {
    let agent = agent_that_runs("cp new.yml cordis.yml; sleep 0.3");
    let new = with(&agent, "approval", "name: approval, config: {tools: []}");
    let (folder, mut terminal) = after_a_turn_that_saves(&agent, &new);
    refuse(&mut terminal);
    terminal.wait_for("you> ");

    folder.save(&with(&new, "prompt", "name: prompt, config: {persona: another}"));
    refuse_at_the_prompt(&mut terminal);
    terminal.wait_for("you> ");
    folder.save(&with(&agent, "prompt", "name: prompt, config: {persona: another}"));
    terminal.wait_for("[nano-cordis] applied cordis.yml");
    let shown = leave(terminal);

    assert_eq!(shown.matches(QUESTION).count(), 2, "{shown}");
}

#[test]
fn what_came_with_a_fault_does_not_come_in_when_the_user_mends_the_fault() {
    let agent = agent_that_runs("cp new.yml cordis.yml; sleep 0.5");
    let new = with(&agent, "approval", "name: approval, config: {tools: []}");
    let (folder, mut terminal) = after_a_turn_that_saves(&agent, &(new.clone() + "- {id: x\n"));
    terminal.wait_for("you> ");

    folder.save(&new);
    refuse_at_the_prompt(&mut terminal);
    leave(terminal);
}

#[test]
fn a_change_of_the_user_after_all_that_is_applied_unasked() {
    let agent = agent_that_runs("cp new.yml cordis.yml; sleep 0.3");
    let new = with(&agent, "approval", "");
    let (folder, mut terminal) = after_a_turn_that_saves(&agent, &new);
    refuse(&mut terminal);
    terminal.wait_for("you> ");
    folder.save(&agent);
    terminal.wait_for("applied cordis.yml (no entry changed)");
    // Whoever answers this has also done all that belongs to the save before.
    terminal.type_keys(CTRL_C);
    terminal.wait_for("Ctrl-C once more");

    folder.save(&with(&agent, "approval", "name: approval, config: {tools: []}"));
    terminal.wait_for("[nano-cordis] applied cordis.yml\r\n");
    let shown = leave(terminal);

    assert_eq!(shown.matches(QUESTION).count(), 1, "{shown}");
}

/// What a command can leave behind that changes the list later.
fn left_behind(deed: &str) -> String {
    agent_that_runs(&format!(
        "(while [ ! -e go ]; do sleep 0.02; done; {deed}) > /dev/null 2>&1 & true"
    ))
}

#[test]
fn what_a_command_left_behind_may_not_change_the_list_later() {
    let deeds = [
        "cp new.yml cordis.yml",
        "rm cordis.yml; sleep 0.2; cp new.yml cordis.yml",
        "cp new.yml n; mv n cordis.yml",
        "ln -sfn new.yml cordis.yml",
        "exec setsid cp new.yml cordis.yml",
        // It stops the program itself, so that nothing is noticed while it acts.
        "kill -STOP $PPID; cp new.yml cordis.yml; sleep 0.2; kill -CONT $PPID",
    ];
    for deed in deeds {
        let (folder, mut terminal) = after_a_turn_that_saves(&left_behind(deed), &unguarded());
        terminal.wait_for("you> ");

        folder.write("go", "");
        refuse_at_the_prompt(&mut terminal);
        leave(terminal);
    }
}

#[test]
fn a_daemon_may_not_do_so_either() {
    let waits = "while [ ! -e go ]; do sleep 0.02; done; cp new.yml cordis.yml";
    let agent =
        agent_that_runs(&format!("echo \"{waits}\" > deed; setsid -f sh deed > /dev/null 2>&1"));
    let (folder, mut terminal) = after_a_turn_that_saves(&agent, &unguarded());
    terminal.wait_for("you> ");

    folder.write("go", "");
    refuse_at_the_prompt(&mut terminal);
    leave(terminal);
}

#[test]
fn a_list_that_was_taken_away_in_a_turn_is_suspect_when_it_comes_back() {
    let (folder, mut terminal) = after_a_turn_that_saves(&agent_that_runs("rm cordis.yml"), "");
    terminal.wait_for("[nano-cordis] cordis.yml not applied: it cannot be read");

    folder.save(&unguarded());
    refuse_at_the_prompt(&mut terminal);
    leave(terminal);
}

#[test]
fn what_a_list_that_could_not_be_applied_says_besides_does_not_come_in_when_it_is_mended() {
    let torn = unguarded() + "- {id: x";
    let faulty = with(&unguarded(), "loop", "name: agent-loop, config: {maxSteps: 0}");
    let shared = "cp new.yml n; chmod 666 n; mv n cordis.yml; sleep 0.3";
    for (deed, new) in [
        ("cp new.yml cordis.yml; sleep 0.3", torn),
        ("cp new.yml cordis.yml; sleep 0.3", faulty),
        (shared, unguarded()),
    ] {
        let (folder, mut terminal) = after_a_turn_that_saves(&agent_that_runs(deed), &new);
        terminal.wait_for("you> ");

        folder.write("mended.yml", &(unguarded() + "# mended\n"));
        let list = folder.path().join("cordis.yml");
        std::fs::rename(folder.path().join("mended.yml"), list).unwrap();
        refuse_at_the_prompt(&mut terminal);
        let shown = leave(terminal);

        assert_eq!(shown.matches("[nano-cordis] cordis.yml not applied: ").count(), 2, "{shown}");
    }
}

#[test]
fn a_link_to_the_list_and_its_target_are_the_list() {
    for deed in [
        "cp new.yml dotfiles/list.yml; sleep 0.3",
        "ln -sfn ../new.yml dotfiles/list.yml; sleep 0.3",
    ] {
        let folder = Folder::new();
        std::fs::create_dir(folder.path().join("dotfiles")).unwrap();
        folder.write("dotfiles/list.yml", &agent_that_runs(deed));
        folder.write("new.yml", &unguarded());
        symlink("dotfiles/list.yml", folder.path().join("cordis.yml")).unwrap();
        let mut terminal = Terminal::start(folder.command(&[]));
        terminal.wait_for("you> ");
        terminal.type_keys("one\r");

        refuse(&mut terminal);
        leave(terminal);
    }
}

#[test]
fn another_save_while_the_question_is_open_is_another_question() {
    let agent = agent_that_runs("cp new.yml cordis.yml; sleep 0.3");
    let new = with(&agent, "approval", "name: approval, config: {tools: [another]}");
    let (folder, mut terminal) = after_a_turn_that_saves(&agent, &new);
    terminal.wait_for(QUESTION);

    folder.save(&with(&agent, "approval", ""));
    terminal.type_keys("y\r");
    terminal.wait_for("`approval` would guard nothing");
    terminal.wait_for(QUESTION);
    terminal.type_keys("n\r");
    terminal.wait_for(KEPT);
    let shown = leave(terminal);

    assert!(!shown.contains("[nano-cordis] applied cordis.yml"), "{shown}");
}

#[test]
fn without_a_loop_and_a_command_line_a_change_of_what_was_left_behind_is_refused() {
    let deed = "cp third.yml cordis.yml";
    let agent = left_behind(deed).replace("& true", "& cp new.yml cordis.yml; sleep 0.3");
    let folder = Folder::with(&agent);
    folder.write("new.yml", &with(&agent, "llm", ""));
    folder.write("third.yml", &with(&agent, "approval", ""));
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    terminal.wait_for("[nano-cordis] applied cordis.yml");
    terminal.wait_for("waits for");

    folder.write("go", "");
    terminal.wait_for(KEPT);
    terminal.wait_for("there is nobody at a terminal to say yes");
    terminal.type_keys(CTRL_D);

    assert_eq!(terminal.ended().1, 2);
}
