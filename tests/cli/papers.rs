//! `--export` and `--replay`: a saved session as people read it, and the proof of what was sent.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Folder, WAIT_FOR_GO, id_of, list, script, scripted};

const CALL: &str = r#"{tool: bash, args: {command: "printf 'a\\n````\\n<b>\\033[2J'"}}"#;

/// A folder with one session of two turns, and its id.
fn saved() -> (Folder, String) {
    let reply =
        "{content: \"Done.\\n```\\n<!-- open\", usage: {prompt_tokens: 7, completion_tokens: 3}}";
    let folder = Folder::with(&scripted(&format!("{CALL}, {reply}")));
    folder.run(&["# What <script>alert(1)</script> is it?"], "y\n");
    let id = id_of(&folder.sessions()[0]);
    folder.run(&["--resume", &id, "again"], "n\n");
    (folder, id)
}

#[test]
fn a_session_is_written_down_in_markdown() {
    let (folder, id) = saved();

    let ended = folder.run(&["--export", &id[..12]], "");

    assert_eq!((ended.code(), ended.err.as_str()), (0, ""));
    let text = ended.out;
    assert!(
        text.starts_with("# \\# What \\<script\\>alert(1)\\</script\\> is it?\n\n| | |\n"),
        "{text}"
    );
    for part in [
        format!("| Session | {id} |\n"),
        "| Model | fake |\n| Turns | 2 |\n".into(),
        "**User**\n\n> # What <script>alert(1)</script> is it?\n\n".into(),
        "**Call of bash**\n\n`````\n{\n  \"command\": ".into(),
        "**Result**\n\n`````\na\n````\n<b>␛[2J\n[exit code: 0]\n`````\n\n".into(),
        "**Assistant**\n\n> Done.\n> ```\n> <!-- open\n\n".into(),
        "*completed; in ?, out ?, ".into(),
        "**Result, an error**\n\n```\nError: the user refused this call".into(),
        "> again\n".into(),
    ] {
        assert!(text.contains(&part), "{part}\n---\n{text}");
    }
}

#[test]
fn a_page_runs_nothing_and_every_text_in_it_is_escaped() {
    let (folder, id) = saved();

    let ended = folder.run(&["--export", &id, "-o", "it.html"], "");

    assert_eq!((ended.code(), ended.out.as_str()), (0, ""));
    assert!(
        ended.err.ends_with(&format!("wrote 2 turns of session {id} to it.html\n")),
        "{}",
        ended.err
    );
    let page = fs::read_to_string(folder.path().join("it.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "{page}");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
    assert!(
        page.contains("default-src 'none'") && !page.contains("<script") && !page.contains("<b>␛"),
        "{page}"
    );
}

#[test]
fn an_export_replaces_no_file_and_takes_the_format_that_is_named() {
    let (folder, id) = saved();
    folder.write("it.md", "mine");

    let refused = folder.run(&["--export", &id, "-o", "it.md"], "");
    let page = folder.run(&["--export", &id, "--format", "html"], "");
    let unknown = folder.run(&["--export", "nothing"], "");

    assert_eq!(refused.code(), 2);
    assert!(
        refused.err.starts_with("nano-cordis: cannot write it.md: File exists"),
        "{}",
        refused.err
    );
    assert_eq!(fs::read_to_string(folder.path().join("it.md")).unwrap(), "mine");
    assert!(page.out.starts_with("<!DOCTYPE html>"));
    assert_eq!(unknown.code(), 2);
    assert!(unknown.err.contains("no session `nothing` in "), "{}", unknown.err);
}

#[test]
fn a_session_that_is_open_or_torn_is_exported_with_a_word_about_it_and_stays_as_it_is() {
    let (folder, id) = saved();
    let log = folder.sessions()[0].clone();
    let whole = fs::read_to_string(&log).unwrap();
    let cut: String = whole.split_inclusive('\n').take(5).collect();
    fs::write(&log, format!("{cut}{{\"seq\":5,")).unwrap();

    let ended = folder.run(&["--export", &id], "");

    assert!(ended.out.contains("*turn 1 has not come to its end*"), "{}", ended.out);
    assert!(
        ended.out.contains("*the log ends with a write that was cut short; it is left out*"),
        "{}",
        ended.out
    );
    assert_eq!(fs::read_to_string(&log).unwrap(), format!("{cut}{{\"seq\":5,"));
}

#[test]
fn a_session_that_runs_is_exported() {
    let folder = Folder::with(&list(&[
        ("llm", &script(&format!("{WAIT_FOR_GO}, {{content: End}}"))),
        ("approval", ""),
    ]));
    let mut running = crate::support::Running::start(folder.command(&["wait"]));
    running.end_of_input();
    running.wait_for_output("[tool] bash");
    let id = id_of(&folder.sessions()[0]);

    let ended = folder.run(&["--export", &id], "");
    folder.write("go", "");

    assert!(ended.out.contains("**Call of bash**"), "{}", ended.out);
    assert_eq!(running.ended().code(), 0);
}

#[test]
fn every_request_of_a_log_is_made_again_and_equals_what_was_sent() {
    let (folder, id) = saved();

    let ended = folder.run(&["--replay", &id], "");

    assert_eq!((ended.out.as_str(), ended.code()), ("4 requests: equal to what was sent\n", 0));
}

#[test]
fn one_byte_of_a_log_that_is_not_what_was_sent_is_found() {
    let (folder, id) = saved();
    let log = folder.sessions()[0].clone();
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replacen("exit code: 0", "exit code: 1", 1)).unwrap();

    let ended = folder.run(&["--replay", &id], "");

    assert_eq!(ended.code(), 1);
    let lines: Vec<_> = ended.out.lines().collect();
    assert!(
        lines[0].starts_with("turn 1, step 2, event ") && lines[0].contains(": differs; sent was "),
        "{lines:?}"
    );
    assert_eq!(lines.last().unwrap(), &"4 requests: 1 equal to what was sent, 3 not");
}

#[test]
fn a_request_without_its_hash_is_unknown_and_a_damaged_log_is_refused() {
    let (folder, id) = saved();
    let log = folder.sessions()[0].clone();
    let text = fs::read_to_string(&log).unwrap();
    let without = text.lines().map(|line| {
        let mut event: Value = serde_json::from_str(line).unwrap();
        event["data"].as_object_mut().unwrap().remove("requestHash");
        format!("{event}\n")
    });
    fs::write(&log, without.collect::<Vec<_>>().concat()).unwrap();
    let unknown = folder.run(&["--replay", &id], "");
    fs::write(&log, text.replacen("{\"seq\":2", "{\"seq\":3", 1)).unwrap();
    let damaged = folder.run(&["--replay", &id], "");

    assert_eq!(unknown.code(), 1);
    assert!(unknown.out.contains(": unknown; the log has no hash of it"), "{}", unknown.out);
    assert_eq!(damaged.code(), 2);
    assert!(damaged.err.contains("line 3: seq is 3 where 2 is next"), "{}", damaged.err);
}

#[test]
fn requests_that_failed_that_plugins_changed_and_that_asked_for_a_summary_are_made_again_too() {
    let words = "word ".repeat(800);
    let lines = format!("{{content: '{words}'}}, {{content: Short.}}, {{error: no}}");
    let model = format!("name: llm-fake, config: {{script: [{lines}], repeat: error}}");
    let more = "- {id: compaction, name: compaction, config: {contextWindow: 1000}}\n\
                - {id: instructions, name: instructions}\n";
    let folder = Folder::with(&format!("{}{more}", list(&[("llm", &model)])));
    folder.write("AGENTS.md", "Be brief.");
    folder.run(&[], "one\ntwo\n");
    let id = id_of(&folder.sessions()[0]);

    let ended = folder.run(&["--replay", &id], "");

    assert_eq!(ended.out, "3 requests: equal to what was sent\n");
}

#[test]
fn numbers_in_the_schema_of_a_tool_are_what_they_were() {
    let folder =
        Folder::with(&format!("{}- {{id: tool, name: ./tool.js}}\n", scripted("{content: Hi}")));
    let schema = json!({ "type": "object", "properties": { "x": { "maximum": 0.1, "minimum": 1.175_494_350_822_287_5e-38,
        "multipleOf": 123_456.789_012_345_67 } } });
    folder.write(
        "tool.js",
        &format!(
            "export const name = 't'\nexport const inject = ['tools']\nexport function apply(ctx) {{\n  \
             ctx.tools.register({{ name: 't', description: '', parameters: {schema}, execute: () => '' }})\n}}\n"
        ),
    );
    folder.run(&["one"], "");
    let id = id_of(&folder.sessions()[0]);

    let ended = folder.run(&["--replay", &id], "");

    assert_eq!(ended.out, "1 request: equal to what was sent\n");
}

#[test]
fn a_step_that_ended_without_a_reply_is_named_and_not_taken_for_equal() {
    let folder = Folder::with(&scripted("{content: Late, delayMs: 60000}"));
    let running = crate::support::Running::start(folder.command(&["one"]));
    crate::support::until("the request is made", || {
        folder.sessions().len() == 1 && folder.log().iter().any(|it| it["type"] == "request/header")
    });
    running.signal(nix::sys::signal::Signal::SIGTERM);
    running.ended();
    let id = id_of(&folder.sessions()[0]);

    let ended = folder.run(&["--replay", &id], "");

    let line =
        "turn 1, step 1: ended without a reply, so whether a request was sent is not known\n";
    assert_eq!(ended.out, format!("{line}no request in this log was answered\n"));
}
