//! Hooks: commands of the user that run before and after tools and at the end of a turn.
//!
//! Needs `tools` and `env`; tells `trust` if it is there. Listens to `tools/pre-execute`, `tools/post-execute`,
//! `agent/turn-stopping`, `approval/request`, `loader/applied`. Raises `approval/request`, `cordis/notice`,
//! `cordis/warning` and `shell/env`.
//! Full-size counterpart: the hook support of the agent bundle, which has more events and hooks that change a call.
//! Watch for: a hook can only say no. What it allows goes on to whoever else decides. And it does not go through the
//! service `shell`: that one may be narrowed for the model, and these are the user's own commands.

mod answer;
mod coverage;
mod hook;
mod input;

use std::rc::Rc;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use self::{
    answer::Said,
    hook::{Event, Hook, first_line},
    input::Input,
};
use crate::{
    cordis::{BoxError, Context, Next, Notice, Optional, Svc},
    extras::asking::Asking,
    harness::{
        agent_loop::{Stopping, TurnStopping},
        env::Env,
        shell_local::{self, LocalShell},
        tools::{Call, Finished, Order, PostExecute, PreExecute, ToolResult, Tools, Verdict},
        trust::Trust,
    },
};

// Omitted: the events that people know beside these (a prompt was sent, a session begins, a sub-agent ends), hooks that
// change a call or add to the prompt, and hooks that go on in the background.
/// Config of `hooks`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase", default)]
pub struct Config {
    /// Before a tool runs. One that blocks refuses the call.
    pre_tool_use: Vec<ToolHook>,
    /// After a tool ran. What one that blocks has to say is added to the result.
    post_tool_use: Vec<ToolHook>,
    /// When the model calls nothing more. One that blocks makes it go on.
    stop: Vec<StopHook>,
    /// Environment variables that hooks see although their names look secret.
    #[serde(rename = "passEnv")]
    pass_env: Vec<String>,
}

/// A command, and the tools that it is about.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ToolHook {
    /// Names of tools, in which `*` stands for any text; several with `|` between them. All tools without it.
    #[serde(default)]
    matcher: String,
    /// For bash, in the project folder.
    command: String,
    /// After this long it is stopped.
    #[serde(default = "default_timeout_ms")]
    #[schemars(range(min = 1, max = 600_000))]
    timeout_ms: u64,
}

/// A command.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StopHook {
    /// For bash, in the project folder.
    command: String,
    /// After this long it is stopped.
    #[serde(default = "default_timeout_ms")]
    #[schemars(range(min = 1, max = 600_000))]
    timeout_ms: u64,
}

fn default_timeout_ms() -> u64 {
    60_000
}

impl Config {
    /// All hooks in their order, and the variables that they see.
    fn split(self) -> (Vec<Hook>, Vec<String>) {
        let of_tools = |event, hooks: Vec<ToolHook>| {
            let hook = move |it: ToolHook| Hook::new(event, &it.matcher, it.command, it.timeout_ms);
            hooks.into_iter().map(hook)
        };
        let at_the_end =
            self.stop.into_iter().map(|it| Hook::new(Event::Stop, "", it.command, it.timeout_ms));
        let hooks = of_tools(Event::PreToolUse, self.pre_tool_use)
            .chain(of_tools(Event::PostToolUse, self.post_tool_use))
            .chain(at_the_end);
        (hooks.collect(), self.pass_env)
    }
}

/// The plugin. It decides before anybody is asked.
pub async fn apply(
    ctx: Context,
    config: Config,
    tools: Svc<Tools>,
    env: Svc<Env>,
    trust: Optional<Trust>,
) -> Result<(), BoxError> {
    let (hooks, pass_env) = config.split();
    coverage::watch(&ctx, &hooks, tools)?;
    let config = shell_local::Config::passing(pass_env);
    let shell = LocalShell::start(&ctx, config, env.shared(), trust)?;
    let hooks =
        Rc::new(Hooks { all: hooks, shell, env: env.shared(), asking: Asking::watch(&ctx)? });
    let (before, after) = (hooks.clone(), hooks.clone());
    ctx.intercept_at::<PreExecute>(Order::DECIDING, async move |ctx, call, next| {
        before.before_tool(&ctx, call, next).await
    })?;
    ctx.intercept_at::<PostExecute>(Order::DECIDING, async move |ctx, finished, next| {
        after.after_tool(&ctx, &finished, next).await
    })?;
    ctx.answer::<TurnStopping>(async move |ctx, turn| Ok(hooks.at_the_end(&ctx, &turn).await))?;
    Ok(())
}

struct Hooks {
    all: Vec<Hook>,
    shell: LocalShell,
    env: Rc<Env>,
    asking: Rc<Asking>,
}

/// What all hooks of one event said together.
enum Outcome {
    GoOn,
    /// A person is to be asked.
    Ask(String),
    /// One of them blocks: why.
    Block(String),
}

impl Hooks {
    async fn before_tool(
        &self,
        ctx: &Context,
        call: Rc<Call>,
        next: Next<PreExecute>,
    ) -> Result<Verdict, BoxError> {
        // A call with a problem never runs, so there is nothing to guard.
        if call.problem.is_some() {
            return next.run().await;
        }
        let input = Input::before_tool(&call);
        match self.run(ctx, &input, Some(&call.name), &call.cancel).await {
            Outcome::GoOn => next.run().await,
            Outcome::Ask(why) => {
                let line = first_line(&why);
                ctx.emit(&Notice(format!("a PreToolUse hook wants you to be asked: {line}")));
                call.must_ask.set(true);
                let why = format!("a PreToolUse hook wants it to be asked about: {why}");
                self.asking.wants(&call, why);
                next.run().await
            }
            Outcome::Block(reason) => {
                Ok(Verdict::Deny(format!("a PreToolUse hook refused this call: {reason}")))
            }
        }
    }

    /// Sees what the model will read, and never takes it away.
    async fn after_tool(
        &self,
        ctx: &Context,
        finished: &Finished,
        next: Next<PostExecute>,
    ) -> Result<ToolResult, BoxError> {
        let result = next.run().await?;
        let call = &finished.call;
        if call.problem.is_some() || finished.result.denied {
            return Ok(result);
        }
        let input = Input::after_tool(call, &result);
        let hooks = self.run(ctx, &input, Some(&call.name), &call.cancel);
        // A result that is there is not to be lost because the turn ends while a hook looks at it.
        match call.cancel.run_until_cancelled(hooks).await {
            Some(Outcome::Block(reason)) if !call.cancel.is_cancelled() => {
                let content = format!("{}\n\n[PostToolUse hook] {reason}", result.content);
                Ok(ToolResult { content, ..result })
            }
            Some(_) | None => Ok(result),
        }
    }

    async fn at_the_end(&self, ctx: &Context, turn: &Stopping) -> Option<String> {
        let input = Input::at_the_end(turn);
        match self.run(ctx, &input, None, &turn.cancel).await {
            Outcome::Block(reason) if !turn.cancel.is_cancelled() => {
                let shown = first_line(&reason);
                ctx.emit(&Notice(format!("a Stop hook lets the turn go on: {shown}")));
                Some(format!("[Stop hook] {reason}"))
            }
            Outcome::GoOn | Outcome::Ask(_) | Outcome::Block(_) => None,
        }
    }

    /// Runs the hooks of an event in their order; the first one that blocks ends it.
    async fn run(
        &self,
        ctx: &Context,
        input: &Input<'_>,
        tool: Option<&str>,
        cancel: &CancellationToken,
    ) -> Outcome {
        let mut asks = None;
        for hook in self.all.iter().filter(|it| it.is_about(input.event(), tool)) {
            let said = tokio::select! {
                // First: what is said when this plugin has been told to stop comes too late.
                biased;
                () = ctx.stopping() => Said::Broken("was stopped: the hooks were unloaded".into()),
                said = hook.run(&self.shell, &self.env, input, cancel) => said,
            };
            match said {
                // It was stopped, and what it said about that is not about the call.
                _ if cancel.is_cancelled() => return Outcome::Block("the turn was stopped".into()),
                Said::Nothing => {}
                Said::Ask(why) => drop(asks.get_or_insert(why)),
                Said::Block(reason) => return Outcome::Block(reason),
                Said::Failed(why) => hook.tell(ctx, &why),
                Said::Broken(why) => {
                    hook.tell(ctx, &why);
                    if input.event() == Event::PreToolUse {
                        return Outcome::Block(format!("it {why}"));
                    }
                }
            }
        }
        asks.map_or(Outcome::GoOn, Outcome::Ask)
    }
}
