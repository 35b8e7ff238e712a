//! Bash tool: lets the model run commands in the shell.
//!
//! Needs `tools` and `shell`; uses `persistence` if it is there. Registers the tool `bash`.
//! Full-size counterpart: the tool-bash package.
//! Watch for: the text of a result ends with how the command ended, always; a command that fails is no failed call.

mod text;

use std::{path::PathBuf, rc::Rc};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use self::text::describe;
use crate::{
    cordis::{BoxError, Context, Optional, Svc},
    harness::{
        persistence::Persistence,
        shell::{Shell, ShellRequest},
        tools::{Call, Tool, Tools},
    },
};

/// Config of `tool-bash`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// What the model is told about the tool.
    #[serde(default = "default_description")]
    description: String,
}

fn default_description() -> String {
    "Run a command with bash. Each call starts a new shell in the project folder, without input or a terminal. \
     The result holds stdout, stderr and the exit code. Start what should go on running with `&`."
        .into()
}

// Omitted: the full version adds a section to the prompt that tells the model to look at the exit marker, and runs
// commands in the background that it can ask about later. The description says enough, and `&` does the rest.
/// Registers `bash`.
pub async fn apply(
    _ctx: Context,
    config: Config,
    tools: Svc<Tools>,
    shell: Svc<dyn Shell>,
    saved: Optional<Persistence>,
) -> Result<(), BoxError> {
    let asked = shell.clone();
    let check = move |arguments: &Map<String, Value>| can_run(&asked, arguments);
    let run = async move |arguments: Arguments, call: Rc<Call>| {
        // Long output belongs to the session, so it is kept beside the log, if there is one.
        let spill_dir =
            saved.get().zip(call.session.as_ref()).map(|(saved, it)| saved.dir().join(it.id()));
        let spec = shell.resolve(&ShellRequest { spill_dir, ..arguments.into() })?;
        let result = shell.run(spec, call.cancel.clone()).await?;
        Ok::<_, BoxError>(describe(&result))
    };
    tools.register(Tool::typed("bash", config.description, run).checked(check))?;
    Ok(())
}

/// What the model fills in.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    /// The command.
    command: String,
    /// Milliseconds after which it is stopped.
    timeout_ms: Option<u64>,
    /// Folder to run it in, instead of the project folder.
    workdir: Option<PathBuf>,
}

impl From<Arguments> for ShellRequest {
    fn from(arguments: Arguments) -> Self {
        let Arguments { command, timeout_ms, workdir: cwd } = arguments;
        Self { command, cwd, timeout_ms, spill_dir: None }
    }
}

/// What the shell refuses is refused before the user is asked about it.
fn can_run(shell: &Svc<dyn Shell>, arguments: &Map<String, Value>) -> Result<(), String> {
    let arguments: Arguments =
        serde_json::from_value(Value::Object(arguments.clone())).map_err(|it| it.to_string())?;
    shell.resolve(&arguments.into()).map(drop).map_err(|it| it.to_string())
}
