//! Each exercise in a conversation that goes on while files are saved.

use std::fs;

use super::{asking, calls_echo, example, header, says, serve};
use crate::{
    support::{Folder, events, scripted},
    terminal::{CTRL_D, Terminal},
};

/// Writes a file of the folder otherwise.
fn edit(folder: &Folder, file: &str, old: &str, new: &str) {
    let text = fs::read_to_string(folder.path().join(file)).unwrap();
    assert!(text.contains(old), "{file} does not hold {old:?}");
    folder.write(file, &text.replacen(old, new, 1));
}

fn says_and_gets(terminal: &mut Terminal, line: &str, shown: &str) {
    terminal.type_keys(&format!("{line}\r"));
    terminal.wait_for(shown);
    terminal.wait_for("you> ");
}

#[test]
fn exercise_1_live_the_tool_comes_with_its_entry_and_changes_with_its_file() {
    let folder = example("exercise-1-add-a-tool");
    edit(&folder, "cordis.yml", "- id: date\n", "- id: date\n  disabled: true\n");
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    says_and_gets(&mut terminal, "one", "[result] Error: ");

    edit(&folder, "cordis.yml", "  disabled: true\n", "");
    terminal.wait_for("[nano-cordis] applied cordis.yml");
    says_and_gets(&mut terminal, "two", "[result] 20");
    edit(&folder, "tool-date.ts", "Tells the date and the time in UTC.", "Says when it is.");
    terminal.wait_for("[nano-cordis] reloaded ./tool-date.ts");
    says_and_gets(&mut terminal, "three", "[result] 20");
    terminal.type_keys(CTRL_D);
    terminal.ended();

    let log = folder.log();
    assert_eq!(header(&log)["tools"][0]["function"]["description"], "Says when it is.");
}

#[test]
fn exercise_2_live_the_model_is_another_one_after_a_save() {
    let server = serve(vec![says("Hello from afar.")]);
    let folder = example("exercise-2-change-the-model");
    let real = fs::read_to_string(folder.path().join("cordis.yml")).unwrap();
    let (rest, _) = real.split_once("- id: llm\n").unwrap();
    folder.save(&format!("{rest}- id: llm\n  name: llm-fake\n"));
    let mut terminal = Terminal::start(asking(folder.command(&[]), &server));
    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    terminal.wait_for("[y/N] ");
    terminal.type_keys("n\r");
    terminal.wait_for("you> ");

    folder.save(&real);
    terminal.wait_for("[nano-cordis] applied cordis.yml");
    terminal.wait_for("session 2");
    terminal.wait_for("you> ");
    says_and_gets(&mut terminal, "two", "assistant> Hello from afar.");
    terminal.type_keys(CTRL_D);
    terminal.ended();
}

#[test]
fn exercise_3_live_the_policy_comes_with_its_entry() {
    let folder = example("exercise-3-write-a-policy");
    edit(&folder, "cordis.yml", "- id: no-rm-rf\n", "- id: no-rm-rf\n  disabled: true\n");
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    for command in ["rm -rf precious", "ls"] {
        terminal.wait_for(&format!("Allow bash {{\"command\":\"{command}\"}}? [y/N] "));
        terminal.type_keys("n\r");
    }
    terminal.wait_for("you> ");

    edit(&folder, "cordis.yml", "  disabled: true\n", "");
    terminal.wait_for("[nano-cordis] applied cordis.yml");
    terminal.type_keys("two\r");
    terminal.wait_for("`rm -rf` is not allowed here");
    terminal.wait_for("[y/N] ");
    terminal.type_keys("n\r");
    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_D);

    let (shown, _) = terminal.ended();
    assert_eq!(shown.matches("Allow bash {\"command\":\"rm").count(), 1, "{shown}");
}

#[test]
fn exercise_4_live_another_persona_is_in_the_header_of_a_new_session() {
    let folder = example("exercise-4-change-the-persona");
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    says_and_gets(&mut terminal, "one", "assistant> Noted.");

    edit(&folder, "cordis.yml", "You are a librarian.", "You are a pirate.");
    terminal.wait_for("[nano-cordis] applied cordis.yml");
    terminal.wait_for("session 2");
    terminal.wait_for("you> ");
    says_and_gets(&mut terminal, "two", "assistant> Noted.");
    terminal.type_keys(CTRL_D);
    terminal.ended();

    let logs: Vec<_> = folder.sessions().iter().map(|it| events(it)).collect();
    let mut personas: Vec<_> =
        logs.iter().map(|it| header(it)["system"].as_str().unwrap()).collect();
    personas.sort_unstable();
    assert_eq!(personas, ["You are a librarian.", "You are a pirate."]);
}

#[test]
fn exercise_5_live_one_line_changes_the_shell() {
    let folder = example("exercise-5-read-only-shell");
    edit(&folder, "cordis.yml", "name: ./shell-readonly.ts", "name: shell-local");
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys("one\r");
    for _ in 0..2 {
        terminal.wait_for("[y/N] ");
        terminal.type_keys("y\r");
    }
    terminal.wait_for("you> ");
    assert!(folder.has("precious"));
    fs::remove_file(folder.path().join("precious")).unwrap();

    edit(&folder, "cordis.yml", "name: shell-local", "name: ./shell-readonly.ts");
    terminal.wait_for("[nano-cordis] applied cordis.yml");
    terminal.type_keys("two\r");
    for _ in 0..2 {
        terminal.wait_for("[y/N] ");
        terminal.type_keys("y\r");
    }
    assert!(terminal.all().matches("[result] looking").count() > 1, "{}", terminal.all());
    terminal.wait_for("`touch` is none of ls, cat, echo");
    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_D);
    terminal.ended();

    assert!(!folder.has("precious"));
}

#[test]
fn the_mini_harness_live_says_what_its_file_says() {
    let answers = [calls_echo("one"), says("First."), calls_echo("two"), says("Second.")];
    let server = serve(answers.into());
    let folder = example("mini-harness");
    let mut terminal = Terminal::start(asking(folder.command(&[]), &server));
    terminal.wait_for("you> ");
    says_and_gets(&mut terminal, "go", "[result] echo: one");

    edit(&folder, "echo.ts", "`echo: ", "`again: ");
    terminal.wait_for("[nano-cordis] reloaded ./echo.ts");
    says_and_gets(&mut terminal, "go", "[result] again: two");
    terminal.type_keys(CTRL_D);
    terminal.ended();
}

/// The fenced block of a language in the README that begins so.
fn of_readme(language: &str, begin: &str) -> String {
    let text = fs::read_to_string(super::examples().join("../README.md")).unwrap();
    let fence = format!("```{language}\n");
    let blocks = text.split(&fence).skip(1);
    let mut blocks = blocks.map(|it| it.split("```").next().unwrap());
    blocks.find(|it| it.starts_with(begin)).unwrap().to_owned()
}

#[test]
fn the_plugin_of_the_readme_is_written_changed_broken_and_mended_while_a_conversation_goes_on() {
    let folder = Folder::with(&scripted("{tool: date, args: {}}, {content: Done}"));
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    says_and_gets(&mut terminal, "one", "[result] Error: ");

    folder.write("tool-date.ts", &of_readme("ts", "// A tool"));
    let list = fs::read_to_string(folder.path().join("cordis.yml")).unwrap();
    folder.save(&format!("{list}{}", of_readme("yaml", "- id: date")));
    terminal.wait_for("[nano-cordis] applied cordis.yml");
    says_and_gets(&mut terminal, "two", "[result] 20");
    edit(&folder, "tool-date.ts", "Tells the date", "Knows the date");
    terminal.wait_for("[nano-cordis] reloaded ./tool-date.ts");
    says_and_gets(&mut terminal, "three", "[result] 20");
    edit(&folder, "tool-date.ts", "export function apply(", "export function apply((");
    terminal.wait_for("tool-date.ts:");
    says_and_gets(&mut terminal, "four", "[result] 20");
    edit(&folder, "tool-date.ts", "apply((", "apply(");
    edit(&folder, "tool-date.ts", "Knows the date", "Has the date");
    terminal.wait_for("[nano-cordis] reloaded ./tool-date.ts");
    says_and_gets(&mut terminal, "five", "[result] 20");
    terminal.type_keys(CTRL_D);
    terminal.ended();

    let log = folder.log();
    let headers = log.iter().filter(|it| it["type"] == "request/header");
    let told = headers.filter_map(|it| {
        let tools = it["data"]["header"]["tools"].as_array()?;
        let date = tools.iter().find(|it| it["function"]["name"] == "date")?;
        Some(date["function"]["description"].as_str()?.split(' ').next()?.to_owned())
    });
    assert_eq!(told.collect::<Vec<_>>(), ["Tells", "Knows", "Has"]);
}
