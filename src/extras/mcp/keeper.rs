//! Keeps a server running: starts it, notices its end, starts it again after a pause, and ends it with the plugin.
//!
//! Watch for: pauses grow up to a minute and shrink again only when a server has held. So one that dies over and over costs
//! little, and one that was updated under us is back soon. Each loss is one line, and so is each return.

use std::{
    convert::Infallible,
    rc::Rc,
    time::{Duration, SystemTime},
};

use thiserror::Error;
use tokio::{
    select,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    connection::{Connection, Trouble},
    offer::Offers,
    pipe::Flow,
    process::Process,
    server::{Server, short},
    table::Table,
};
use crate::{
    cordis::{Context, Notice, Warning},
    harness::{shell::ShellError, shell_local::family::Mark},
};

/// The pause before the first try to start a server again,
const FIRST: Duration = Duration::from_millis(500);
/// and the longest one.
const LONGEST: Duration = Duration::from_mins(1);
/// A server that ran for so long counts as one that can.
const HELD: Duration = Duration::from_mins(1);
/// How long the two signs of an end may lie apart: the process has ended, its output has.
const APART: Duration = Duration::from_millis(200);
/// Changes of the list of tools that come in a row are one.
const ROW: Duration = Duration::from_millis(50);
/// A server that goes on and on about changes is listened to less and less often, until it has been still for so many times
/// the last pause.
const SELDOM: u32 = 10;
/// How much of what a server said a message repeats, in characters.
const SAID: usize = 300;

/// Why a server did not start.
#[derive(Debug, Error)]
#[error("the MCP server `{command}` {problem}{said}")]
pub(super) struct StartError {
    command: String,
    problem: String,
    said: String,
}

/// Whoever owns the process.
pub(super) struct Keeper {
    ctx: Context,
    server: Rc<Server>,
    hurry: CancellationToken,
    family: String,
    starts: u64,
    process: Option<Process>,
    connection: Option<Connection>,
}

impl Keeper {
    pub(super) fn new(ctx: &Context, server: &Rc<Server>, hurry: CancellationToken) -> Self {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        Self {
            ctx: ctx.clone(),
            server: Rc::clone(server),
            hurry,
            family: format!("mcp-{}-{now:x}", std::process::id()),
            starts: 0,
            process: None,
            connection: None,
        }
    }

    /// Starts it, and gives what it offers. After a failure there may be a process to end.
    pub(super) async fn start(&mut self) -> Result<Offers, StartError> {
        let flow = Flow::default();
        let limit = Duration::from_millis(self.server.config.start_timeout_ms.get());
        let problem = match timeout(limit, self.greet(&flow)).await {
            Ok(Ok(offers)) => return Ok(offers),
            Ok(Err(Unstarted::Here(problem))) => problem,
            Ok(Err(Unstarted::There(trouble))) => self.end_of_start(&flow, &trouble).await,
            Err(_) => format!("did not answer within {} ms (startTimeoutMs)", limit.as_millis()),
        };
        let stderr = match &self.process {
            Some(process) => said("stderr", &process.complaints().await),
            None => String::new(),
        };
        let said = stderr + &said("stdout", &self.server.mask().text(&flow.heard()));
        Err(StartError { command: self.server.command(), problem, said })
    }

    async fn greet(&mut self, flow: &Flow) -> Result<Offers, Unstarted> {
        let vars = self.server.vars(&self.ctx).await?;
        self.starts += 1;
        let mark = Mark::new(&self.family, self.starts);
        let started =
            Process::start(&self.ctx, &self.server.config, vars, mark, self.server.mask());
        let (process, stdin, stdout) =
            started.map_err(|err| Unstarted::Here(format!("cannot be started: {err}")))?;
        self.process = Some(process);
        let connection = Connection::open(stdin, stdout, flow.clone()).await?;
        let connection = self.connection.insert(connection);
        let offers = connection.list(&self.server.name).await?;
        self.server.is_there(connection.line());
        Ok(offers)
    }

    /// A start that broke off: how the process ended says more than that its output did.
    async fn end_of_start(&mut self, flow: &Flow, trouble: &Trouble) -> String {
        let Some(process) = &mut self.process else { return trouble.to_string() };
        let is_lost = matches!(trouble, Trouble::Lost);
        match timeout(APART, process.exit()).await {
            _ if flow.broken().is_some() => broken_off(&flow.broken().unwrap_or_default()),
            Ok(how) if is_lost => broken_off(&how),
            _ if is_lost => broken_off("it closed its output"),
            _ => format!("could not be greeted: {}", short(&trouble.to_string(), SAID)),
        }
    }

    /// Looks after it until the plugin is to stop; then ends it.
    pub(super) async fn keep(mut self, table: &Table) {
        let stopping = self.ctx.stopping();
        select! {
            biased;
            () = stopping => {}
            // Large, and there is no hurry.
            never = Box::pin(self.go_on(table)) => match never {},
        }
        self.server.is_away("it was unloaded");
        self.end().await;
    }

    async fn go_on(&mut self, table: &Table) -> Infallible {
        let mut pause = FIRST;
        loop {
            let began = Instant::now();
            let why = self.lost(table).await;
            self.server.is_away(&format!("{why}; it is being started again"));
            let name = self.server.name.clone();
            self.ctx.emit(&Warning(format!("mcp `{name}`: {why}; starting it again")));
            self.end().await;
            if began.elapsed() > HELD {
                pause = FIRST;
            }
            table.later(self.again(&mut pause).await);
            self.ctx.emit(&Notice(format!("mcp `{name}`: the server is back")));
        }
    }

    /// Tries until it runs.
    async fn again(&mut self, pause: &mut Duration) -> Offers {
        loop {
            sleep(*pause).await;
            *pause = (*pause * 2).min(LONGEST);
            match self.start().await {
                Ok(offers) => return offers,
                Err(err) => {
                    tracing::debug!("{err}; next try in {} s", pause.as_secs_f32());
                    self.server.is_away(&format!("{err}; it is tried again"));
                    self.end().await;
                }
            }
        }
    }

    /// Resolves when there is no server any more, and says why. Until then it listens for changes of its list.
    async fn lost(&mut self, table: &Table) -> String {
        let (Some(process), Some(connection)) = (&mut self.process, &self.connection) else {
            return "it has not started".into();
        };
        // When the list is to be read again, what the next pause before that is, and when it was read last.
        let (mut due, mut pause, mut read) = (None, ROW, Instant::now());
        loop {
            let news = async {
                match due {
                    Some(at) => sleep_until(at).await,
                    None => connection.changed().await,
                }
            };
            select! {
                biased;
                () = connection.over() => {
                    if let Some(broken) = connection.broken() {
                        break broken;
                    }
                    let how = timeout(APART, process.exit()).await;
                    let how = how.unwrap_or("it closed its output".into());
                    break with_complaints(&how, process).await;
                }
                how = process.exit() => {
                    // What it said last may still be on its way.
                    timeout(APART, connection.over()).await.ok();
                    break with_complaints(&how, process).await;
                }
                () = news => {
                    if due.is_none() {
                        pause = if read.elapsed() > pause * SELDOM { ROW } else { pause };
                        due = Some(Instant::now() + pause);
                        continue;
                    }
                    match connection.relist(&self.server.name).await {
                        Ok(offers) => table.later(offers),
                        Err(err) => tracing::warn!("the list of tools was not read: {err}"),
                    }
                    (due, pause, read) = (None, (pause * 2).min(LONGEST), Instant::now());
                }
            }
        }
    }

    /// Ends the process, if there is one: first its input, then what is left of it.
    pub(super) async fn end(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close().await;
        }
        if let Some(process) = self.process.take() {
            process.end(&self.hurry).await;
        }
    }
}

/// Why there is no greeting.
enum Unstarted {
    /// It never came to run.
    Here(String),
    /// It ran.
    There(Trouble),
}

impl From<Trouble> for Unstarted {
    fn from(trouble: Trouble) -> Self {
        Unstarted::There(trouble)
    }
}

impl From<ShellError> for Unstarted {
    fn from(err: ShellError) -> Self {
        Unstarted::Here(format!("cannot be started: {err}"))
    }
}

fn broken_off(why: &str) -> String {
    format!("did not start: {why}")
}

fn said(stream: &str, text: &str) -> String {
    // What was said last says most.
    let skipped = text.trim().chars().count().saturating_sub(SAID);
    let text: String = text.trim().chars().skip(skipped).collect();
    if text.is_empty() { String::new() } else { format!("; {stream}: {}", short(&text, SAID)) }
}

async fn with_complaints(how: &str, process: &Process) -> String {
    format!("{how}{}", said("stderr", &process.complaints().await))
}
