//! What goes beyond the core, plugin by plugin.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod script;
mod script_config;
mod script_leaks;
mod script_limits;
mod script_load;
mod script_places;
mod script_reload;
mod script_trust;
mod script_typescript;
mod script_values;
