//! What goes beyond the core, plugin by plugin.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod script_config;
