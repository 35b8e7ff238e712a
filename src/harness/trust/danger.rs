//! Part of `trust`: what in a change would give the agent more power than it has, in the user's words.
//!
//! Watch for: only what is listed here is dangerous. A change of the persona, of a limit or of the model is not: it does
//! not decide what runs, who is asked, or where the key goes; unless it takes a variable out of the environment.

use serde_json::Value;

use crate::cordis::{EntryChange, is_script, loader::Entry, plain_name};

/// Plugins that start programs of the user's choice.
const STARTERS: [&str; 2] = ["mcp", "hooks"];
/// Settings that say where requests and keys go, wherever in a config they stand.
const PATHS_OF_KEYS: [&str; 3] = ["baseUrl", "apiKeyEnv", "passEnv"];

/// Each thing that is dangerous about these changes.
pub(super) fn dangers(changes: &[EntryChange]) -> Vec<String> {
    changes.iter().flat_map(of_entry).collect()
}

fn of_entry(change: &EntryChange) -> Vec<String> {
    let (before, after) = (running(change.before.as_ref()), running(change.after.as_ref()));
    let id = change.id();
    let starts = [before, after].into_iter().flatten().any(|it| starts_programs(&it.name));
    match (before, after) {
        // A built-in cannot have changed: it is tried again.
        _ if change.before == change.after && !starts => Vec::new(),
        (Some(_), None) if change.guard => vec![format!("`{id}` would guard nothing")],
        (Some(_), None) if starts => vec![format!("`{id}` would no longer run")],
        (_, Some(after)) if starts => vec![format!("`{id}` would run {}", program(after))],
        (_, Some(after)) if change.guard => vec![guard(id, before, after)],
        _ => keys(id, before, after).into_iter().chain(variables(id, before, after)).collect(),
    }
}

/// An entry that is left out is none.
fn running(entry: Option<&Entry>) -> Option<&Entry> {
    entry.filter(|it| !it.disabled)
}

fn starts_programs(name: &str) -> bool {
    is_script(name) || STARTERS.contains(&plain_name(name))
}

/// What an entry runs, in words: its name, and the command line of a server with the variables that it gets and the folder.
/// Values of variables may be secret, and are not shown.
pub(crate) fn program(entry: &Entry) -> String {
    let Entry { name, config, .. } = entry;
    let Some(command) = config["command"].as_str() else {
        let commands: Vec<_> = commands(config).into_iter().map(word).collect();
        let shown = (!commands.is_empty()).then(|| format!(" ({})", commands.join(", ")));
        return format!("{name}{}", shown.unwrap_or_default());
    };
    let variables = config["env"].as_object().into_iter().flat_map(|it| it.keys());
    let variables = variables.map(|it| format!("{}=…", word(it)));
    let arguments = config["args"].as_array().into_iter().flatten();
    let arguments = arguments.map(|it| it.as_str().map_or_else(|| it.to_string(), word));
    let line: Vec<_> = variables.chain([word(command)]).chain(arguments).collect();
    let folder = config["cwd"].as_str().map(|it| format!(" in {}", word(it))).unwrap_or_default();
    format!("{name} ({}{folder})", line.join(" "))
}

/// Commands that stand deeper in a config, as those of hooks do.
fn commands(config: &Value) -> Vec<&str> {
    match config {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| match value.as_str() {
                Some(text) if key == "command" => vec![text],
                _ => commands(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(commands).collect(),
        _ => Vec::new(),
    }
}

/// One word of a command line: what could pass for several, or for something else, is quoted.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,~".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    Value::from(text).to_string()
}

fn guard(id: &str, before: Option<&Entry>, after: &Entry) -> String {
    let tools = &after.config["tools"];
    if tools.as_array().is_some_and(Vec::is_empty) {
        return format!("`{id}` would guard nothing");
    }
    match before {
        Some(before) => format!("`{id}` would be {} instead of {}", shown(after), shown(before)),
        None => format!("`{id}` would be added as {}", shown(after)),
    }
}

fn shown(entry: &Entry) -> String {
    let Entry { name, config, .. } = entry;
    if config.is_null() { name.clone() } else { format!("{name} {config}") }
}

/// What changes about addresses, keys, and variables that commands see.
fn keys(id: &str, before: Option<&Entry>, after: Option<&Entry>) -> Vec<String> {
    let before = before.map(|it| settings("", &it.config)).unwrap_or_default();
    let after = after.map(|it| settings("", &it.config)).unwrap_or_default();
    let set = after.iter().filter(|it| !before.contains(it));
    let set = set.map(|(path, value)| format!("`{id}` would have {path} {}", masked(value)));
    let gone = before.iter().filter(|(path, _)| after.iter().all(|it| it.0 != *path));
    set.chain(gone.map(|(path, _)| format!("`{id}` would have no {path}"))).collect()
}

/// What a config would newly take out of the environment. The variable of a key need not look like one, and a setting
/// such as the persona is logged and sent.
fn variables(id: &str, before: Option<&Entry>, after: Option<&Entry>) -> Vec<String> {
    let before = before.map(|it| placeholders("", &it.config)).unwrap_or_default();
    let after = after.map(|it| placeholders("", &it.config)).unwrap_or_default();
    let fresh = after.into_iter().filter(|it| !before.contains(it));
    fresh.map(|(path, text)| format!("`{id}` would have {path} {}", Value::from(text))).collect()
}

/// Dotted paths and texts of what holds a placeholder, wherever it stands in a config.
fn placeholders(at: &str, config: &Value) -> Vec<(String, String)> {
    let inner = |key: &str| if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
    match config {
        Value::String(text) if text.contains("${") => vec![(at.to_owned(), text.clone())],
        Value::Object(map) => {
            let others = map.iter().filter(|(key, _)| !PATHS_OF_KEYS.contains(&key.as_str()));
            others.flat_map(|(key, value)| placeholders(&inner(key), value)).collect()
        }
        Value::Array(items) => {
            let each = items.iter().enumerate();
            each.flat_map(|(index, it)| placeholders(&inner(&index.to_string()), it)).collect()
        }
        _ => Vec::new(),
    }
}

/// Dotted paths and values of the settings that matter, wherever they stand in a config.
pub(crate) fn settings(at: &str, config: &Value) -> Vec<(String, Value)> {
    let inner = |key: &str| if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
    match config {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| match PATHS_OF_KEYS.contains(&key.as_str()) {
                true if value.is_null() => Vec::new(),
                true => vec![(inner(key), value.clone())],
                false => settings(&inner(key), value),
            })
            .collect(),
        Value::Array(items) => {
            let each = items.iter().enumerate();
            each.flat_map(|(index, it)| settings(&inner(&index.to_string()), it)).collect()
        }
        _ => Vec::new(),
    }
}

/// An address may hold a key in its query, or a password before its host.
fn masked(value: &Value) -> String {
    let Some(text) = value.as_str() else { return value.to_string() };
    let (address, query) = text.split_once('?').map_or((text, ""), |(it, _)| (it, "?***"));
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let host = rest.split('/').next().unwrap_or(rest);
    let shown = match host.rsplit_once('@') {
        Some((user, _)) => format!("{scheme}://***{}{query}", &rest[user.len()..]),
        None => format!("{address}{query}"),
    };
    Value::from(shown).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Entry, EntryChange, Value, dangers};

    #[expect(clippy::unnecessary_wraps, reason = "as a change holds it")]
    fn entry(name: &str, config: Value) -> Option<Entry> {
        Some(Entry { id: "it".into(), name: name.into(), config, disabled: false, optional: false })
    }

    fn disabled(entry: Option<Entry>) -> Option<Entry> {
        entry.map(|it| Entry { disabled: true, ..it })
    }

    fn dangers_of(before: Option<Entry>, after: Option<Entry>, guard: bool) -> Vec<String> {
        dangers(&[EntryChange { before, after, guard }])
    }

    #[test]
    fn whatever_touches_what_starts_programs_is_dangerous() {
        let script = || entry("./x.ts", json!({ "a": 1 }));
        for (before, after, expected) in [
            (None, script(), "`it` would run ./x.ts"),
            // Its file was saved.
            (script(), script(), "`it` would run ./x.ts"),
            (script(), entry("./x.ts", json!({})), "`it` would run ./x.ts"),
            (entry("cli", json!({})), script(), "`it` would run ./x.ts"),
            (disabled(script()), script(), "`it` would run ./x.ts"),
            (script(), disabled(script()), "`it` would no longer run"),
            (script(), None, "`it` would no longer run"),
            (None, entry("plugins/x.js", json!({})), "`it` would run plugins/x.js"),
            (None, entry("mcp", json!({ "command": "x" })), "`it` would run mcp (x)"),
            (
                entry("mcp", json!({ "command": "x" })),
                entry(
                    "mcp",
                    json!({ "command": "x", "args": ["-y", "a b; c"], "env": { "K": "v" }, "cwd": "d" }),
                ),
                r#"`it` would run mcp (K=… x -y "a b; c" in d)"#,
            ),
            (None, entry("hooks", json!({})), "`it` would run hooks"),
            (None, entry("./src/harness/mcp.ts", json!({})), "`it` would run ./src/harness/mcp.ts"),
        ] {
            assert_eq!(dangers_of(before, after, false), [expected]);
        }
    }

    #[test]
    fn addresses_and_keys_are_found_wherever_they_stand() {
        let deep = |url: &str| entry("many", json!({ "list": [{ "baseUrl": url, "model": "m" }] }));
        for (before, after, expected) in [
            (
                deep("http://a"),
                deep("http://b?k=secret"),
                "`it` would have list.0.baseUrl \"http://b?***\"",
            ),
            (
                deep("http://a"),
                deep("http://me:secret@b/v1"),
                "`it` would have list.0.baseUrl \"http://***@b/v1\"",
            ),
            (deep("http://a"), None, "`it` would have no list.0.baseUrl"),
            (deep("http://a"), disabled(deep("http://a")), "`it` would have no list.0.baseUrl"),
            (
                entry("a", json!({ "apiKeyEnv": "K" })),
                entry("a", json!({ "apiKeyEnv": null })),
                "`it` would have no apiKeyEnv",
            ),
        ] {
            assert_eq!(dangers_of(before, after, false), [expected]);
        }
    }

    #[test]
    fn what_is_newly_taken_out_of_the_environment_is_dangerous() {
        let persona = |text: &str| entry("prompt", json!({ "persona": text }));
        let deep = |text: &str| entry("many", json!({ "list": [{ "a": text }] }));
        for (before, after, expected) in [
            (
                persona("a"),
                persona("Key: ${DEEP} \u{1b}"),
                r#"`it` would have persona "Key: ${DEEP} \u001b""#,
            ),
            (None, persona("${DEEP}"), r#"`it` would have persona "${DEEP}""#),
            (persona("${HOME}"), persona("${DEEP}"), r#"`it` would have persona "${DEEP}""#),
            (None, deep("${DEEP:-x}"), r#"`it` would have list.0.a "${DEEP:-x}""#),
        ] {
            assert_eq!(dangers_of(before, after, false), [expected]);
        }
    }

    #[test]
    fn what_does_not_decide_what_runs_who_is_asked_or_where_keys_go_is_not() {
        let guard = || entry("approval", json!({ "tools": ["bash"] }));
        for (before, after, is_guard) in [
            (
                entry("prompt", json!({ "persona": "a" })),
                entry("prompt", json!({ "persona": "b" })),
                false,
            ),
            (entry("prompt", Value::Null), None, false),
            (None, entry("llm-fake", json!({ "script": [] })), false),
            // The variable was read before, or is no more.
            (
                entry("prompt", json!({ "persona": "${A}" })),
                entry("prompt", json!({ "persona": "${A}", "x": 1 })),
                false,
            ),
            (
                entry("prompt", json!({ "persona": "${A}" })),
                entry("prompt", json!({ "persona": "a" })),
                false,
            ),
            // It had failed and is tried again.
            (guard(), guard(), true),
            (disabled(guard()), None, true),
            (entry("./src/harness/cli.ts", Value::Null), entry("cli", Value::Null), false),
        ] {
            assert_eq!(dangers_of(before, after, is_guard), Vec::<String>::new());
        }
    }
}
