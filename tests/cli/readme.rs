//! The commands and configurations that the README shows, run as they stand there.

use std::fs;
use std::path::Path;

use crate::support::{Folder, list, script};
use crate::terminal::Terminal;

/// The fenced blocks of a language in the README.
fn blocks(language: &str) -> Vec<String> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = fs::read_to_string(readme).unwrap();
    let fence = format!("```{language}\n");
    let parts = text.split(fence.as_str()).skip(1);
    parts.map(|part| part.split("```").next().unwrap().to_owned()).collect()
}

/// The commands in the first column of the table of uses.
fn uses() -> Vec<String> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = fs::read_to_string(readme).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `nano-cordis"));
    rows.map(|row| format!("nano-cordis{}", row.split('`').next().unwrap())).collect()
}

#[test]
fn a_run_in_a_terminal_shows_what_the_readme_shows() {
    for block in blocks("console") {
        let (command, shown) = block.strip_prefix("$ ").unwrap().split_once('\n').unwrap();
        let folder = Folder::new();
        let line = command.replace("cargo run --release --", "nano-cordis");
        let mut terminal = Terminal::start(folder.shell_command(&line));

        terminal.wait_for("[y/N] ");
        terminal.type_keys("y\r");

        assert_eq!(terminal.ended(), (shown.to_owned(), 0), "{command}");
    }
}

#[test]
fn each_use_in_the_table_is_one_the_program_knows() {
    let uses = uses();
    assert!(uses.len() >= 4, "{uses:?}");

    for line in uses {
        let folder = Folder::new();
        let known = folder.shell_command(&format!("{line} </dev/null")).output().unwrap();
        let complaint = String::from_utf8_lossy(&known.stderr);

        assert!(!complaint.contains("unexpected argument"), "{line}: {complaint}");
        assert!(!complaint.contains("unrecognized"), "{line}: {complaint}");
    }
}

#[test]
fn a_pipe_answers_the_question_as_the_readme_says() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let line = r#"printf 'y\n' | nano-cordis "Say hello""#;
    let shown = fs::read_to_string(readme).unwrap().replace(r"\|", "|");
    assert!(shown.contains(line));

    let ended = Folder::new().shell_command(line).output().unwrap();

    assert!(String::from_utf8_lossy(&ended.stdout).contains("[result] hello from nano\n"));
    assert_eq!(ended.status.code(), Some(0));
}

#[test]
fn the_real_model_of_the_readme_is_a_configuration_that_fits() {
    for block in blocks("yaml").iter().filter(|it| it.starts_with("- id: llm\n")) {
        let inside = block.trim_start_matches("- id: llm\n").lines().map(str::trim);
        let entry = inside.collect::<Vec<_>>().join(", ");
        let folder = Folder::with(&list(&[("llm", &entry)]));

        let ended = folder.run(&["hi"], "");

        // The key is missing here, which is found out when the model is asked: the turn fails, the configuration fits.
        assert_eq!(ended.code(), 1, "{}", ended.err);
        assert!(ended.err.contains("DEEPSEEK_API_KEY"), "{}", ended.err);
    }
}

#[test]
fn the_server_of_the_readme_is_a_configuration_that_fits() {
    let block = blocks("yaml").into_iter().find(|it| it.contains("name: mcp")).unwrap();
    // Whether there is an `npx` here is not the question.
    let folder = Folder::with(&(list(&[]) + &block.replace("npx", "no-such-program")));

    let ended = folder.run(&["--check"], "");

    assert!(ended.out.contains("files        mcp          failed: "), "{ended:?}");
    assert!(ended.out.contains("`no-such-program -y @modelcontextprotocol/"), "{ended:?}");
}

#[test]
fn a_change_of_a_file_asks_as_the_readme_shows() {
    let entries = blocks("yaml").into_iter().find(|it| it.contains("name: tool-files")).unwrap();
    let shown = blocks("text").into_iter().find(|it| it.starts_with("Allow edit")).unwrap();
    let call = shown.lines().next().unwrap().trim_start_matches("Allow edit ");
    let calls = format!(
        "{{tool: read, args: {{file_path: notes.md}}}}, {{tool: edit, args: '{call}'}}, {{content: done}}"
    );
    let list = list(&[("approval", ""), ("llm", &script(&calls))]);
    let folder = Folder::with(&(list + &entries));
    folder.write("notes.md", "one\n");
    let mut terminal = Terminal::start(folder.command(&["hi"]));

    terminal.wait_for("Allow this? [y/N] ");
    let asked = terminal.all().replace("\r\n", "\n");
    terminal.type_keys("y\r");
    let (_, status) = terminal.ended();

    assert!(asked.ends_with(&format!("{} ", shown.trim_end())), "{asked}");
    assert_eq!(status, 0);
    assert_eq!(fs::read_to_string(folder.path().join("notes.md")).unwrap(), "two\n");
}

#[test]
fn the_fields_of_a_result_are_those_that_both_readmes_explain() {
    let ended = Folder::with(&list(&[])).run(&["--json", "hi"], "n\n");
    let result: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let fields: Vec<_> = result.as_object().unwrap().keys().cloned().collect();

    for readme in ["README.md", "README.zh.md"] {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(readme)).unwrap();
        let table = text.split("--output-format json`").nth(1).unwrap();
        let rows = table.lines().skip_while(|it| !it.starts_with("|---")).skip(1);
        let explained: Vec<_> = rows
            .map_while(|it| it.strip_prefix("| `")?.split('`').next().map(str::to_owned))
            .collect();

        assert_eq!(explained, fields, "{readme}");
    }
}
