//! What can be chosen on the command line by a word.
//!
//! Part of `cli`.

use clap::ValueEnum;

/// The model of a configuration to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Beginning {
    /// The one that answers by script.
    Fake,
    /// The service of this name.
    Deepseek,
    /// The service of this name.
    Openai,
    /// A server on this machine.
    Ollama,
    /// The service of this name.
    Openrouter,
}

/// What stdout is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// A transcript.
    #[default]
    Text,
    /// The result of each turn.
    Json,
    /// What is logged, as it is logged, and the result of each turn.
    StreamJson,
}
