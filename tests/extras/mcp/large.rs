//! Long lines of many small things, which take much more room as values than as text.

use std::fs;

use serde_json::json;

use super::{
    ending::is_alone,
    rig::{Rig, rig},
};

/// As long as a line may be, nearly.
const LINE: usize = 15_000_000;
/// What reading such a line may take, in lengths of it: the line while it comes, what it says, and the text of that.
const TIMES: usize = 8;

/// A list of many of these, as long as a line.
fn many(thing: &str) -> String {
    let list = format!("{thing},").repeat(LINE / (thing.len() + 1));
    format!("[{}]", list.trim_end_matches(','))
}

/// A number of bytes that the system says of this process.
fn memory(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1_024
}

/// Runs a test whose peak of memory is small beside the values that its lines would be.
fn within_bounds(test: impl AsyncFnOnce(&Rig) + 'static) {
    rig(async move |it| {
        let before = memory("VmRSS");

        test(&it).await;

        let taken = memory("VmHWM").saturating_sub(before);
        assert!(taken < TIMES * LINE, "{} MB", taken / 1_000_000);
    });
}

#[test]
fn a_result_of_many_small_things_takes_little_more_than_its_line() {
    if !is_alone("mcp::large::a_result_of_many_small_things_takes_little_more_than_its_line") {
        return;
    }
    let more = format!("[{} more parts, not shown]", LINE / 3 - 10_000);
    for (member, thing, end) in [
        ("content", "{}", more),
        ("structuredContent", "0", ",0,0]".into()),
        ("nonsense", "{}", "(no output)".into()),
    ] {
        within_bounds(async move |it| {
            it.serve("plain", json!({})).await;
            it.write("answer", &format!(r#"{{"{member}":{}}}"#, many(thing)));

            let result = it.call("answer").await;

            assert!(!result.is_error && result.content.ends_with(&end), "{member}: {result:?}");
        });
    }
}

#[test]
fn a_list_of_many_small_things_takes_little_more_than_its_line() {
    if !is_alone("mcp::large::a_list_of_many_small_things_takes_little_more_than_its_line") {
        return;
    }
    within_bounds(async |it| {
        it.write("tools", many("{}").trim_matches(['[', ']']));

        it.serve("plain", json!({})).await;

        let expected = [
            "a tool without a name is left out",
            "it has more than 256 tools; the rest is left out",
        ];
        assert_eq!(it.take_said(), expected.map(|it| format!("! mcp `x`: {it}")));
    });
    within_bounds(async |it| {
        let zeros = &many("0")[..62_001];
        let tool =
            |at| format!(r#"{{"name":"t{at}","inputSchema":{{"type":"object","x":{zeros}0]}}}}"#);
        it.write("tools", &(0..240).map(tool).collect::<Vec<_>>().join("\n"));

        it.serve("plain", json!({})).await;

        let said = it.take_said();
        let why = "the tool `t16` is left out: all schemas of a server may be 1000000 bytes long";
        assert_eq!((it.tools.names().len(), said.len()), (16, 21));
        assert_eq!(said[0], format!("! mcp `x`: {why}"));
    });
}

#[test]
fn a_tool_with_a_name_of_any_length_is_left_out() {
    rig(async |it| {
        it.write("tools", &json!({ "name": "n".repeat(1_001), "inputSchema": {} }).to_string());

        it.serve("plain", json!({})).await;

        let name = "n".repeat(64);
        let why = format!("! mcp `x`: the tool `{name}…` is left out: its name is 1001 bytes long");
        assert_eq!(it.take_said(), [why]);
    });
}
