//! What goes beyond: one module per source file.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod hooks;
mod mcp;
