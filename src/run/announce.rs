//! What a list is about to do on this machine, said before any of it is mounted.
//!
//! Part of `run`.
//! Watch for: a folder that somebody else made may hold a list. The built-in one needs no announcement, and where nobody
//! looks at stderr there is nobody to tell.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::rc::Rc;

use serde_json::Value;

use crate::cordis::loader::{Entry, variables};
use crate::cordis::{BeforeApply, Context, Error, is_script, plain_name};
use crate::harness::cli::console::Console;
use crate::harness::trust::{program, settings};

/// Plugins that start programs.
const STARTERS: [&str; 3] = ["shell-local", "mcp", "hooks"];

/// Tells a person at a terminal, once.
pub(super) fn announce(root: &Context, console: &Rc<Console>) -> Result<(), Error> {
    let (console, is_due) = (console.clone(), Cell::new(io::stderr().is_terminal()));
    root.on_parallel::<BeforeApply>(async move |_, change| {
        if is_due.replace(false) {
            let entries: Vec<_> =
                change.entries.iter().filter_map(|it| it.after.as_ref()).collect();
            // However quiet it is to be: this is what the user consents to.
            console.warn(&announcement(&change.file, &entries));
        }
        Ok(())
    })?;
    Ok(())
}

fn announcement(file: &str, entries: &[&Entry]) -> String {
    let entries: Vec<_> = entries.iter().filter(|it| !it.disabled).collect();
    let all: Vec<_> = entries.iter().flat_map(|it| settings("", &it.config)).collect();
    let texts = |key: &str| -> Vec<String> {
        let named = all.iter().filter(|(path, _)| path.rsplit('.').next() == Some(key));
        named.filter_map(|(_, value)| value.as_str().map(str::to_owned)).collect()
    };
    let named = |wanted: &dyn Fn(&str) -> bool| -> Vec<String> {
        entries.iter().filter(|it| wanted(&it.name)).map(|it| program(it)).collect()
    };
    let is_starter = |name: &str| STARTERS.contains(&plain_name(name));
    let asked = entries.iter().filter(|it| plain_name(&it.name) == "approval");
    let asked = asked.filter_map(|it| it.config["tools"].as_array()).flatten();
    let allowed = entries.iter().filter(|it| plain_name(&it.name) == "approval-rules");
    let allowed = allowed.filter_map(|it| it.config["allow"].as_array()).flatten();
    let read: BTreeSet<_> = entries.iter().flat_map(|it| variables(&it.config)).collect();
    let parts = [
        ("requests go to", texts("baseUrl").iter().map(|it| host(it).to_owned()).collect()),
        ("the key is in", texts("apiKeyEnv")),
        ("its placeholders read", read.into_iter().collect()),
        ("asked about:", asked.filter_map(Value::as_str).map(str::to_owned).collect()),
        ("allowed by rule:", allowed.filter_map(Value::as_str).map(str::to_owned).collect()),
        ("scripts:", named(&is_script)),
        ("programs are started by", named(&is_starter)),
    ];
    let said = parts.into_iter().filter_map(|(what, names): (&str, Vec<String>)| match what {
        "asked about:" if names.is_empty() => Some("no tool is asked about".to_owned()),
        _ => (!names.is_empty()).then(|| format!("{what} {}", names.join(", "))),
    });
    format!("{file} decides what runs here: {}", said.collect::<Vec<_>>().join("; "))
}

/// The host and port of an address, without what may be secret in it.
fn host(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let rest = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    rest.rsplit_once('@').map_or(rest, |(_, host)| host)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Entry, Value, announcement};

    fn entry(name: &str, config: Value) -> Entry {
        Entry { id: "it".into(), name: name.into(), config, disabled: false, optional: false }
    }

    #[test]
    fn host_key_guarded_tools_scripts_and_programs_are_named() {
        let address = "https://user:pass@api.example.com:8443/v1?key=secret";
        let model = json!({ "baseUrl": address, "apiKeyEnv": "MY_KEY", "model": "${MODEL:-m}" });
        let entries = [
            entry("llm-openai", model),
            entry("approval", json!({ "tools": ["bash", "mcp__*"] })),
            entry("approval-rules", json!({ "allow": ["bash: ls *", "read"], "deny": ["x"] })),
            entry("./policy.ts", Value::Null),
            entry("./src/harness/shell-local.ts", Value::Null),
            entry("many", json!({ "list": ["$${NOT}", { "a": "${MODEL} and ${DEEP}" }] })),
            entry(
                "mcp",
                json!({ "command": "npx", "args": ["-y", "a b"], "env": { "TOKEN": "secret" } }),
            ),
            entry("hooks", json!({ "Stop": [{ "command": "./end.sh" }, { "command": "a | b" }] })),
            Entry { disabled: true, ..entry("./other.ts", json!("${UNREAD}")) },
        ];

        let said = announcement("cordis.yml", &entries.iter().collect::<Vec<_>>());

        let expected = "cordis.yml decides what runs here: requests go to api.example.com:8443; the key is in MY_KEY; \
                        its placeholders read DEEP, MODEL; \
                        asked about: bash, mcp__*; allowed by rule: bash: ls *, read; scripts: ./policy.ts; \
                        programs are started by ./src/harness/shell-local.ts, mcp (TOKEN=… npx -y \"a b\"), \
                        hooks (./end.sh, \"a | b\")";
        assert_eq!(said, expected);
    }

    #[test]
    fn a_list_that_asks_about_nothing_says_so() {
        let said = announcement("other.yml", &[&entry("approval", json!({ "tools": [] }))]);

        assert_eq!(said, "other.yml decides what runs here: no tool is asked about");
    }

    #[test]
    fn a_script_does_not_ask_because_of_its_name() {
        let said = announcement("it.yml", &[&entry("./approval.ts", json!({ "tools": ["bash"] }))]);

        let expected = "no tool is asked about; scripts: ./approval.ts";
        assert_eq!(said, format!("it.yml decides what runs here: {expected}"));
    }
}
