//! Approval rules: what is denied, asked about and allowed by them, and what is remembered.

use std::{cell::Cell, rc::Rc};

use nano_cordis::{
    cordis::{BoxError, Context, Mount, NoConfig, Svc, plugin},
    harness::{
        approval::{Answer, ApprovalRequest, Memory},
        session::Session,
        tools::{Call, CallRequest, Tool, ToolResult, Tools},
    },
};
use serde_json::{Value, json};

use crate::{
    hooks::rig::{Rig, agent},
    shared::call,
};

/// An agent with a tool `bash`, whose approval asks about these tools.
fn list(guarded: &[&str], rules: &Value) -> String {
    format!(
        "
- {{id: session, name: session}}
- {{id: prompt, name: prompt}}
- {{id: tools, name: tools}}
- {{id: echo, name: echo}}
- {{id: shell, name: shell-local}}
- {{id: bash, name: tool-bash}}
- {{id: llm, name: llm-fake}}
- {{id: loop, name: agent-loop}}
- {{id: approval, name: approval, config: {{tools: {}}}}}
- {{id: rules, name: approval-rules, config: {rules}}}
",
        json!(guarded)
    )
}

async fn run(rig: &Rig, session: &Rc<Session>, name: &str, arguments: &Value) -> ToolResult {
    let session = Some(session.clone());
    let request = CallRequest { session, ..call(name, arguments.to_string()) };
    rig.service::<Tools>().execute(request).await
}

async fn bash(rig: &Rig, command: &str) -> ToolResult {
    run(rig, &rig.session(), "bash", &json!({ "command": command })).await
}

/// Somebody who says "always" where that is offered, and else yes. Counts the questions, and the offers.
fn says_always(rig: &Rig) -> Rc<Cell<(u32, u32)>> {
    let counts = Rc::new(Cell::new((0, 0)));
    let counted = counts.clone();
    let answer = async move |ctx: Context, call: Rc<Call>| {
        let offer = ctx.get::<dyn Memory>().and_then(|it| it.offer(&call));
        let (asked, offered) = counted.get();
        counted.set((asked + 1, offered + u32::from(offer.is_some())));
        if let Some(remember) = offer {
            remember();
        }
        Ok(Some(Answer::Yes))
    };
    rig.root.answer::<ApprovalRequest>(answer).unwrap();
    counts
}

#[test]
fn what_a_rule_allows_runs_unasked_and_everything_else_is_asked_about_as_before() {
    let rules = json!({ "allow": ["bash: echo hi", "bash: echo on *"] });
    agent(&list(&["bash"], &rules), async |rig| {
        let asked = rig.answers(Answer::No);

        let allowed = [bash(rig, "echo hi").await, bash(rig, "echo on and on").await];
        assert_eq!(asked.get(), 0);
        assert!(allowed.iter().all(|it| it.content.ends_with("[exit code: 0]")), "{allowed:?}");

        for command in
            ["echo hi there", "echo hi; ls", "echo hi > x", "echo \"hi\"", "echo on $HOME"]
        {
            let before = asked.get();
            let refused = bash(rig, command).await;
            assert!(refused.content.contains("the user refused"), "{command}: {refused:?}");
            assert_eq!(asked.get(), before + 1, "{command}");
        }
    });
}

#[test]
fn a_command_in_another_folder_is_not_the_one_that_a_rule_allows() {
    agent(&list(&["bash"], &json!({ "allow": ["bash: ls *"] })), async |rig| {
        let asked = rig.answers(Answer::No);
        let session = rig.session();

        let timed = json!({ "command": "ls -d .", "timeoutMs": 60_000 });
        let ran = run(rig, &session, "bash", &timed).await;
        assert!(!ran.denied && asked.get() == 0, "{ran:?}");

        let elsewhere = json!({ "command": "ls -d .", "workdir": "/" });
        assert!(run(rig, &session, "bash", &elsewhere).await.denied);
        assert_eq!(asked.get(), 1);
    });
}

#[test]
fn deny_beats_ask_which_beats_allow() {
    let rules = json!({
        "allow": ["bash", "echo"],
        "ask": ["bash: ls *"],
        "deny": ["bash: ls -l *", "e*o"],
    });
    agent(&list(&["bash", "echo"], &rules), async |rig| {
        let asked = rig.answers(Answer::Yes);

        let denied = bash(rig, "cd / && ls -l x").await;
        assert!(
            denied
                .content
                .starts_with("Error: the rule `bash: ls -l *` denies this call; do not try")
        );
        assert!(denied.denied && rig.echo("a").await.denied);
        assert_eq!((asked.get(), rig.runs.get()), (0, 0));

        bash(rig, "ls -d .").await;
        assert_eq!(asked.get(), 1);

        bash(rig, "pwd").await;
        assert_eq!(asked.get(), 1);
        assert_eq!(
            rig.take_notices(),
            ["approval-rules: the rule `bash: ls *` has it asked about"]
        );
    });
}

#[test]
fn what_a_rule_asks_about_is_asked_about_once_whether_approval_guards_it_or_not() {
    for guarded in [&[][..], &["bash"]] {
        agent(&list(guarded, &json!({ "ask": ["bash: ls *"] })), async |rig| {
            let asked = rig.answers(Answer::No);

            let refused = bash(rig, "ls").await;

            assert!(refused.denied && refused.content.contains("the user refused"), "{refused:?}");
            assert_eq!(asked.get(), 1);
            assert_eq!(bash(rig, "pwd").await.denied, !guarded.is_empty());
            rig.take_notices();
        });
    }
}

#[test]
fn nobody_there_is_a_no_to_what_a_rule_asks_about() {
    agent(&list(&[], &json!({ "ask": ["bash: ls *"] })), async |rig| {
        let refused = bash(rig, "ls").await;

        let expected = "Error: nobody was there to approve this call, so it was refused; \
                        the rule `bash: ls *` has it asked about";
        assert_eq!((refused.content.as_str(), refused.denied), (expected, true));
        rig.take_notices();
    });
}

#[test]
fn d_66_a_quote_does_not_bring_a_command_past_a_rule_that_denies() {
    agent(&list(&[], &json!({ "deny": ["bash: ls -l *"] })), async |rig| {
        let asked = rig.answers(Answer::No);

        let ways = [
            "'ls' -l x",
            "l\\s -l x",
            "/bin/ls -l; true",
            "env ls -l",
            "echo \"$(ls -l)\"",
            "A=b ls -l",
            "x=ls; $x -l",
            "{ls,-l}",
            "/bin/l? -l",
        ];
        for command in ways {
            let refused = bash(rig, command).await;
            assert!(refused.denied, "{command}: {refused:?}");
        }
        // One is denied as it is, and each other one was asked about.
        assert_eq!(asked.get() as usize, ways.len() - 1);

        assert!(!bash(rig, "echo on | cat").await.denied);
        rig.take_notices();
    });
}

#[test]
fn a_command_that_rules_cannot_read_is_asked_about_and_may_be_remembered() {
    agent(&list(&[], &json!({ "deny": ["bash: ls -l *"] })), async |rig| {
        let counts = says_always(rig);
        let session = rig.session();

        for _ in 0..2 {
            run(rig, &session, "bash", &json!({ "command": "echo \"a b\"" })).await;
        }

        assert_eq!(counts.get(), (1, 1));
        rig.take_notices();
    });
}

#[test]
fn what_is_on_the_list_is_always_asked_about_and_never_remembered() {
    agent(&list(&[], &json!({ "allow": ["bash"] })), async |rig| {
        let counts = says_always(rig);
        let session = rig.session();

        for command in ["rm -f nothing-of-this-name", "true; /bin/rm -f nothing-of-this-name"] {
            for _ in 0..2 {
                run(rig, &session, "bash", &json!({ "command": command })).await;
            }
        }

        assert_eq!(counts.get(), (4, 0));
        assert_eq!(rig.take_notices(), ["approval-rules: `rm` is always asked about"; 4]);
    });
}

#[test]
fn an_always_is_for_exactly_this_call_in_this_session() {
    agent(&list(&["bash", "echo"], &json!({})), async |rig| {
        let counts = says_always(rig);
        let (session, other) = (rig.session(), rig.session());
        let command = json!({ "command": "echo \"a b\" | cat", "timeoutMs": 5000 });
        let turned = json!({ "timeoutMs": 5000, "command": "echo \"a b\" | cat" });
        let longer = json!({ "command": "echo \"a b\" | cat", "timeoutMs": 5001 });
        let told = "exactly this call of `bash` is not asked about again in this session";

        run(rig, &session, "bash", &command).await;
        let again = run(rig, &session, "bash", &turned).await;
        assert_eq!((counts.get(), again.content.as_str()), ((1, 1), "a b\n\n[exit code: 0]"));
        assert_eq!(rig.take_notices(), [told]);

        run(rig, &session, "bash", &longer).await;
        run(rig, &other, "bash", &command).await;
        assert_eq!(counts.get(), (3, 3));

        run(rig, &session, "echo", &json!({ "text": "a" })).await;
        run(rig, &session, "echo", &json!({ "text": "a" })).await;
        run(rig, &session, "echo", &json!({ "text": "b" })).await;
        assert_eq!((counts.get(), rig.runs.get()), ((5, 5), 3));
    });
}

#[test]
fn a_plain_yes_counts_once() {
    agent(&list(&["echo"], &json!({})), async |rig| {
        let asked = rig.answers(Answer::Yes);
        let session = rig.session();

        for _ in 0..2 {
            run(rig, &session, "echo", &json!({ "text": "a" })).await;
        }

        assert_eq!((asked.get(), rig.runs.get()), (2, 2));
    });
}

/// Mounts a plugin with a tool of this description.
fn offer(rig: &Rig, description: &'static str) -> Mount {
    let plugin = plugin(move |_: Context, _: NoConfig, tools: Svc<Tools>| {
        let tool = Tool::new("date", description, json!({ "type": "object" }), async |_| Ok("now"));
        std::future::ready(tools.register(tool).map(drop).map_err(BoxError::from))
    });
    rig.root.plugin_named("date", &plugin, json!({})).unwrap()
}

#[test]
fn d_64_a_tool_that_says_something_else_of_itself_is_asked_about_anew() {
    agent(&list(&["*"], &json!({})), async |rig| {
        let counts = says_always(rig);
        let session = rig.session();
        let date = async |description| {
            let mount = offer(rig, description);
            mount.ready().await.unwrap();
            run(rig, &session, "date", &json!({})).await;
            mount.dispose().await;
            counts.get().0
        };

        assert_eq!(date("tells the date").await, 1);
        assert_eq!(date("tells the date").await, 1);
        assert_eq!(date("tells the date, and deletes it").await, 2);
    });
}

#[test]
fn a_hook_that_wants_a_person_is_not_content_with_a_rule_or_with_what_is_remembered() {
    let asks = r#"echo '{"hookSpecificOutput": {"permissionDecision": "ask"}}'"#;
    let hooks = json!({ "PreToolUse": [{ "command": asks }] });
    let hooks = format!("- {{id: hooks, name: hooks, config: {hooks}}}\n");
    for guarded in [&[][..], &["echo"]] {
        let list = list(guarded, &json!({ "allow": ["echo"] }));
        for list in [format!("{hooks}{list}"), format!("{list}{hooks}")] {
            agent(&list, async |rig| {
                let counts = says_always(rig);
                let session = rig.session();

                for _ in 0..2 {
                    run(rig, &session, "echo", &json!({ "text": "a" })).await;
                }

                assert_eq!((counts.get(), rig.runs.get()), ((2, 0), 2));
                rig.take_notices();
            });
        }
    }
}

#[test]
fn a_call_that_cannot_run_is_not_ruled_on() {
    agent(&list(&[], &json!({ "deny": ["*"] })), async |rig| {
        let result = rig.call("bash", "{}").await;

        assert_eq!(
            (result.denied, result.content.as_str()),
            (false, "Error: invalid arguments: `command` is missing")
        );
    });
}

#[test]
fn a_rule_about_no_tool_is_told_and_one_whose_tool_takes_no_command() {
    let rules = json!({ "allow": ["bush: ls", "mcp__*", "echo: ls"], "deny": ["bash: x"] });
    agent(&list(&["bash", "echo"], &rules), async |rig| {
        let told = rig.take_notices();

        let expected = [
            "approval-rules: there is no tool named `bush`, as in `bush: ls`",
            "approval-rules: `echo: ls` never fits, because `echo` takes no command",
        ];
        assert_eq!(told, expected);
    });
}

#[test]
fn d_17_rules_that_cannot_be_meant_are_refused_by_name() {
    agent(&list(&["bash"], &json!({})), async |rig| {
        for (rules, why) in [
            (
                json!({ "allow": ["bash:  ls  *"], "deny": ["bash: ls *"] }),
                "`bash: ls *` is in `allow` and in `deny`; take one of them out",
            ),
            (json!({ "allow": ["echo"], "ask": ["echo"] }), "`echo` is in `allow` and in `ask`"),
            (json!({ "ask": ["echo"], "deny": ["echo"] }), "`echo` is in `ask` and in `deny`"),
            (json!({ "allow": ["bash: git push *"] }), "`git push` always asks"),
            (
                json!({ "allow": ["bash", ""] }),
                "config.allow.1: `` does not begin with the name of a tool",
            ),
            (json!({ "deny": ["bash:"] }), "config.deny.0: `bash:` has no words after the colon"),
            (json!({ "deny": ["bash: a; b"] }), "config.deny.0: `bash: a; b` would never fit"),
            (json!({ "alow": [] }), "config.alow: unknown key; did you mean `allow`?"),
        ] {
            let said = rig.save(&list(&["bash"], &rules)).await.unwrap_err();
            assert!(said.contains("entry `rules`") && said.contains(why), "{said}");
        }
    });
}

#[test]
fn d_20_it_is_a_guard_that_cannot_be_optional() {
    agent(&list(&["bash"], &json!({})), async |rig| {
        let optional = list(&["bash"], &json!({}))
            .replace("name: approval-rules,", "name: approval-rules, optional: true,");

        let said = rig.save(&optional).await.unwrap_err();

        assert!(said.contains("`rules`") && said.contains("optional"), "{said}");
    });
}
