//! How to build an agent out of plugins, in one afternoon of reading.
//!
//! An agent harness is the program around a language model: it keeps the conversation, decides what the model sees, runs
//! the tools that it asks for and talks with the user. Here each of these is a plugin, the loop itself included. A plugin
//! provides services, says which ones it needs, and everything that it registers is undone when it is unloaded. So the
//! order in which plugins start follows from what they need, and changing one while the program runs is unloading and
//! loading it. `cordis.yml` lists the plugins, and is the application.
//!
//! Read in this order:
//!
//! 1. `main.rs`, [`run`](mod@run), `cordis.yml`: from the command line to a list of plugins.
//! 2. [`cordis`], the kernel: what a plugin is, how it starts and stops, how plugins find and hear each other.
//! 3. [`harness`], the agent: the log, the prompt, the model, tools, the loop, the shell, approval, persistence, the
//!    command line.
//! 4. [`extras`]: what goes beyond.
//!
//! Each part has the invariants and the order of its files at the top. `// Omitted:` and `// Differs:` stand where
//! Cordis and DeepSeek Harness, the full-size projects, do more or do it otherwise.

pub mod cordis;
pub mod extras;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod harness;
pub mod run;

pub use run::run;
