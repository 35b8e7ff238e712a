//! The model service as a definition: ids of calls, the hash of a request, codes of errors.

use nano_cordis::harness::{
    llm::{LlmError, Request},
    session::message::{AssistantMessage, Header, Message, ToolCallRequest, ToolSchema},
};
use proptest::prelude::*;
use serde_json::json;

fn request(messages: Vec<Message>) -> Request {
    let tools = vec![ToolSchema::new("bash", "runs", json!({"type": "object"}))];
    Request { header: Header::new("m", "Be brief.", tools), messages }
}

fn calls(ids: &[impl AsRef<str>]) -> Vec<ToolCallRequest> {
    ids.iter().map(|id| ToolCallRequest::new(id.as_ref(), "bash", "{}")).collect()
}

fn settled(history: &[impl AsRef<str>], reply: &[impl AsRef<str>]) -> Vec<String> {
    let asked = AssistantMessage { tool_calls: calls(history), ..AssistantMessage::default() };
    let mut reply = calls(reply);
    request(vec![Message::user("hi"), Message::Assistant(asked.into())]).settle_ids(&mut reply);
    reply.into_iter().map(|it| it.id).collect()
}

#[test]
fn h_117_a_call_without_an_id_gets_one_that_occurs_nowhere_else() {
    assert_eq!(settled(&[""; 0], &[""]), ["call_1"]);
    assert_eq!(settled(&["a", "call_3"], &["", ""]), ["call_4", "call_5"]);
    assert_eq!(settled(&[""; 0], &["", "call_1", ""]), ["call_2", "call_1", "call_3"]);
}

#[test]
fn a_07_an_id_that_was_used_before_is_replaced_and_a_good_one_stays() {
    assert_eq!(settled(&[""; 0], &["x", "x", ""]), ["x", "call_2", "call_3"]);
    assert_eq!(settled(&["x", "call_2", "call_3"], &["x", "y"]), ["call_4", "y"]);
}

proptest! {
    #[test]
    fn a_07_every_call_has_an_id_of_its_own(
        history in prop::collection::vec("|a|b|call_[1-9]", 0..9),
        reply in prop::collection::vec("|a|b|call_[1-9]", 0..9),
    ) {
        let ids = settled(&history, &reply);

        let mut seen: std::collections::HashSet<_> = history.into_iter().collect();
        prop_assert!(!ids.contains(&String::new()));
        prop_assert!(ids.into_iter().all(|id| seen.insert(id)));
    }
}

#[test]
fn the_hash_of_a_request_is_sha_256_of_its_json() {
    let whole = request(vec![Message::user("hé")]);
    let json = r#"{"header":{"model":"m","system":"Be brief.","tools":[{"type":"function","function":{"name":"bash","description":"runs","parameters":{"type":"object"}}}]},"messages":[{"role":"user","content":"hé"}]}"#;

    assert_eq!(serde_json::to_string(&whole).unwrap(), json);
    assert_eq!(whole.hash(), "3718e0a3dfbff6a6eec5a6f3f5a248651cc769f86496cd443cc402b5600000e2");
}

#[test]
fn the_hash_changes_with_every_part_of_a_request() {
    let base = request(vec![Message::user("a")]);
    let mut other_model = base.clone();
    other_model.header.model = "n".into();
    let mut other_tools = base.clone();
    other_tools.header.tools.clear();
    let other_text = request(vec![Message::user("b")]);

    let hashes = [&base, &other_model, &other_tools, &other_text].map(Request::hash);

    assert_eq!(base.hash(), request(vec![Message::user("a")]).hash());
    assert!(hashes.iter().skip(1).all(|it| *it != hashes[0]));
}

#[test]
fn h_042_an_error_has_a_code_and_where_there_was_one_a_status() {
    let refused = LlmError::Status { status: 401, message: "no".into() };
    let cut = LlmError::Transport("broke".into());

    assert_eq!(
        (refused.code(), refused.status(), refused.to_string()),
        ("status", Some(401), "no".into())
    );
    assert_eq!((cut.code(), cut.status()), ("transport", None));
    assert_eq!(LlmError::Empty.code(), "empty-reply");
}
