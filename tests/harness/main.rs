//! The agent, plugin by plugin: one module per source file.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agent_loop;
mod approval;
mod configs;
mod env;
mod llm;
mod llm_fake;
mod llm_openai;
mod persistence;
mod prompt;
mod server;
mod session;
mod shell;
mod support;
mod tool_bash;
mod tools;
mod trust;
