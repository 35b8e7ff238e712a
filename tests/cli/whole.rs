//! The whole agent from one file.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::rc::Rc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nano_cordis::cordis::loader::{LoaderOptions, plugin as loader};
use nano_cordis::cordis::{BoxError, Context, NoConfig, plugin};
use nano_cordis::harness::agent_loop::{AgentLoop, TurnOutcome};
use nano_cordis::harness::builtins;
use nano_cordis::harness::env::Env;
use nano_cordis::harness::session::{Session, Sessions};
use nano_cordis::harness::tools::{PreExecute, Verdict};
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio_util::sync::CancellationToken;

use crate::support::{Folder, kinds, list, script, texts};

const FIXTURE: &str = include_str!("../fixtures/agent.cordis.yml");
const CLI: &str = "- { id: cli, name: cli }\n";

/// The log of H-32 with one call.
const TURN: [&str; 12] = [
    "turn/start",
    "step/start",
    "user/message",
    "request/header",
    "assistant/message",
    "tool/call",
    "tool/result",
    "step/end",
    "step/start",
    "assistant/message",
    "step/end",
    "turn/end",
];

#[test]
fn h_169_the_fixture_agent_runs_a_whole_turn() {
    let folder = Folder::with(&format!("{FIXTURE}{CLI}"));

    let ended = folder.run(&["Say hello"], "y\n");

    assert_eq!((kinds(&folder.log()), ended.code()), (TURN.to_vec(), 0), "{}", ended.err);
    assert_eq!(texts(&folder.log(), "tool/result"), ["hello from nano\n\n[exit code: 0]"]);
}

#[test]
fn h_170_the_order_of_the_entries_does_not_matter() {
    let forwards = Folder::with(&list(&[]));
    let backwards =
        Folder::with(&list(&[]).lines().rev().map(|it| format!("{it}\n")).collect::<String>());

    let (one, other) = (forwards.run(&["Say hello"], "y\n"), backwards.run(&["Say hello"], "y\n"));

    assert_eq!((one.out, one.err), (other.out, other.err));
    assert_eq!(kinds(&forwards.log()), kinds(&backwards.log()));
}

#[test]
fn h_172_with_the_openai_adapter_the_server_gets_what_the_log_derives() {
    let (address, server) = answering(
        r#"{"choices":[{"message":{"role":"assistant","content":"Hello from afar"},"finish_reason":"stop"}]}"#,
    );
    let llm = format!("name: llm-openai, config: {{baseUrl: '{address}', model: m}}");
    let folder = Folder::with(&list(&[("llm", &llm)]));

    let ended = folder.run(&["Say hello"], "");
    let request = server.join().unwrap();

    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("assistant> Hello from afar\n", ""));
    let log = folder.log();
    let header = &log[3]["data"]["header"];
    let expected =
        json!([{ "role": "system", "content": header["system"] }, log[2]["data"]["message"]]);
    assert_eq!(
        (&request["messages"], &request["model"], &request["tools"]),
        (&expected, &json!("m"), &header["tools"])
    );
}

#[test]
fn h_173_a_policy_refuses_what_it_does_not_like_and_lets_the_rest_run() {
    let calls = "{tool: bash, args: {command: 'rm -rf build'}}, {tool: bash, args: {command: echo fine}}, {content: done}";
    let folder = Folder::new();
    let text = format!("{FIXTURE}- {{ id: policy, name: policy }}\n")
        .replace("name: llm-fake", &script(calls));
    folder.write("list.yml", &text);

    let (session, outcome) = one_turn(&folder, "clean up");

    let log: Vec<Value> =
        session.events().iter().map(|it| serde_json::from_str(&it.to_line()).unwrap()).collect();
    let [refused, fine] = texts(&log, "tool/result")[..] else { panic!("{log:?}") };
    assert!(refused.starts_with("Error: ") && refused.contains("not on my watch"), "{refused}");
    assert_eq!((fine, outcome.denied), ("fine\n\n[exit code: 0]", 1));
}

#[test]
fn h_174_a_wrong_type_is_named_by_path() {
    let folder =
        Folder::with(&list(&[("approval", "name: approval, config: {tools: {bash: yes}}")]));

    let ended = folder.run(&["Say hello"], "y\n");

    assert!(ended.err.contains("approval") && ended.err.contains("tools"), "{}", ended.err);
    assert_eq!((ended.out.as_str(), ended.code()), ("", 2));
}

/// A plugin that vetoes: what it does not like never reaches `next`.
async fn policy(ctx: Context, _: NoConfig) -> Result<(), BoxError> {
    ctx.intercept_at::<PreExecute>(-100, async |_, call, next| {
        let command = call.arguments.get("command").and_then(Value::as_str).unwrap_or_default();
        if command.contains("rm -rf") {
            return Ok(Verdict::Deny("not on my watch".into()));
        }
        next.run().await
    })?;
    Ok(())
}

/// The list of the folder, without approval, plus that plugin; one turn.
fn one_turn(folder: &Folder, text: &str) -> (Rc<Session>, TurnOutcome) {
    let dir = folder.path().join("sessions").display().to_string();
    let options = LoaderOptions {
        file: Some(folder.path().join("list.yml")),
        text: "",
        modules: Rc::new(builtins().with("policy", plugin(policy))),
        env: Rc::new(|_| None),
        set: vec![("persistence".into(), "dir".into(), dir)],
        disable: vec!["approval".into()],
    };
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let root = Context::root();
        root.provide(Rc::new(Env::fixed([("PATH", std::env::var_os("PATH").unwrap())]))).unwrap();
        root.plugin(&loader(options), Value::Null).unwrap().ready().await.unwrap();
        let session = root.get::<Sessions>().unwrap().create().unwrap();
        let outcome = root
            .get::<AgentLoop>()
            .unwrap()
            .run(&session, text, CancellationToken::new())
            .await
            .unwrap();
        root.shutdown(Duration::from_secs(5)).await;
        (session, outcome)
    })
}

/// A server on loopback that gives one answer, and the request that it got.
fn answering(body: &'static str) -> (String, JoinHandle<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let length = reader
            .by_ref()
            .lines()
            .map(|it| it.unwrap().to_lowercase())
            .take_while(|it| !it.is_empty());
        let length = length
            .filter_map(|it| {
                it.strip_prefix("content-length: ").map(|it| it.parse::<usize>().unwrap())
            })
            .last()
            .unwrap();
        let mut request = vec![0; length];
        reader.read_exact(&mut request).unwrap();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
        write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        serde_json::from_slice(&request).unwrap()
    });
    (address, server)
}
