//! The commands that the command line itself brings, and what is done with a line.
//!
//! Part of `cli`.
//! Watch for: nothing that a command says is part of the conversation. The model does not see it, and it is in no log.

use std::{rc::Rc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{
    Cli,
    arguments::OutputFormat,
    commands::{Command, Invocation, Typed},
    listing,
    text::{harmless, line},
};
use crate::{
    cordis::{BoxError, Context, Loader},
    harness::{
        agent_loop::{AgentRequest, RequestConfig},
        llm::Llm,
        session::Session,
        tools::Tools,
    },
};

const HINT: &str = "A line that begins with a blank is sent to the model, whatever follows. `\\` at the end of a line, or \
                    Alt-Enter, goes on with it; Tab completes commands and paths; Ctrl-R searches what was typed before.";

/// How much is shown of what a tool says about itself, in characters.
const SHOWN: usize = 90;

impl Cli {
    /// Does what a line says: a command, or a turn.
    pub(super) async fn entered(&self, text: &str) {
        match self.console.typed(text) {
            Typed::Turn => self.console.turn_ended(self.turn(&self.here(), text).await),
            Typed::Command(command, arguments) => self.command(&command, arguments).await,
            Typed::Unknown(name) => self.console.warn(&format!(
                "there is no command /{name}; /help lists them, and a blank before the line makes it text for the model"
            )),
        }
    }

    async fn command(&self, command: &Command, arguments: String) {
        let cancel = CancellationToken::new();
        self.turn.send_replace(Some(cancel.clone()));
        self.wait_for(&command.name());
        let session = self.here();
        let done = command.run(Invocation { arguments, session, cancel: cancel.clone() });
        let told = tokio::select! {
            told = done => told,
            never = self.tell_waiting() => match never {},
            () = late(&cancel) => Err("cancelled".into()),
        };
        self.turn.send_replace(None);
        match told {
            Ok(text) => self.tell(&text),
            Err(err) => self.console.warn(&err.to_string()),
        }
    }

    /// Where stdout is for something else, what a command says is news.
    fn tell(&self, text: &str) {
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        match self.console.format() {
            OutputFormat::Text if !self.console.arguments().quiet => {
                self.console.say(&format!("{}\n", harmless(text)));
            }
            _ => self.console.warn(text),
        }
    }

    /// The conversation that lines belong to.
    fn here(&self) -> Rc<Session> {
        self.session.borrow().clone().expect("lines are read only once a session is led")
    }

    /// Adds the commands to those of the console.
    pub(super) fn add_commands(self: &Rc<Self>, ctx: &Context) -> Result<(), BoxError> {
        let add = |command| self.console.add_command(command).map(drop);
        let cli = self.clone();
        add(Command::new("help", "this list", async move |_| {
            Ok(format!("{}{HINT}", cli.console.commands.help()))
        }))?;
        let here = ctx.clone();
        add(Command::new("tools", "what the model can call", async move |_| Ok(tools(&here))))?;
        let here = ctx.clone();
        add(Command::new(
            "plugins",
            "each entry, its state, what it waits for and what it has registered",
            async move |_| Ok(plugins(&here)),
        ))?;
        let cli = self.clone();
        add(Command::new("sessions", "the saved sessions of this folder", async move |_| {
            Ok(listing::table(&cli.saved()?.list()?))
        }))?;
        let (cli, here) = (self.clone(), ctx.clone());
        add(Command::new("model", "<name>: the model of this conversation from now on", {
            async move |it: Invocation| cli.model(&here, &it)
        }))?;
        let (cli, here) = (self.clone(), ctx.clone());
        add(Command::new("clear", "a new session, which remembers nothing of this one", {
            async move |_| cli.clone().clear(&here)
        }))?;
        let cli = self.clone();
        add(Command::new("exit", "the end, as Ctrl-D", async move |_| {
            cli.console.finish(cli.console.conversation_status());
            Ok(String::new())
        }))?;
        Ok(())
    }

    fn clear(self: Rc<Self>, ctx: &Context) -> Result<String, BoxError> {
        let session = self.sessions.create()?;
        self.lead_in(ctx, &session)?;
        self.greet(&session);
        Ok(String::new())
    }

    /// Says which model is asked, or has another one asked.
    fn model(&self, ctx: &Context, it: &Invocation) -> Result<String, BoxError> {
        let configured = ctx.get::<dyn Llm>().map(|it| it.model());
        let configured = configured.ok_or("no entry provides `llm`")?;
        let name = it.arguments.as_str();
        if name.contains(char::is_whitespace) {
            return Err("the name of a model has no blanks in it".into());
        }
        if name.is_empty() {
            let model = self.model.borrow().clone().unwrap_or(configured);
            return Ok(format!("the model is {model}; /model <name> takes another one"));
        }
        if self.model.replace(Some(name.to_owned())).is_none() {
            let model = self.model.clone();
            ctx.intercept::<AgentRequest>(async move |_, _, next| {
                let config = next.run().await?;
                let model = model.borrow().clone().unwrap_or(config.model);
                Ok(RequestConfig { model, ..config })
            })?;
        }
        Ok(format!("the model is {name} from now on, until this program ends or `cli` is reloaded"))
    }
}

/// A command that does not end when it is told to is given up.
async fn late(cancel: &CancellationToken) {
    cancel.cancelled().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
}

fn tools(ctx: &Context) -> String {
    let schemas = ctx.get::<Tools>().map(|it| it.schemas()).unwrap_or_default();
    if schemas.is_empty() {
        return "there are no tools".into();
    }
    let width = schemas.iter().map(|it| it.function.name.len()).max().unwrap_or_default();
    let row = |it: &crate::harness::session::message::ToolSchema| {
        let what = line(it.function.description.lines().next().unwrap_or_default());
        let cut = what.char_indices().nth(SHOWN);
        let what = cut.map_or(what.clone(), |(at, _)| format!("{}…", &what[..at]));
        format!("{:width$}  {what}\n", it.function.name)
    };
    schemas.iter().map(row).collect()
}

fn plugins(ctx: &Context) -> String {
    let Some(loader) = ctx.get::<Loader>() else { return "there is no list of plugins".into() };
    let owned = ctx.get::<Tools>().map(|it| it.owners()).unwrap_or_default();
    listing::registered(&loader.entries(), &owned)
}
