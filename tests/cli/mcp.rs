//! Servers in the whole program: `--check`, a turn that calls a tool, entries that fail, a save, a kill.

use std::fs;

use crate::support::{Folder, Running, list, script, texts, until};

/// The entry of a server in this mode.
fn server(mode: &str, rest: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/extras/mcp/server.sh");
    format!(
        "- {{id: files, name: mcp, config: {{command: bash, args: ['{path}', ., {mode}]}}{rest}}}\n"
    )
}

/// The ids of the servers that were started in this folder.
fn servers(folder: &Folder) -> Vec<String> {
    let pids = fs::read_to_string(folder.path().join("pids")).unwrap_or_default();
    pids.lines().map(str::to_owned).collect()
}

fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z"))
}

#[test]
fn d_57_a_check_starts_and_ends_the_server() {
    let folder = Folder::with(&(list(&[]) + &server("plain", "")));

    let ended = folder.run(&["--check"], "");

    assert!(ended.out.contains("files        mcp          active\n"), "{ended:?}");
    assert_eq!((ended.code(), servers(&folder).len()), (0, 1), "{ended:?}");
    assert!(!runs(&servers(&folder)[0]));
}

#[test]
fn d_64_a_server_that_does_not_start_ends_a_one_shot_with_its_words() {
    let folder = Folder::with(&(list(&[]) + &server("exit", "")));

    let ended = folder.run(&["hi"], "");

    assert_eq!((ended.code(), ended.out.as_str()), (2, ""), "{ended:?}");
    assert!(
        ended.err.contains("it ended with exit code 4; stderr: no licence␛[2J found"),
        "{ended:?}"
    );
}

#[test]
fn d_64_an_optional_server_that_does_not_start_is_told_and_done_without() {
    let model = script("{content: Hello}");
    let folder = Folder::with(&(list(&[("llm", &model)]) + &server("exit", ", optional: true")));

    let ended = folder.run(&["hi"], "");

    assert_eq!((ended.code(), ended.out.as_str()), (0, "assistant> Hello\n"), "{ended:?}");
    assert!(ended.err.contains("it ended with exit code 4"), "{ended:?}");
}

#[test]
fn a_tool_of_a_server_is_asked_about_and_answers() {
    let model = script("{tool: mcp__files__do, args: {what: echo, text: there}}, {content: Done}");
    let approval = "name: approval, config: {tools: ['mcp__*']}";
    let folder =
        Folder::with(&(list(&[("llm", &model), ("approval", approval)]) + &server("plain", "")));

    let ended = folder.run(&["hi"], "y\n");

    let call = r#"mcp__files__do {"what":"echo","text":"there"}"#;
    let shown = format!("[tool] {call}\nAllow {call}? [y/N] \n[result] there\n\nassistant> Done\n");
    assert_eq!((ended.code(), ended.out), (0, shown), "{}", ended.err);
    assert_eq!(texts(&folder.log(), "tool/result"), ["there"]);
    assert!(!runs(&servers(&folder)[0]));
}

#[test]
fn a_long_result_is_kept_beside_the_log() {
    let model = script("{tool: mcp__files__do, args: {what: answer}}, {content: Done}");
    let folder = Folder::with(&(list(&[("llm", &model)]) + &server("plain", "")));
    let text = "x".repeat(50_000);
    folder.write("answer", &format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#));

    folder.run(&["hi"], "");

    let log = folder.log();
    let result = texts(&log, "tool/result")[0];
    let path = result.split_once("first 64 MiB in ").unwrap().1.split_once(" …").unwrap().0;
    assert_eq!(fs::read_to_string(folder.path().join(path)).unwrap(), text);
}

#[test]
fn a_save_that_changes_the_entry_starts_the_server_anew() {
    let folder = Folder::with(&(list(&[]) + &server("plain", "")));
    let mut running = Running::start(folder.command(&[]));
    until("the server", || servers(&folder).len() == 1);
    running.wait_for_error("session ");

    folder.save(&(list(&[]) + &server("banner", "")));
    running.wait_for_error("applied cordis.yml");
    until("the new server", || servers(&folder).len() == 2);
    let (old, new) = (runs(&servers(&folder)[0]), runs(&servers(&folder)[1]));
    running.end_of_input();

    assert_eq!((old, new), (false, true));
    assert_eq!(running.ended().code(), 0);
    assert!(!runs(&servers(&folder)[1]));
}

#[test]
fn a_server_sees_the_end_of_a_program_that_was_killed() {
    let folder = Folder::with(&(list(&[]) + &server("plain", "")));
    let running = Running::start(folder.command(&[]));
    running.wait_for_error("session ");

    running.kill();

    until("the end of the server", || !runs(&servers(&folder)[0]));
}

#[test]
fn servers_that_do_not_want_to_end_are_gone_when_the_program_is() {
    let model = script("{content: Hello}");
    let named = |it| server("stubborn", "").replace("id: files", &format!("id: s{it}"));
    let servers_of_all: String = (1..=4).map(named).collect();
    let folder = Folder::with(&(list(&[("llm", &model)]) + &servers_of_all));

    let ended = folder.run(&["hi"], "");

    let left: Vec<_> = servers(&folder).into_iter().filter(|it| runs(it)).collect();
    assert_eq!((ended.code(), servers(&folder).len(), left), (0, 4, vec![]), "{ended:?}");
    assert!(!ended.err.contains("did not stop"), "{ended:?}");
}

#[test]
fn the_example_is_an_agent_whose_server_answers() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/mcp/cordis.yml");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/extras/mcp/server.sh");
    let text = fs::read_to_string(example).unwrap().replace("command: npx", "command: bash");
    let theirs = r#"[-y, "@modelcontextprotocol/server-everything"]"#;
    assert!(text.contains(theirs));
    let folder = Folder::with(&text.replace(theirs, &format!("['{script}', .]")));
    folder.write("tools", r#"{"name":"echo","inputSchema":{"type":"object"}}"#);

    let ended = folder.run(&["hi"], "y\n");

    assert!(ended.out.ends_with("\nassistant> The server has answered.\n"), "{ended:?}");
    assert_eq!(ended.code(), 0, "{ended:?}");
}
