//! `--init`: a `cordis.yml` to begin with, and beside it the schema that editors read.
//!
//! Part of `run`.
//! Watch for: nothing is asked and nothing that is there is replaced.

use std::{fs::OpenOptions, io::Write, path::Path};

use super::{list::BUILT_IN, schema};
use crate::{cordis::Builtins, harness::cli::arguments::Beginning};

const FILE: &str = "cordis.yml";
const SCHEMA: &str = "cordis.schema.json";
/// How editors are told where the schema is.
const POINTER: &str = "# yaml-language-server: $schema=./cordis.schema.json";

/// Where the part about the model begins in the list that is built in, and where it ends.
const MODEL: (&str, &str) = ("# The model. This one", "  name: llm-fake\n");

/// Writes both into a folder. Gives what the user is told, or why nothing was written.
pub(super) fn write(folder: &Path, with: Beginning, builtins: &Builtins) -> Result<String, String> {
    write_new(&folder.join(FILE), &text(with)).map_err(|err| match err.kind() {
        std::io::ErrorKind::AlreadyExists => {
            format!("{FILE} is there already; nothing was written")
        }
        _ => format!("cannot write {FILE}: {err}"),
    })?;
    let written = match write_new(&folder.join(SCHEMA), &schema::text(builtins)) {
        Ok(()) => format!("wrote {FILE} and {SCHEMA}"),
        Err(err) if err.kind() == std::io::ErrorKind::AlreadyExists => {
            format!("wrote {FILE}; {SCHEMA} was there already and stays as it is")
        }
        Err(err) => format!("wrote {FILE}; cannot write {SCHEMA}: {err}"),
    };
    Ok(format!("{written}; {}", next(with)))
}

fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}

/// The list that is built in, with the model that is wanted.
fn text(with: Beginning) -> String {
    let list = match model(with) {
        None => BUILT_IN.to_owned(),
        Some(entry) => {
            let (before, rest) = BUILT_IN.split_once(MODEL.0).expect("the list says so");
            let (_, after) = rest.split_once(MODEL.1).expect("the list says so");
            format!("{before}{entry}{after}")
        }
    };
    format!("{POINTER}\n\n{list}")
}

/// What is to be done before the first turn.
fn next(with: Beginning) -> String {
    match key(with) {
        Some(key) => format!("next: export {key}=… (your key), then nano-cordis"),
        None if with == Beginning::Ollama => "next: ollama pull qwen3, then nano-cordis".into(),
        None => "next: nano-cordis".into(),
    }
}

/// The variable that holds the key of a service.
fn key(with: Beginning) -> Option<&'static str> {
    match with {
        Beginning::Deepseek => Some("DEEPSEEK_API_KEY"),
        Beginning::Openai => Some("OPENAI_API_KEY"),
        Beginning::Openrouter => Some("OPENROUTER_API_KEY"),
        Beginning::Fake | Beginning::Ollama => None,
    }
}

fn model(with: Beginning) -> Option<String> {
    let (address, model) = match with {
        Beginning::Fake => return None,
        Beginning::Deepseek => ("https://api.deepseek.com/v1", "deepseek-v4-flash"),
        Beginning::Openai => ("https://api.openai.com/v1", "gpt-5-mini"),
        Beginning::Ollama => ("http://localhost:11434/v1", "qwen3"),
        Beginning::Openrouter => ("https://openrouter.ai/api/v1", "openrouter/auto"),
    };
    let key = match key(with) {
        Some(key) => format!("    apiKeyEnv: {key}\n"),
        None => "    # A server on this machine needs no key, so there is no `apiKeyEnv`.\n".into(),
    };
    Some(format!(
        "# The model: any server that speaks the chat-completions protocol. The key stands in the environment variable that is \
         named\n# here, never in a file. `name: llm-fake`, without a config, answers by script and needs none.\n\
         - id: llm\n  name: llm-openai\n  config:\n    baseUrl: {address}\n{key}    model: {model}\n"
    ))
}
