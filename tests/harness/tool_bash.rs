//! The bash tool: from the model's call to the text of its result, with the local shell and with others.

use std::{cell::RefCell, path::PathBuf, rc::Rc};

use nano_cordis::{
    cordis::{BoxError, Context, LocalBoxFuture, Mount, NoConfig, Svc, plugin},
    harness::{
        env::Env,
        persistence, session,
        session::{Session, Sessions},
        shell::{Output, Shell, ShellError, ShellRequest, ShellResult, ShellSpec},
        shell_local, tool_bash, tools,
        tools::{CallRequest, PreExecute, ToolResult, Tools},
    },
};
use serde_json::{Value, json};
use tokio::{runtime::Builder, task::LocalSet};
use tokio_util::sync::CancellationToken;

#[test]
fn h_127_the_text_is_the_output_an_empty_line_and_the_exit_code() {
    agent(async |agent| {
        agent.mount_local_shell().await;

        let result = agent.call(&json!({ "command": "echo hello from nano" })).await;

        assert_eq!(result.content, "hello from nano\n\n[exit code: 0]");
    });
}

#[test]
fn h_128_a_command_that_fails_is_no_failed_call() {
    agent(async |agent| {
        agent.mount_local_shell().await;

        let result = agent.call(&json!({ "command": "exit 3" })).await;

        assert_eq!(
            (result.content.as_str(), result.is_error),
            ("(no output)\n[exit code: 3]", false)
        );
    });
}

#[test]
fn h_129_stderr_follows_stdout() {
    agent(async |agent| {
        agent.mount_local_shell().await;

        let result = agent.call(&json!({ "command": "echo err >&2; printf out" })).await;

        assert_eq!(result.content, "out\n[stderr]\nerr\n\n[exit code: 0]");
    });
}

#[test]
fn h_131_a_deadline_is_told_and_is_no_failed_call() {
    agent(async |agent| {
        agent.mount_local_shell().await;

        let result =
            agent.call(&json!({ "command": "echo early; sleep 30", "timeoutMs": 300 })).await;

        let text = "early\n\n[timed out after 300ms]\n[killed by signal: SIGTERM, exit code: 143]";
        assert_eq!((result.content.as_str(), result.is_error), (text, false));
    });
}

#[test]
fn h_134_long_output_is_kept_beside_the_log_of_its_session() {
    agent(async |agent| {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("sessions");
        agent.mount(&plugin(persistence::apply), json!({ "dir": logs })).await;
        agent.mount_local_shell().await;
        let session = agent.session();

        let command = json!({ "command": "head -c 40000 /dev/zero | tr '\\0' x" });
        let result = agent.call_in(Some(session.clone()), &command, CancellationToken::new()).await;

        let file = logs.join(session.id()).join("output-1.txt");
        assert_eq!(file.metadata().unwrap().len(), 40_000);
        assert!(result.content.contains(&format!(
            "\n… 10000 bytes left out, first 64 MiB in {} …\n",
            file.display()
        )));
    });
}

#[test]
fn h_139_another_provider_of_shell_runs_the_command_and_the_tool_is_unchanged() {
    agent(async |agent| {
        let seen = agent.mount_recorder().await;

        let result =
            agent.call(&json!({ "command": "ls", "timeoutMs": 5, "workdir": "/tmp" })).await;

        assert_eq!(result.content, "ran elsewhere\n[exit code: 0]");
        let asked = seen.borrow().last().cloned().unwrap();
        assert_eq!(
            (asked.command.as_str(), asked.cwd, asked.timeout_ms),
            ("ls", Some("/tmp".into()), Some(5))
        );
    });
}

#[test]
fn h_140_a_missing_folder_is_a_failed_call_that_names_it() {
    agent(async |agent| {
        agent.mount_local_shell().await;

        let result = agent.call(&json!({ "command": "true", "workdir": "/no/such/folder" })).await;

        assert_eq!(
            (result.content.as_str(), result.is_error),
            ("Error: the working directory /no/such/folder is not there", true)
        );
    });
}

#[test]
fn h_141_a_reload_with_another_description_shows_in_the_next_request() {
    agent(async |agent| {
        agent.mount_local_shell().await;
        let described = |agent: &Agent| agent.tools().schemas()[0].function.description.clone();
        let before = described(&agent);

        agent.bash.dispose().await;
        let while_away = agent.tools().names();
        agent.mount(&plugin(tool_bash::apply), json!({ "description": "Say it with bash." })).await;

        assert!(before.starts_with("Run a command with bash."), "{before}");
        assert_eq!(while_away, Vec::<String>::new());
        assert_eq!(described(&agent), "Say it with bash.");
    });
}

#[test]
fn a_15_a_nul_byte_is_a_failed_call_that_nobody_is_asked_about() {
    agent(async |agent| {
        agent.mount_local_shell().await;
        let problem = Rc::new(RefCell::new(None));
        let noted = problem.clone();
        let note =
            async move |_, call: Rc<tools::Call>, next: nano_cordis::cordis::Next<PreExecute>| {
                noted.replace(call.problem.clone());
                next.run().await
            };
        agent.ctx.intercept::<PreExecute>(note).unwrap();

        let result = agent.call(&json!({ "command": "printf 'a\0b'" })).await;

        assert!(result.is_error);
        assert!(problem.borrow().as_ref().is_some_and(|it| it.contains("NUL")));
    });
}

#[test]
fn only_the_command_is_required() {
    agent(async |agent| {
        agent.mount_local_shell().await;

        let parameters = agent.tools().schemas()[0].function.parameters.clone();

        assert_eq!(parameters["required"], json!(["command"]));
        let names: Vec<_> = parameters["properties"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(names, ["command", "timeoutMs", "workdir"]);
    });
}

#[test]
fn a_cancelled_call_stops_its_command() {
    agent(async |agent| {
        agent.mount_local_shell().await;
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("bell");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let bell = tokio::net::unix::pipe::OpenOptions::new()
            .read_write(true)
            .open_receiver(&fifo)
            .unwrap();
        let cancel = CancellationToken::new();

        let command = json!({ "command": "echo > bell; sleep 30", "workdir": folder.path() });
        let (result, ()) = tokio::join!(agent.call_in(None, &command, cancel.clone()), async {
            bell.readable().await.unwrap();
            cancel.cancel();
        });

        assert_eq!(
            result.content,
            "(no output)\n[cancelled]\n[killed by signal: SIGTERM, exit code: 143]"
        );
    });
}

/// Session, tools and the bash tool; a test adds a shell.
struct Agent {
    ctx: Context,
    bash: Mount,
}

fn agent(test: impl AsyncFnOnce(Agent)) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let ctx = Context::root();
        ctx.provide(Rc::new(Env::process())).unwrap();
        for plugin in [plugin(session::apply), plugin(tools::apply)] {
            ctx.plugin(&plugin, json!({})).unwrap();
        }
        let bash = ctx.plugin(&plugin(tool_bash::apply), json!({})).unwrap();
        test(Agent { ctx, bash }).await;
    });
}

impl Agent {
    async fn mount(&self, def: &nano_cordis::cordis::PluginDef, config: Value) {
        self.ctx.plugin(def, config).unwrap().ready().await.unwrap();
        self.bash.settled().await;
    }

    async fn mount_local_shell(&self) {
        self.mount(&plugin(shell_local::apply), json!({})).await;
    }

    async fn mount_recorder(&self) -> Rc<RefCell<Vec<ShellRequest>>> {
        let seen = Rc::<RefCell<Vec<ShellRequest>>>::default();
        let shell = Rc::new(Recorder(seen.clone()));
        let body = move |ctx: Context, _: NoConfig| {
            let shell = shell.clone();
            async move { ctx.provide::<dyn Shell>(shell).map(drop).map_err(BoxError::from) }
        };
        self.mount(&plugin(body), json!({})).await;
        seen
    }

    fn tools(&self) -> Svc<Tools> {
        self.ctx.get::<Tools>().unwrap()
    }

    fn session(&self) -> Rc<Session> {
        self.ctx.get::<Sessions>().unwrap().create().unwrap()
    }

    async fn call(&self, arguments: &Value) -> ToolResult {
        self.call_in(None, arguments, CancellationToken::new()).await
    }

    async fn call_in(
        &self,
        session: Option<Rc<Session>>,
        arguments: &Value,
        cancel: CancellationToken,
    ) -> ToolResult {
        let (id, name, arguments) = ("c1".into(), "bash".into(), arguments.to_string());
        let request =
            CallRequest { id, name, arguments, problem: None, cancel, session, turn: 1, step: 1 };
        self.tools().execute(request).await
    }
}

/// A shell that runs nothing and remembers what it was asked.
struct Recorder(Rc<RefCell<Vec<ShellRequest>>>);

impl Shell for Recorder {
    fn resolve(&self, request: &ShellRequest) -> Result<ShellSpec, ShellError> {
        self.0.borrow_mut().push(request.clone());
        Ok(ShellSpec {
            command: request.command.clone(),
            cwd: PathBuf::new(),
            timeout_ms: 1,
            spill_dir: None,
        })
    }

    fn run(
        &self,
        _: ShellSpec,
        _: CancellationToken,
    ) -> LocalBoxFuture<'static, Result<ShellResult, ShellError>> {
        let stdout = Output { text: "ran elsewhere".into(), ..Output::default() };
        Box::pin(async { Ok(ShellResult { exit_code: Some(0), stdout, ..ShellResult::default() }) })
    }
}
