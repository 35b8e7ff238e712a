//! The list is edited while the program runs in a terminal.

use crate::support::{Folder, events, list, reason, said, script, scripted};
use crate::terminal::{CTRL_D, Terminal};

const HELLO: &str = "{content: Hello}";

#[test]
fn h_163_when_the_model_changes_the_command_line_greets_with_a_new_session() {
    let folder = Folder::with(&scripted(HELLO));
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    terminal.wait_for("assistant> Hello");
    terminal.wait_for("you> ");

    folder.save(&scripted("{content: Changed}"));
    terminal.wait_for("[nano-cordis] applied cordis.yml");
    terminal.wait_for("session 2");
    terminal.wait_for("the one before it was 2");
    terminal.type_keys("two\r");
    terminal.wait_for("assistant> Changed");
    terminal.type_keys(CTRL_D);
    terminal.ended();

    let [first, second] = &folder.sessions()[..] else { panic!("{:?}", folder.sessions()) };
    let (first, second) = (events(first), events(second));
    let mut all = [said(&first), said(&second)];
    all.sort();
    assert_eq!(all, [["one"], ["two"]]);
}

#[test]
fn h_163_a_half_typed_line_survives() {
    let folder = Folder::with(&scripted(HELLO));
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys("half a ");
    terminal.wait_for("half a ");

    folder.save(&scripted("{content: Changed}"));
    terminal.wait_for("[nano-cordis] applied cordis.yml\r\n");
    terminal.wait_for("session 2");
    terminal.wait_for("you> half a ");
    terminal.type_keys("line\r");
    terminal.wait_for("assistant> Changed");
    terminal.type_keys(CTRL_D);
    terminal.ended();

    assert_eq!(said(&folder.log()), ["half a line"]);
}

#[test]
fn what_verbose_says_goes_above_a_half_typed_line_and_below_a_half_written_one() {
    for term in ["xterm", "dumb"] {
        let folder = Folder::with(&scripted("{pieces: [Hel, lo]}"));
        let mut command = folder.command(&["-v"]);
        command.env("TERM", term);
        let mut terminal = Terminal::start_as_it_is(&command);
        terminal.wait_for("you> ");
        terminal.type_keys("one\r");
        terminal.wait_for("you> ");
        terminal.type_keys("half a ");
        terminal.wait_for("half a ");

        folder.save(&list(&[("approval", "")]));
        terminal.wait_for("DEBUG nano_cordis::run::start: applied");
        terminal.wait_for("you> ");
        terminal.type_keys("line\r");
        terminal.wait_for("[result] hello from nano");
        terminal.wait_for("you> ");
        terminal.type_keys(CTRL_D);
        let (shown, _) = terminal.ended();

        let is_alone = |(at, _): (usize, &str)| {
            matches!(
                shown[..at].trim_end_matches("\u{1b}[K").chars().last(),
                None | Some('\n' | '\r')
            )
        };
        assert!(shown.match_indices("DEBUG").all(is_alone), "{shown:?}");
        let logs: Vec<_> = folder.sessions().iter().map(|it| events(it)).collect();
        assert!(logs.iter().any(|it| said(it).ends_with(&["half a line"])), "{shown}");
    }
}

#[test]
fn h_164_without_guarded_tools_the_next_call_is_not_asked() {
    let folder = Folder::with(&list(&[]));
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    terminal.wait_for("[y/N] ");
    terminal.type_keys("n\r");
    terminal.wait_for("you> ");

    folder.save(&list(&[("approval", "name: approval, config: {tools: []}")]));
    terminal.wait_for("[nano-cordis] applied cordis.yml");
    terminal.type_keys("two\r");
    terminal.wait_for("[result] hello from nano");
    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_D);

    assert_eq!(
        (terminal.ended().0.matches("Allow bash").count(), said(&folder.log())),
        (1, vec!["one", "two"])
    );
}

#[test]
fn h_165_a_broken_list_changes_nothing_the_session_goes_on_and_taking_it_back_is_confirmed() {
    let folder = Folder::with(&scripted(HELLO));
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");

    folder.save("- id: [\n");
    terminal.wait_for("cordis.yml not applied: ");
    terminal.type_keys("one\r");
    terminal.wait_for("assistant> Hello");
    terminal.wait_for("you> ");
    folder.save(&scripted(HELLO));
    terminal.wait_for("[nano-cordis] applied cordis.yml (no entry changed)");
    terminal.type_keys(CTRL_D);

    assert_eq!((terminal.ended().1, said(&folder.log())), (0, vec!["one"]));
}

#[test]
fn h_166_a_change_waits_for_the_turn_that_runs() {
    let calls = script(
        "{tool: bash, args: {command: 'touch started; while [ ! -e go ]; do sleep 0.05; done'}}, {content: Old}",
    );
    let folder = Folder::with(&list(&[("llm", &calls), ("approval", "")]));
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    terminal.wait_for("[tool] bash");

    folder.save(&list(&[("llm", &script("{content: New}")), ("approval", "")]));
    terminal.wait_for("cordis.yml changed; applied when this turn ends");
    folder.write("go", "");
    terminal.wait_for("assistant> Old");
    terminal.wait_for("[nano-cordis] applied cordis.yml");
    terminal.wait_for("session 2");
    terminal.type_keys("two\r");
    terminal.wait_for("assistant> New");
    terminal.type_keys(CTRL_D);
    terminal.ended();

    assert_eq!(reason(&events(&folder.sessions()[0])), "completed");
}

#[test]
fn h_171_a_conversation_waits_for_the_model_and_begins_when_it_comes() {
    let folder = Folder::with(&list(&[("llm", "")]));
    let mut terminal = Terminal::start(folder.command(&[]));

    terminal.wait_for("llm");
    folder.save(&scripted(HELLO));
    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    terminal.wait_for("assistant> Hello");
    terminal.type_keys(CTRL_D);

    assert_eq!((terminal.ended().1, said(&folder.log())), (0, vec!["one"]));
}

#[test]
fn h_171_while_nothing_leads_ctrl_d_ends_with_2_and_ctrl_c_with_130() {
    for (key, expected) in [(CTRL_D, 2), (crate::terminal::CTRL_C, 130)] {
        let folder = Folder::with(&list(&[("llm", "")]));
        let mut terminal = Terminal::start(folder.command(&[]));

        terminal.wait_for("llm");
        terminal.type_keys(key);

        assert_eq!(terminal.ended().1, expected);
    }
}

#[test]
fn h_174_with_a_failed_entry_turns_are_refused_until_a_good_save() {
    let folder = Folder::with(&format!("{}- {{id: second, name: llm-fake}}\n", scripted(HELLO)));
    let mut terminal = Terminal::start(folder.command(&[]));

    terminal.wait_for("second");
    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    terminal.wait_for("second");
    terminal.wait_for("you> ");
    folder.save(&scripted(HELLO));
    terminal.wait_for("[nano-cordis] applied cordis.yml");
    terminal.type_keys("two\r");
    terminal.wait_for("assistant> Hello");
    terminal.type_keys(CTRL_D);

    assert_eq!((terminal.ended().1, said(&folder.log())), (0, vec!["two"]));
}

#[test]
fn a_save_that_leaves_no_command_line_is_mended_by_the_next() {
    let folder = Folder::with(&scripted(HELLO));
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");

    folder.save(&list(&[("llm", &script(HELLO)), ("cli", "")]));
    terminal.wait_for("no entry leads a conversation");
    folder.save(&scripted(HELLO));
    terminal.wait_for("session 2");
    terminal.type_keys("one\r");
    terminal.wait_for("assistant> Hello");
    terminal.type_keys(CTRL_D);

    assert_eq!((terminal.ended().1, said(&folder.log())), (0, vec!["one"]));
}

#[test]
fn a_one_shot_applies_no_change() {
    let calls =
        script("{tool: bash, args: {command: 'cp new.yml cordis.yml; sleep 0.3'}}, {content: Old}");
    let folder = Folder::with(&list(&[("llm", &calls), ("approval", "")]));
    folder.write("new.yml", &scripted(HELLO));

    let ended = folder.run(&["hi"], "");

    assert!(ended.out.ends_with("assistant> Old\n"), "{}", ended.out);
    assert_eq!((ended.err.as_str(), ended.code()), ("", 0));
}

#[test]
fn a_line_typed_while_nothing_leads_is_a_turn_whose_question_can_be_answered() {
    let folder = Folder::with(&list(&[]));
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    folder.save(&list(&[("cli", "")]));
    terminal.wait_for("no entry leads a conversation");
    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    // The editor has been left, so the line is there.
    terminal.wait_for("\x1b[?2004l");

    folder.save(&list(&[]));
    terminal.wait_for("[y/N] ");
    terminal.type_keys("y\r");
    terminal.wait_for("[result] hello from nano");
    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_D);

    assert_eq!((terminal.ended().1, said(&folder.log())), (0, vec!["one"]));
}

#[test]
fn a_save_that_is_not_in_force_is_told_to_those_who_want_it_quiet_too() {
    let folder = Folder::with(&scripted(HELLO));
    let mut terminal = Terminal::start(folder.command(&["-q"]));
    terminal.wait_for("you> ");

    folder.save("- {id: llm, name: llm-fake, confg: {}}\n");

    terminal.wait_for("cordis.yml not applied: ");
    terminal.type_keys(CTRL_D);
    terminal.ended();
}
