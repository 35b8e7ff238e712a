//! Part 2: the agent. Every file is one plugin, one service definition, or a named part of a plugin in its folder.

pub mod agent_loop;
pub mod approval;
pub mod cli;
pub mod llm;
pub mod llm_fake;
pub mod llm_openai;
pub mod persistence;
pub mod prompt;
pub mod session;
pub mod shell;
pub mod shell_local;
pub mod tool_bash;
pub mod tools;
