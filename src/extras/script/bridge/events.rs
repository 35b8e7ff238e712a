//! Part of `script`: the events of the agent, for listeners in scripts.
//!
//! | event | kind | a listener gets | and returns |
//! |---|---|---|---|
//! | `session/event` | told | session, event as in the log | |
//! | `assistant/delta` | told | session, delta | |
//! | `tools/changed` | told | | |
//! | `cordis/notice`, `cordis/warning` | told | text; scripts may raise them | |
//! | `loader/applied` | told | `{ file, changed, failed }` | |
//! | `tools/pre-execute` | wrapped | call, next | `{ kind: 'allow' }` or `{ kind: 'deny', reason }` |
//! | `tools/post-execute` | wrapped | call, result, next | `{ content, isError }` |
//! | `agent/request` | wrapped | `{ session, turn, step, config }`, next | `{ model, system }` |
//! | `shell/env` | wrapped | names of variables, next | the names to keep |
//! | `approval/request` | asked | call | only `true` is a yes |
//! | `agent/turn-stopping` | asked | `{ session, turn, step, text, wasContinued }` | a text for the model |
//!
//! Watch for: nobody waits for a listener longer than for the turn or for the plugin that it belongs to.

use std::rc::Rc;

use serde_json::{Value, json};

use super::{
    Bridge, Done,
    callback::Callback,
    codec::{Asked, Told, Wrapped},
    shown, text,
};
use crate::{
    cordis::{Applied, BoxError, Context, Notice, Serial, Undo, Warning},
    harness::{
        agent_loop::{AgentRequest, AssistantDelta, TurnStopping},
        approval::ApprovalRequest,
        session::SessionEvent,
        shell::{ShellEnv, Vars},
        tools::{PostExecute, PreExecute, ToolsChanged},
    },
};

/// Events that the agent raises for scripts, and how.
const NATIVE: [(&str, &str); 13] = [
    ("session/event", "emit"),
    ("assistant/delta", "emit"),
    ("tools/changed", "emit"),
    ("cordis/notice", "emit"),
    ("cordis/warning", "emit"),
    ("loader/applied", "emit"),
    ("tools/pre-execute", "waterfall"),
    ("tools/post-execute", "waterfall"),
    ("agent/request", "waterfall"),
    ("shell/env", "waterfall"),
    ("approval/request", "serial"),
    ("agent/turn-stopping", "serial"),
    ("loader/before-apply", "parallel"),
];
/// Those among the agent's own that are not for scripts: they would let one hold up, or stand in for, the user.
const CLOSED: [&str; 5] =
    ["trust/confirm", "env/check", "loader/before-apply", "cordis/hurry", "llm-fake/request"];

fn is_closed(event: &str) -> bool {
    CLOSED.contains(&event) || event.starts_with("console/")
}

type Listening = Result<Undo, String>;

impl Bridge {
    /// Listens to an event of the agent; none if it is not one.
    pub(super) fn listen_native(
        self: &Rc<Self>,
        ctx: &Context,
        event: &str,
        order: i32,
        to: Rc<Callback>,
    ) -> Option<Listening> {
        Some(match event {
            _ if is_closed(event) => Err(format!("`{event}` is not for scripts")),
            "session/event" => self.told::<SessionEvent>(ctx, order, to),
            "assistant/delta" => self.told::<AssistantDelta>(ctx, order, to),
            "tools/changed" => self.told::<ToolsChanged>(ctx, order, to),
            "cordis/notice" => self.told::<Notice>(ctx, order, to),
            "cordis/warning" => self.told::<Warning>(ctx, order, to),
            "loader/applied" => self.told::<Applied>(ctx, order, to),
            "tools/pre-execute" => self.wrapped::<PreExecute>(ctx, order, to),
            "tools/post-execute" => self.wrapped::<PostExecute>(ctx, order, to),
            "agent/request" => self.wrapped::<AgentRequest>(ctx, order, to),
            "shell/env" => self.environment(ctx, order, to),
            "approval/request" => self.asked::<ApprovalRequest>(ctx, order, to),
            "agent/turn-stopping" => self.asked::<TurnStopping>(ctx, order, to),
            _ => return None,
        })
    }

    /// Whether this is an event of the agent that a script may raise; the error says that it may not.
    pub(super) fn may_raise(event: &str, mode: &str) -> Result<bool, String> {
        if is_closed(event) {
            return Err(format!("`{event}` is not for scripts"));
        }
        let Some((_, own)) = NATIVE.iter().find(|it| it.0 == event) else { return Ok(false) };
        match event {
            _ if *own != mode => {
                Err(format!("`{event}` is raised by `{own}`, so `{mode}` cannot be used for it"))
            }
            "cordis/notice" | "cordis/warning" => Ok(true),
            _ => Err(format!("`{event}` is raised by the agent alone")),
        }
    }

    pub(super) fn raise(&self, ctx: &Value, event: &Value, values: &Value) -> Done {
        let (ctx, event) = (self.context(ctx)?, text("the name of an event", event)?);
        let line = values[0].as_str().map(|it| self.masked(it));
        let line = line.ok_or_else(|| format!("`{event}` wants a text"))?;
        match event {
            "cordis/notice" => ctx.emit(&Notice(line)),
            _ => ctx.emit(&Warning(line)),
        }
        Ok(Value::Null)
    }

    // Differs: in the original a listener has run when `emit` returns. Here it gets the events in their order, but a
    // moment later, so that no script holds up the agent.
    fn told<E: Told>(self: &Rc<Self>, ctx: &Context, order: i32, to: Rc<Callback>) -> Listening {
        let bridge = self.clone();
        let listener = move |ctx: &Context, event: &E| {
            if !bridge.can_be_told()? {
                return Ok(());
            }
            let answer = to.call(vec![event.args().into(), Value::Null]);
            let (ctx, to, told) = (ctx.clone(), to.clone(), bridge.pace.tell());
            bridge.go_on(async move {
                if let Err(failure) = answer.await {
                    ctx.listener_failed(E::NAME, failure.into());
                }
                drop((to, told));
            });
            Ok::<_, BoxError>(())
        };
        ctx.on_at(order, listener).map_err(shown)
    }

    fn wrapped<E: Wrapped>(
        self: &Rc<Self>,
        ctx: &Context,
        order: i32,
        to: Rc<Callback>,
    ) -> Listening {
        let bridge = self.clone();
        let listener = async move |ctx: Context, input: Rc<_>, next: crate::cordis::Next<E>| {
            let token = bridge.next(move || {
                let going = next.run();
                Box::pin(async move { going.await.map(|it| E::said(&it)).map_err(shown) })
            });
            let input: Rc<<E as Asked>::Input> = input;
            let (signal, cancel) = (token.number, E::cancel(&input));
            let work = to.call(vec![E::args(&input, signal).into(), signal.into()]);
            let said = answered(&ctx, bridge.with_signal(signal, &cancel, work)).await?;
            E::read(&said)
        };
        ctx.intercept_at::<E>(order, listener).map_err(shown)
    }

    fn asked<E: Serial + Asked<Input = <E as Serial>::Input, Output = <E as Serial>::Answer>>(
        self: &Rc<Self>,
        ctx: &Context,
        order: i32,
        to: Rc<Callback>,
    ) -> Listening {
        let bridge = self.clone();
        let listener = async move |ctx: Context, input: Rc<<E as Serial>::Input>| {
            let (token, cancel) = (bridge.token(), E::cancel(&input));
            let work = to.call(vec![E::args(&input, token.number).into(), Value::Null]);
            let said = answered(&ctx, bridge.with_signal(token.number, &cancel, work)).await?;
            E::read(&said)
        };
        ctx.answer_at::<E>(order, listener).map_err(shown)
    }

    // Differs: `next` has run before the listener is asked, and it sees names without values: what other plugins take
    // out stays out, and nothing can be put in.
    fn environment(self: &Rc<Self>, ctx: &Context, order: i32, to: Rc<Callback>) -> Listening {
        let bridge = self.clone();
        let listener =
            async move |ctx: Context, _: Rc<Vars>, next: crate::cordis::Next<ShellEnv>| {
                let vars = next.run().await?;
                let names: Value = vars.keys().map(|it| json!(it.to_string_lossy())).collect();
                let given = names.clone();
                let token = bridge.next(move || {
                    let given = given.clone();
                    Box::pin(async move { Ok(given) })
                });
                let work = to.call(vec![json!([names]), token.number.into()]);
                let kept = answered(&ctx, work).await?;
                let kept = kept.as_array().ok_or("`shell/env` wants a list of names")?.clone();
                let stays = |name: &std::ffi::OsString| {
                    kept.iter().any(|it| it.as_str() == Some(&*name.to_string_lossy()))
                };
                Ok(vars.into_iter().filter(|(name, _)| stays(name)).collect())
            };
        ctx.intercept_at::<ShellEnv>(order, listener).map_err(shown)
    }
}

/// What a listener says, unless its plugin unloads before it does.
async fn answered(
    ctx: &Context,
    work: impl Future<Output = crate::extras::script::engine::Outcome>,
) -> Result<Value, BoxError> {
    tokio::select! {
        biased;
        // First: what is said when the plugin has been told to stop is too late.
        () = ctx.stopping() => Err("a plugin was unloaded before it answered".into()),
        said = work => said.map_err(Into::into),
    }
}
