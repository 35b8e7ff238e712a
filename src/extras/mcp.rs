//! MCP: mounts the tools of a server that speaks the Model Context Protocol over its standard streams.
//!
//! Needs `tools` and `env`; uses `persistence` if it is there. Registers `mcp__<server>__<tool>`. Listens to
//! `session/event` and `cordis/hurry`. Raises `cordis/notice`, `cordis/warning` and `shell/env`.
//! Full-size counterpart: the mcp packages, which also speak HTTP and offer prompts and resources.
//! Watch for: a server is somebody else's program, which may stop, fall silent, or talk for ever. Whatever it does ends
//! within a limit and with words: as the error of a start, as the result of a call, or as a line for the user.

mod connection;
mod keeper;
mod offer;
mod pipe;
mod process;
mod raw;
mod result;
mod server;
mod table;
mod wire;

use std::{collections::BTreeMap, num::NonZeroU64, path::PathBuf, rc::Rc};

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::{select, sync::oneshot};
use tokio_util::sync::CancellationToken;

use self::{keeper::Keeper, server::Server, table::Table};
use crate::{
    cordis::{BoxError, Context, Hurry, Optional, Secret, Svc, loader::secret_part},
    harness::{
        env::{Env, mask::can_be_secret},
        persistence::Persistence,
        session::{SessionEvent, event::EventBody},
        tools::Tools,
    },
};

/// Config of `mcp`. A key that is not known is refused: a limit with a typo would be none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// The program of the server: a name, or a path from the folder that this program was started in.
    #[schemars(length(min = 1))]
    command: String,
    /// Its arguments.
    #[serde(default)]
    args: Vec<String>,
    /// Environment variables that it gets, and only it. Keys belong here: `${NAME}` is read, and no message shows a value.
    #[serde(default)]
    env: BTreeMap<String, Secret>,
    /// The folder it works in, instead of the one that this program was started in.
    cwd: Option<PathBuf>,
    /// What stands between `mcp__` and the names of its tools, instead of the id of the entry.
    #[schemars(length(min = 1))]
    server: Option<String>,
    /// Environment variables of this program that it sees although their names look secret.
    #[serde(default)]
    pass_env: Vec<String>,
    /// How long it may take to start and to list its tools, in milliseconds.
    #[serde(default = "default_start_timeout_ms")]
    start_timeout_ms: NonZeroU64,
    /// How long a call may take.
    #[serde(default = "default_call_timeout_ms")]
    call_timeout_ms: NonZeroU64,
}

fn default_start_timeout_ms() -> NonZeroU64 {
    const { NonZeroU64::new(20_000).expect("it is not zero") }
}

fn default_call_timeout_ms() -> NonZeroU64 {
    const { NonZeroU64::new(120_000).expect("it is not zero") }
}

// Omitted: the full version also mounts servers that are reached over HTTP, and their prompts and resources.
/// Starts the server and registers its tools. A server that cannot be started is the failure of the entry.
pub async fn apply(
    ctx: Context,
    config: Config,
    tools: Svc<Tools>,
    env: Svc<Env>,
    saved: Optional<Persistence>,
) -> Result<(), BoxError> {
    for (name, value) in &config.env {
        if secret_part(name).is_some() && can_be_secret(value.expose()) {
            env.hide(value.expose())?;
        }
    }
    let hurry = CancellationToken::new();
    let server = Rc::new(Server::new(&ctx, config, env.shared(), saved)?);
    let mut keeper = Keeper::new(&ctx, &server, hurry.clone());
    ctx.on(move |_, _: &Hurry| hurry.cancel())?;
    let started = select! {
        biased;
        () = ctx.stopping() => None,
        started = keeper.start() => Some(started),
    };
    let Some(Ok(offers)) = started else {
        keeper.end().await;
        return started.map_or(Ok(()), |it| it.map(drop).map_err(BoxError::from));
    };
    let table = Rc::new(Table::new(&ctx, &server, tools));
    keep(&ctx, keeper, &table)?;
    table.settle(offers);
    // What changes while a turn runs is seen by the next one: a turn ends with the tools it began with.
    ctx.on(move |_, it: &SessionEvent| {
        if let EventBody::TurnStart { .. } = it.event.body {
            table.settle_news();
        }
    })?;
    Ok(())
}

/// Looks after the server for as long as the plugin runs. It is not aborted but ends by itself, because ending a process
/// takes steps. All servers are told at once when the program ends, because what they need goes then, so they end together.
fn keep(ctx: &Context, keeper: Keeper, table: &Rc<Table>) -> Result<(), BoxError> {
    let (table, (done, ended)) = (Rc::clone(table), oneshot::channel());
    ctx.spawn("server", async move |_| {
        keeper.keep(&table).await;
        // An error means that nobody waits for it.
        done.send(()).ok();
    })?;
    ctx.effect(|| {
        async move || {
            // An error means that the task has ended, too.
            ended.await.ok();
        }
    })?;
    Ok(())
}
