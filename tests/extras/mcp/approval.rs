//! Tools of servers and approval: what runs unasked is told once.

use nano_cordis::{cordis::plugin, harness::approval};
use serde_json::json;

use super::rig::{Rig, rig};

const TOLD: &str = "! mcp__x: 4 tools run without asking";

async fn approve(it: &Rig, tools: serde_json::Value) {
    let mount = it.ctx.plugin(&plugin(approval::apply), json!({ "tools": tools })).unwrap();
    mount.ready().await.unwrap();
}

fn offer_four(it: &Rig) {
    let tool = |name: &str| json!({ "name": name, "inputSchema": {} }).to_string();
    it.write("tools", &["do", "read", "read__all", "list"].map(tool).join("\n"));
}

#[test]
fn d_33_tools_that_no_pattern_covers_are_told_in_one_line_in_whatever_order_it_is_mounted() {
    rig(async |it| {
        offer_four(&it);
        approve(&it, json!(["bash"])).await;
        it.serve("plain", json!({})).await;

        assert_eq!(it.hear(1).await, [TOLD]);
    });
    rig(async |it| {
        offer_four(&it);
        it.serve("plain", json!({})).await;
        approve(&it, json!(["bash"])).await;

        assert_eq!(it.hear(1).await, [TOLD]);
    });
}

#[test]
fn d_33_a_server_that_comes_back_is_not_told_again_and_a_new_tool_is() {
    rig(async |it| {
        offer_four(&it);
        approve(&it, json!(["bash"])).await;
        it.serve("plain", json!({})).await;
        it.hear(1).await;

        it.call("crash").await;
        let back = it.hear(2).await;
        it.turn();
        it.write("next", &json!({ "name": "new", "inputSchema": {} }).to_string());
        it.call("change").await;
        it.listed(3).await;
        it.turn();

        assert_eq!(back[1], "mcp `x`: the server is back");
        assert_eq!(it.hear(1).await, ["! mcp__x__new: runs without asking"]);
    });
}

#[test]
fn d_33_a_pattern_covers_all_tools_of_servers() {
    rig(async |it| {
        offer_four(&it);
        approve(&it, json!(["mcp__*"])).await;
        it.serve("plain", json!({})).await;

        let result = it.call("echo").await;

        assert!(result.denied, "{result:?}");
    });
}
