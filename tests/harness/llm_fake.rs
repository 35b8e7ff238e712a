//! The scripted model, asked as the loop asks it.

use std::{cell::RefCell, rc::Rc, time::Duration};

use nano_cordis::{
    cordis::{Context, Svc, plugin},
    harness::{
        llm::{Llm, LlmError, Reply, Request},
        llm_fake::{self, FakeRequest},
        session::message::{Header, Message, ToolSchema},
    },
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{App, run};

/// Runs a test with the mounted model.
fn fake(config: &Value, test: impl AsyncFnOnce(&App, Svc<dyn Llm>)) {
    run(async |app| {
        app.mount_as("llm", &plugin(llm_fake::apply), config.clone()).await;
        test(app, app.ctx.get::<dyn Llm>().unwrap()).await;
    });
}

/// A conversation that grows as the loop would let it grow.
struct Talk {
    llm: Svc<dyn Llm>,
    messages: Vec<Message>,
}

impl Talk {
    fn new(llm: &Svc<dyn Llm>) -> Self {
        Self { llm: llm.clone(), messages: Vec::new() }
    }

    /// Asks until no call is made; returns all that was said.
    async fn turn(&mut self, text: &str) -> Vec<String> {
        self.messages.push(Message::user(text));
        let mut said = Vec::new();
        loop {
            let reply = match self.step().await {
                Ok(reply) => reply,
                Err(err) => break said.push(err.to_string()),
            };
            let calls = reply.message.tool_calls.clone();
            self.messages.push(Message::Assistant(reply.message.clone().into()));
            self.messages.extend(calls.iter().map(|it| Message::tool(&it.id, "done")));
            said.push(reply.message.content.unwrap_or_else(|| calls[0].function.arguments.clone()));
            if calls.is_empty() || said.len() > 9 {
                break;
            }
        }
        said
    }

    async fn step(&self) -> Result<Reply, LlmError> {
        let mut reply = ask(&self.llm, self.messages.clone()).await?;
        request(self.messages.clone()).settle_ids(&mut reply.message.tool_calls);
        Ok(reply)
    }
}

async fn ask(llm: &Svc<dyn Llm>, messages: Vec<Message>) -> Result<Reply, LlmError> {
    llm.chat(Rc::new(request(messages)), Rc::new(|_| ()), CancellationToken::new()).await
}

fn request(messages: Vec<Message>) -> Request {
    Request { header: Header::new("fake", "", Vec::new()), messages }
}

#[test]
fn h_096_the_default_script_asks_for_bash_and_then_says_its_sentence() {
    fake(&Value::Null, async |_, llm| {
        let mut talk = Talk::new(&llm);
        let asking = ask(&llm, vec![Message::user("Hello?")]).await.unwrap().message;

        let said = talk.turn("Say hello").await;

        assert_eq!(asking.tool_calls[0].function.name, "bash");
        assert_eq!(asking.tool_calls[0].id, "");
        assert_eq!(said[0], r#"{"command":"echo hello from nano"}"#);
        assert_eq!(said[1], "The command ran; that is all for this scripted reply.");
        assert_eq!(llm.model(), "fake");
    });
}

#[test]
fn h_097_replies_come_in_the_order_of_the_script() {
    let script = json!({"script": [{"content": "a"}, {"content": "b"}, {"content": "c"}]});
    fake(&script, async |_, llm| {
        let mut said = Vec::new();

        for _ in 0..3 {
            said.extend(ask(&llm, vec![Message::user("go")]).await.unwrap().message.content);
        }

        assert_eq!(said, ["a", "b", "c"]);
    });
}

#[test]
fn h_098_by_default_the_script_begins_anew_with_each_message_of_the_user() {
    let script = json!({"script": [{"tool": "t", "args": {"n": 1}}, {"content": "end"}, {"content": "unused"}]});
    fake(&script, async |_, llm| {
        let (mut talk, mut other) = (Talk::new(&llm), Talk::new(&llm));

        let turns = [talk.turn("one").await, talk.turn("two").await, other.turn("one").await];

        assert_eq!(turns, [[r#"{"n":1}"#, "end"]; 3]);
    });
}

#[test]
fn h_098_a_script_that_ends_within_a_turn_begins_anew() {
    fake(&json!({"script": [{"tool": "t", "args": "x"}]}), async |_, llm| {
        let said = Talk::new(&llm).turn("go").await;

        assert_eq!(said, ["x"; 10]);
    });
}

#[test]
fn h_098_the_last_reply_repeats_if_so_configured() {
    let config = json!({"script": [{"content": "a"}, {"content": "b"}], "repeat": "last"});
    fake(&config, async |_, llm| {
        let mut talk = Talk::new(&llm);

        let turns = [talk.turn("1").await, talk.turn("2").await, talk.turn("3").await];

        assert_eq!(turns, [["a"], ["b"], ["b"]]);
    });
}

#[test]
fn h_098_the_end_of_the_script_is_an_error_if_so_configured() {
    fake(&json!({"script": [{"content": "a"}], "repeat": "error"}), async |_, llm| {
        let mut talk = Talk::new(&llm);

        let turns = [talk.turn("1").await, talk.turn("2").await, talk.turn("3").await];

        assert_eq!(turns, [["a"], ["the script has no reply 2"], ["the script has no reply 3"]]);
    });
}

#[test]
fn h_099_a_scripted_error_is_an_error_with_that_message() {
    fake(&json!({"script": [{"error": "out of coffee"}]}), async |_, llm| {
        let err = ask(&llm, vec![Message::user("go")]).await.unwrap_err();

        assert_eq!(err, LlmError::Scripted("out of coffee".into()));
    });
}

#[test]
fn h_100_the_exact_request_is_raised_as_an_event() {
    fake(&Value::Null, async |app, llm| {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let keep = seen.clone();
        app.ctx
            .on(move |_: &Context, event: &FakeRequest| keep.borrow_mut().push(event.0.clone()))
            .unwrap();
        let tools = vec![ToolSchema::new("bash", "runs", json!({"type": "object"}))];
        let request = Rc::new(Request {
            header: Header::new("other", "Be brief.", tools),
            messages: vec![Message::user("go")],
        });

        llm.chat(request.clone(), Rc::new(|_| ()), CancellationToken::new()).await.unwrap();

        assert_eq!(*seen.borrow(), [request]);
    });
}

#[test]
fn a_reply_can_hold_text_and_several_calls_and_all_that_goes_with_them() {
    let line = json!({
        "content": "both", "tool": "a", "args": {"x": 1}, "reasoning_content": "hm", "finish_reason": "length", "usage": {"total_tokens": 3},
        "tool_calls": [
            {"id": "mine", "type": "function", "function": {"name": "b", "arguments": "{not json"}},
            {"function": {"name": "c", "arguments": {"y": 2}}},
        ],
    });
    fake(&json!({"script": [line]}), async |_, llm| {
        let reply = ask(&llm, vec![Message::user("go")]).await.unwrap();

        let calls: Vec<_> = reply
            .message
            .tool_calls
            .iter()
            .map(|it| (&*it.id, &*it.function.name, &*it.function.arguments))
            .collect();
        assert_eq!(
            calls,
            [("", "a", r#"{"x":1}"#), ("mine", "b", "{not json"), ("", "c", r#"{"y":2}"#)]
        );
        assert_eq!(reply.message.content.as_deref(), Some("both"));
        assert_eq!(reply.message.reasoning_content.as_deref(), Some("hm"));
        assert_eq!(
            (reply.finish_reason.as_deref(), reply.usage),
            (Some("length"), Some(json!({"total_tokens": 3})))
        );
    });
}

#[test]
fn a_07_calls_of_later_turns_have_ids_of_their_own() {
    fake(&Value::Null, async |_, llm| {
        let mut talk = Talk::new(&llm);

        talk.turn("one").await;
        talk.turn("two").await;

        let ids = talk.messages.iter().filter_map(|it| match it {
            Message::Tool { tool_call_id, .. } => Some(&**tool_call_id),
            _ => None,
        });
        assert_eq!(ids.collect::<Vec<_>>(), ["call_1", "call_2"]);
    });
}

#[test]
fn a_reply_takes_its_time_and_can_be_cancelled_meanwhile() {
    fake(&json!({"script": [{"content": "late"}], "delayMs": 60_000}), async |_, llm| {
        let started = tokio::time::Instant::now();
        let cancel = CancellationToken::new();
        let request =
            Rc::new(Request { header: Header::new("fake", "", Vec::new()), messages: Vec::new() });

        let reply = ask(&llm, Vec::new()).await.unwrap();
        let waiting = llm.chat(request, Rc::new(|_| ()), cancel.clone());
        let pull = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cancel.cancel();
        };
        let (cancelled, ()) = tokio::join!(waiting, pull);

        assert_eq!(reply.message.content.as_deref(), Some("late"));
        assert_eq!(cancelled.unwrap_err(), LlmError::Cancelled);
        assert_eq!(started.elapsed().as_secs(), 61);
    });
}

#[test]
fn an_empty_script_or_an_unknown_way_to_repeat_is_refused() {
    let def = plugin(llm_fake::apply);

    for config in [
        json!({"script": []}),
        json!({"repeat": "always"}),
        json!({"script": [{"tool_calls": [{"tool": "x"}]}]}),
    ] {
        def.check(&config).expect_err(&config.to_string());
    }
}
