//! Lists of tools: pages, names, schemas and descriptions of strangers, and changes while the agent runs.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::rig::{Rig, rig};

/// Has the server offer these tools.
fn offer(it: &Rig, file: &str, tools: &[Value]) {
    let lines: Vec<_> = tools.iter().map(ToString::to_string).collect();
    it.write(file, &lines.join("\n"));
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "description": "d", "inputSchema": { "type": "object", "properties": {} } })
}

#[test]
fn all_pages_of_a_list_are_read() {
    rig(async |it| {
        it.serve("pages", json!({})).await;

        assert_eq!(it.tools.names(), ["mcp__x__first", "mcp__x__second", "mcp__x__third"]);
    });
}

#[test]
fn a_list_without_end_is_cut_and_said() {
    rig(async |it| {
        it.serve("endless", json!({})).await;

        assert_eq!(it.tools.names().len(), 256);
        assert_eq!(it.take_said(), ["! mcp `x`: it has more than 256 tools; the rest is left out"]);
    });
}

#[test]
fn an_answer_that_is_no_list_is_one_without_tools() {
    rig(async |it| {
        it.serve("odd", json!({})).await;

        assert_eq!(
            (it.tools.names().len(), it.take_said()),
            (0, vec!["! mcp `x`: it offers no tools".into()])
        );
    });
}

#[test]
fn names_that_do_not_fit_are_changed_the_same_way_each_time() {
    rig(async |it| {
        let long = "a".repeat(70);
        let (one, two) = (format!("{long}1"), format!("{long}2"));
        offer(&it, "tools", &["files/read", "ok_-9", "读", &one, &two].map(tool));
        it.serve("plain", json!({})).await;
        let names = it.tools.names();

        assert_eq!(names.len(), 5);
        assert!(names.iter().all(|it| it.len() <= 64), "{names:?}");
        let cut: Vec<_> = names.iter().filter(|it| it.contains("aaa")).collect();
        assert!(cut[0].starts_with(&format!("mcp__x__{}_", &long[..47])) && cut[0].len() == 64);
        for name in ["mcp__x__files_read", "mcp__x__ok_-9", "mcp__x___"] {
            assert!(names.iter().any(|it| it == name), "{names:?}");
        }
    });
}

#[test]
fn of_two_tools_that_become_one_the_second_is_left_out_and_both_are_named() {
    rig(async |it| {
        offer(&it, "tools", &["a.b", "a/b", "a.b"].map(tool));
        it.serve("plain", json!({})).await;

        assert_eq!(it.tools.names(), ["mcp__x__a_b"]);
        assert_eq!(
            it.take_said(),
            [
                "! mcp `x`: the tools `a.b` and `a/b` would both be mcp__x__a_b; the second is left out",
                "! mcp `x`: the tools `a.b` and `a.b` would both be mcp__x__a_b; the second is left out",
            ]
        );
    });
}

#[test]
fn tools_of_two_entries_with_one_name_do_not_replace_each_other() {
    rig(async |it| {
        it.serve("plain", json!({ "server": "same" })).await;
        it.serve("plain", json!({ "server": "same" })).await;

        assert_eq!(
            it.take_said(),
            [
                "! mcp `same`: the tool `mcp__same__do` is left out: there is a tool named `mcp__same__do` already"
            ]
        );
    });
}

#[test]
fn a_tool_whose_schema_is_none_is_left_out_and_the_others_are_not() {
    rig(async |it| {
        let with = |name: &str, schema: Value| json!({ "name": name, "inputSchema": schema });
        offer(
            &it,
            "tools",
            &[
                with("text", json!("x")),
                json!({ "name": "none" }),
                with("list", json!({ "type": "array" })),
                with(
                    "wrong",
                    json!({ "type": "object", "properties": { "a": { "type": "strin" } } }),
                ),
                with("big", json!({ "type": "object", "description": "x".repeat(70_000) })),
                json!({ "inputSchema": { "type": "object" } }),
                json!(7),
                with("good", json!({})),
            ],
        );
        it.serve("plain", json!({})).await;
        let said = it.take_said();

        assert_eq!(it.tools.names(), ["mcp__x__good"]);
        let schema =
            serde_json::to_value(it.tools.schemas()).unwrap()[0]["function"]["parameters"].take();
        assert_eq!(schema, json!({ "type": "object", "properties": {} }));
        let expected = [
            "! mcp `x`: the tool `text` is left out: its schema is no JSON Schema object",
            "! mcp `x`: the tool `none` is left out: its schema is no JSON Schema object",
            "! mcp `x`: the tool `list` is left out: its schema is of type \"array\"",
            "! mcp `x`: the tool `wrong` is left out: its schema is no JSON Schema: ",
            "! mcp `x`: the tool `big` is left out: its schema is 70",
            "! mcp `x`: a tool without a name is left out",
            "! mcp `x`: a tool without a name is left out",
        ];
        // What is said twice is said once.
        assert_eq!(said.len(), expected.len() - 1, "{said:?}");
        for (said, expected) in said.iter().zip(expected) {
            assert!(said.starts_with(expected), "{said}");
        }
    });
}

#[test]
fn more_complaints_than_anybody_reads_are_told_as_one() {
    rig(async |it| {
        let bad: Vec<_> = (0..99).map(|at| json!({ "name": format!("bad{at}") })).collect();
        offer(&it, "tools", &bad);
        it.serve("plain", json!({})).await;

        let said = it.take_said();

        assert_eq!(said.len(), 21);
        assert_eq!(said[20], "! mcp `x`: there is more that does not fit");
    });
}

#[test]
fn hostile_descriptions_are_cleaned_and_cut_wherever_they_stand() {
    rig(async |it| {
        let schema = json!({ "type": "object", "properties": { "a\u{1b}": { "description": "b\u{202e}\u{7}" } } });
        let long = format!("\u{1b}[2J{}", "x".repeat(9_000_000));
        offer(&it, "tools", &[json!({ "name": "t", "description": long, "inputSchema": schema })]);
        it.serve("plain", json!({})).await;
        let text = serde_json::to_string(&it.tools.schemas()).unwrap();

        assert!(text.len() < 9_000 && text.contains("␛[2Jxxx") && text.contains("… (cut)"));
        assert!(text.contains(r#""a␛":{"description":"b<U+202E>␇"}"#), "{text}");
    });
}

#[test]
fn d_64_a_changed_list_takes_effect_at_the_next_turn() {
    rig(async |it| {
        offer(&it, "tools", &[tool("do"), tool("old")]);
        offer(&it, "next", &[tool("do"), tool("new")]);
        it.serve("plain", json!({})).await;

        it.call("change").await;
        it.listed(2).await;
        let within = it.tools.names();
        it.turn();
        let after = it.tools.names();

        assert_eq!(within, ["mcp__x__do", "mcp__x__old"]);
        assert_eq!(after, ["mcp__x__do", "mcp__x__new"]);
    });
}

#[test]
fn a_server_that_says_all_the_time_that_its_list_has_changed_is_asked_less_and_less_often() {
    rig(async |it| {
        let begun = Instant::now();
        it.serve("restless", json!({})).await;

        it.listed(7).await;

        // The sum of the pauses before: each is twice the one before it.
        assert!(begun.elapsed() >= Duration::from_millis(50 + 100 + 200 + 400 + 800));
    });
}

#[test]
fn d_64_a_changed_description_is_seen_at_the_next_turn_too() {
    rig(async |it| {
        let changed =
            json!({ "name": "do", "description": "other", "inputSchema": { "type": "object" } });
        offer(&it, "next", &[changed]);
        it.serve("plain", json!({})).await;

        it.call("change").await;
        it.listed(2).await;
        it.turn();

        let text = serde_json::to_string(&it.tools.schemas()).unwrap();
        assert!(text.contains("other"), "{text}");
    });
}
