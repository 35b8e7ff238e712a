//! Part of `script`: what a script prints goes to the diagnostics, which `--verbose` shows.

/// One line, at a level of the console.
#[expect(clippy::needless_pass_by_value, reason = "so the engine hands them over")]
pub(super) fn log(level: String, text: String) {
    match level.as_str() {
        "error" => tracing::error!(target: "nano_cordis::script", "{text}"),
        "warn" => tracing::warn!(target: "nano_cordis::script", "{text}"),
        "debug" => tracing::debug!(target: "nano_cordis::script", "{text}"),
        _ => tracing::info!(target: "nano_cordis::script", "{text}"),
    }
}
