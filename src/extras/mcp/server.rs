//! A server as its tools see it: there or not, and what a call of one of them comes to.
//!
//! Watch for: the tools stay in the table while the server is away. A call says so then, at once.

use std::{path::Path, rc::Rc, time::Duration};

use tokio::{select, sync::watch, time::timeout};

use super::{
    Config,
    connection::{Line, Trouble},
    offer::Offer,
    result,
};
use crate::{
    cordis::{BoxError, Context, Optional},
    harness::{
        cli::text::line,
        env::{Env, mask::Mask},
        persistence::Persistence,
        shell::{ShellError, Vars, child_env},
        tools::{Call, Tool, ToolResult},
    },
};

/// How long a call that lost its server waits to be told why.
const SOON: Duration = Duration::from_secs(1);
/// The longest name of a server, so that those of its tools have room.
const NAME: usize = 24;

/// One server of the list.
pub(super) struct Server {
    /// As it stands in the names of its tools.
    pub(super) name: String,
    pub(super) config: Config,
    env: Rc<Env>,
    saved: Optional<Persistence>,
    /// The connection, or why there is none.
    state: watch::Sender<Result<Line, Rc<str>>>,
}

impl Server {
    pub(super) fn new(
        ctx: &Context,
        config: Config,
        env: Rc<Env>,
        saved: Optional<Persistence>,
    ) -> Result<Self, BoxError> {
        let path = ctx.path();
        let id = path.rsplit(" > ").next().unwrap_or_default();
        let name = match &config.server {
            Some(name) if *name != fitting(name) => {
                return Err(format!(
                    "config.server: `{name}` must be 1 to {NAME} letters, digits, `-` and single `_`"
                )
                .into());
            }
            Some(name) => name.clone(),
            None => fitting(id),
        };
        let state = watch::Sender::new(Err("it has not started yet".into()));
        Ok(Self { name, config, env, saved, state })
    }

    /// The command as the user wrote it.
    pub(super) fn command(&self) -> String {
        let Config { command, args, .. } = &self.config;
        short(&[std::slice::from_ref(command), args].concat().join(" "), 200)
    }

    /// The environment of its process, but for what its own config adds.
    pub(super) async fn vars(&self, ctx: &Context) -> Result<Vars, ShellError> {
        child_env(ctx, &self.env, &self.config.pass_env).await
    }

    /// Hides what plugins said is secret.
    pub(super) fn mask(&self) -> Mask {
        Mask::new(self.env.secrets())
    }

    pub(super) fn is_there(&self, line: Line) {
        drop(self.state.send_replace(Ok(line)));
    }

    pub(super) fn is_away(&self, why: &str) {
        drop(self.state.send_replace(Err(why.into())));
    }

    /// What the model may call.
    pub(super) fn tool(self: &Rc<Self>, offer: &Offer) -> Tool {
        let (server, theirs) = (Rc::clone(self), offer.theirs.clone());
        let run = async move |call: Rc<Call>| Ok(server.call(&theirs, &call).await);
        Tool::new(offer.name.clone(), offer.description.clone(), offer.parameters.clone(), run)
    }

    async fn call(&self, tool: &str, call: &Call) -> ToolResult {
        let state = self.state.borrow().clone();
        let line = match state {
            Ok(line) => line,
            Err(why) => {
                let text = format!("the MCP server `{}` is not there: {why}", self.name);
                return ToolResult::error(text);
            }
        };
        let limit = Duration::from_millis(self.config.call_timeout_ms.get());
        let answer = select! {
            biased;
            () = call.cancel.cancelled() => return ToolResult::aborted(),
            answer = line.call(tool, call.arguments.clone(), limit) => answer,
        };
        let dir = self
            .saved
            .get()
            .zip(call.session.as_ref())
            .map(|(it, session)| it.dir().join(session.id()));
        match answer {
            Ok(result) => result::read(&result, dir.as_deref(), &self.mask()),
            Err(trouble) => self.explain(trouble, dir.as_deref()).await,
        }
    }

    async fn explain(&self, trouble: Trouble, dir: Option<&Path>) -> ToolResult {
        let text = match trouble {
            Trouble::Refused { message, code } => {
                return result::refused(&message, code, dir, &self.mask());
            }
            Trouble::Late(limit) => format!(
                "the MCP server `{}` did not answer within {} ms (callTimeoutMs); the call was taken back",
                self.name,
                limit.as_millis()
            ),
            Trouble::Lost | Trouble::Greeting(_) => {
                let mut state = self.state.subscribe();
                let told = timeout(SOON, state.wait_for(Result::is_err)).await;
                let why = match told {
                    Ok(Ok(state)) => state.as_ref().err().cloned(),
                    _ => None,
                };
                format!(
                    "the MCP server `{}` was lost while the call ran ({}); what the call has done is not known",
                    self.name,
                    why.unwrap_or_else(|| trouble.to_string().into())
                )
            }
        };
        ToolResult::error(text)
    }
}

/// A name of a server that tools can be called after: two underscores would end it.
fn fitting(name: &str) -> String {
    let mut fit = String::new();
    for c in name.chars() {
        let c = if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        if c != '_' || !(fit.is_empty() || fit.ends_with('_')) {
            fit.push(c);
        }
    }
    fit.truncate(NAME);
    let fit = fit.trim_end_matches('_');
    if fit.is_empty() { "server".into() } else { fit.into() }
}

/// A text of others in one line of so many characters.
pub(super) fn short(text: &str, most: usize) -> String {
    let text = line(text.trim());
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::{fitting, short};

    #[test]
    fn a_name_of_a_server_never_ends_before_its_end() {
        let names = ["files", "my.files", "a__b", "_a_", "数据", "a b-c_d", &"x".repeat(70)];

        let fit = names.map(fitting);

        assert_eq!(fit, ["files", "my_files", "a_b", "a", "server", "a_b-c_d", &"x".repeat(24)]);
        assert!(fit.iter().all(|it| fitting(it) == *it));
    }

    #[test]
    fn a_short_text_is_one_harmless_line() {
        assert_eq!(short(" a\nb\x1b[2J \n", 20), "a␊b␛[2J");
        assert_eq!(short("äöüß", 3), "äöü…");
    }
}
