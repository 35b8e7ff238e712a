//! `--init`, `--schema`, `--completions`, `--man`: what a newcomer and an editor begin with.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Ended, Folder};

fn schema(folder: &Folder) -> Value {
    let ended = folder.run(&["--schema"], "");
    assert_eq!((ended.code(), ended.err.as_str()), (0, ""));
    serde_json::from_str(&ended.out).unwrap()
}

fn yaml(text: &str) -> Value {
    serde_yaml::from_str(text).unwrap()
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

/// What an editor has against a list.
fn complaints(list: &str) -> Vec<String> {
    let schema = schema(&Folder::new());
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator.iter_errors(&yaml(list)).map(|it| it.to_string()).collect()
}

#[test]
fn the_schema_has_nothing_against_the_list_that_is_built_in_nor_against_any_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let examples = fs::read_dir(root.join("examples")).unwrap().map(|it| it.unwrap().path());
    // The plugins of that one are in a binary of its own, whose `--schema` knows them.
    let examples = examples.filter(|it| !it.ends_with("own-binary"));
    let lists: Vec<_> = examples.map(|it| it.join("cordis.yml")).filter(|it| it.exists()).collect();
    assert!(lists.len() > 5, "{lists:?}");

    for list in lists.iter().chain([&root.join("cordis.yml")]) {
        assert_eq!(complaints(&read(list)), [""; 0], "{}", list.display());
    }
}

#[test]
fn the_schema_takes_whatever_the_program_takes() {
    for list in [
        "- {id: a, name: ./src/harness/session.ts}",
        "- {id: a, name: ./mine.ts, config: {anything: 1}}",
        "- {id: a, name: agent-loop, config: null, optional: true, disabled: null}",
        "- {id: a, name: agent-loop, config: {maxSteps: '${STEPS:-5}'}}",
        "- {id: a, name: agent-loop, config: {maxSteps: null}, x-note: mine}",
        "- {id: a, name: cost, config: {prices: [{model: '*', input: 1, output: 2, cached: null}]}}",
    ] {
        assert_eq!(complaints(list), [""; 0], "{list}");
    }
}

#[test]
fn the_schema_finds_what_the_program_refuses_or_warns_of() {
    for list in [
        "{}",
        "- {name: session}",
        "- {id: a, name: sesion}",
        "- {id: a, name: session, disabld: true}",
        "- {id: a, name: agent-loop, config: {maxSteps: many}}",
        "- {id: a, name: ./src/harness/agent-loop.ts, config: {maxSteps: 0}}",
        "- {id: a, name: agent-loop, config: {maxstep: 5}}",
        "- {id: a, name: approval, config: {tools: bash}}",
        "- {id: a, name: approval, optional: true, config: {tools: [bash]}}",
        "- {id: a, name: llm-fake, config: {repeat: never}}",
        "- {id: a, name: llm-openai, config: {model: m}}",
    ] {
        assert_ne!(complaints(list), [""; 0], "{list}");
    }
}

#[test]
fn init_writes_a_list_that_runs_and_points_editors_to_the_schema() {
    let folder = Folder::new();

    let ended = folder.run(&["--init"], "");

    assert_eq!((ended.code(), ended.out.as_str()), (0, ""));
    let told = "[nano-cordis] wrote cordis.yml and cordis.schema.json; next: nano-cordis\n";
    assert_eq!(ended.err, told);
    let list = read(folder.path().join("cordis.yml"));
    let first = list.lines().next().unwrap();
    assert_eq!(first, "# yaml-language-server: $schema=./cordis.schema.json");
    let written: Value =
        serde_json::from_str(&read(folder.path().join("cordis.schema.json"))).unwrap();
    assert_eq!(written, schema(&folder));
    let run = folder.run(&["Say hello"], "y\n");
    assert!(run.out.ends_with(crate::support::SCRIPTED_END), "{}", run.out);
}

#[test]
fn each_service_has_its_list_and_is_told_what_comes_next() {
    for (service, address, next) in [
        ("deepseek", "https://api.deepseek.com/v1", "next: export DEEPSEEK_API_KEY=…"),
        ("openai", "https://api.openai.com/v1", "next: export OPENAI_API_KEY=…"),
        ("openrouter", "https://openrouter.ai/api/v1", "next: export OPENROUTER_API_KEY=…"),
        ("ollama", "http://localhost:11434/v1", "next: ollama pull"),
    ] {
        let folder = Folder::new();

        let ended = folder.run(&["--init", service], "");

        assert!(ended.err.contains(next), "{}", ended.err);
        let list = read(folder.path().join("cordis.yml"));
        assert_eq!(complaints(&list), [""; 0], "{service}");
        let list = yaml(&list);
        let llm = list.as_array().unwrap().iter().find(|it| it["id"] == "llm").unwrap();
        assert_eq!(
            (&llm["name"], &llm["config"]["baseUrl"]),
            (&json!("llm-openai"), &json!(address))
        );
        let check = folder.run(&["--check"], "");
        assert_eq!(check.code(), 0, "{}", check.err);
    }
}

#[test]
fn init_replaces_nothing() {
    let folder = Folder::with("- {id: mine, name: session}\n");

    let ended = folder.run(&["--init"], "");

    assert_eq!(ended.code(), 2);
    assert_eq!(ended.err, "nano-cordis: cordis.yml is there already; nothing was written\n");
    assert_eq!(read(folder.path().join("cordis.yml")), "- {id: mine, name: session}\n");
    assert!(!folder.has("cordis.schema.json"));

    let folder = Folder::new();
    folder.write("cordis.schema.json", "mine");
    let ended = folder.run(&["--init"], "");
    assert!(
        ended.err.contains("cordis.schema.json was there already and stays as it is"),
        "{}",
        ended.err
    );
    assert_eq!(read(folder.path().join("cordis.schema.json")), "mine");
}

#[test]
fn an_unknown_service_or_shell_is_refused_with_those_that_there_are() {
    let folder = Folder::new();

    let service = folder.run(&["--init", "acme"], "");
    let shell = folder.run(&["--completions", "tcl"], "");

    assert_eq!((service.code(), shell.code()), (2, 2));
    assert!(service.err.contains("deepseek"), "{}", service.err);
    assert!(shell.err.contains("zsh"), "{}", shell.err);
    assert!(!folder.has("cordis.yml"));
}

#[test]
fn completions_and_the_manual_know_the_arguments_and_make_no_session() {
    let folder = Folder::new();
    for arguments in [
        &["--completions", "bash"][..],
        &["--completions", "zsh"],
        &["--completions", "fish"],
        &["--man"],
    ] {
        let Ended { out, err, .. } = folder.run(arguments, "");

        assert!(out.replace("\\-", "-").contains("resume"), "{arguments:?}: {out}");
        assert_eq!(err, "");
    }
    assert!(!folder.has(".nano"));
}

#[test]
fn bash_reads_its_completions() {
    let folder = Folder::new();
    let line = "nano-cordis --completions bash > it && . ./it && complete -p nano-cordis";
    let output = folder
        .shell_command(&line.replace("complete -p nano-cordis", "complete -p | grep -c nano"))
        .output()
        .unwrap();

    assert!(output.status.success(), "{output:?}");
}
