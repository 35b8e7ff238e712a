//! The command line and the file: what is wrong is said in one message, with exit status 2.

use crate::support::{Folder, Running, list, script, scripted};

#[test]
fn h_154_an_unknown_option_is_one_line_that_names_the_near_one() {
    let ended = Folder::new().run(&["--resum", "x"], "");

    assert_eq!((ended.err.lines().count(), ended.code()), (1, 2));
    assert!(
        ended.err.starts_with("nano-cordis: ") && ended.err.contains("--resume"),
        "{}",
        ended.err
    );
}

#[test]
fn h_154_a_wrong_value_is_named_with_file_entry_and_field() {
    let folder = Folder::with(&list(&[("loop", "name: agent-loop, config: {maxSteps: many}")]));

    let ended = folder.run(&["hi"], "");

    for part in ["nano-cordis: ", "cordis.yml", "loop", "maxSteps"] {
        assert!(ended.err.contains(part), "{part} is not in {}", ended.err);
    }
    assert_eq!((ended.out.as_str(), ended.code()), ("", 2));
    assert!(!folder.has(".nano"));
}

#[test]
fn h_154_a_file_that_is_no_yaml_is_named_with_the_line() {
    let folder = Folder::with("- id: a\n  name: [\n");

    let ended = folder.run(&["hi"], "");

    let begin = "nano-cordis: cordis.yml: it is not valid YAML at line 3: ";
    assert!(ended.err.starts_with(begin), "{}", ended.err);
    assert_eq!(ended.code(), 2);
}

#[test]
fn a_folder_in_the_place_of_a_configuration_is_called_by_its_name() {
    let ended = Folder::new().run(&["--config", ".", "hi"], "");

    assert!(ended.err.starts_with("nano-cordis: .: it cannot be read: "), "{}", ended.err);
    assert_eq!(ended.code(), 2);
}

#[test]
fn h_151_a_file_in_the_folder_replaces_the_built_in_list() {
    let without = Folder::new();
    let with = Folder::with(&scripted("{content: from the file}"));

    let built_in = without.run(&["hi"], "n\n");
    let own = with.run(&["hi"], "");

    assert!(built_in.out.starts_with("[tool] bash"), "{}", built_in.out);
    assert_eq!(own.out, "assistant> from the file\n");
}

#[test]
fn h_151_another_file_can_be_named() {
    let folder = Folder::with(&scripted("{content: from the usual file}"));
    folder.write("other.yml", &scripted("{content: from the other}"));

    assert_eq!(folder.run(&["--config", "other.yml", "hi"], "").out, "assistant> from the other\n");
    assert_eq!(folder.run(&["--config", "absent.yml", "hi"], "").code(), 2);
}

#[test]
fn a_file_that_cannot_be_read_never_means_the_built_in_list() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("cordis.yml")).unwrap();

    let ended = folder.run(&["hi"], "");

    assert!(
        ended.err.starts_with("nano-cordis: ") && ended.err.contains("cordis.yml"),
        "{}",
        ended.err
    );
    assert_eq!((ended.out.as_str(), ended.code()), ("", 2));
}

#[test]
fn one_value_of_an_entry_can_be_set_for_a_run() {
    let folder = Folder::with(&scripted("{tool: bash, args: {command: 'true'}}"));

    let ended = folder.run(&["--set", "loop.maxSteps=1", "--set", "approval.tools=[]", "hi"], "");

    assert!(ended.err.contains("stopped after 1 step;"), "{}", ended.err);
    assert_eq!(folder.run(&["--set", "lop.maxSteps=1", "hi"], "").code(), 2);
}

#[test]
fn an_entry_can_be_left_out_of_a_run() {
    let folder = Folder::new();

    let ended = folder.run(&["--disable", "approval", "Say hello"], "");

    assert!(
        !ended.out.contains("Allow") && ended.out.contains("[result] hello from nano\n"),
        "{}",
        ended.out
    );
}

#[test]
fn help_and_version_are_texts_on_stdout() {
    let folder = Folder::new();
    let (help, version) = (folder.run(&["--help"], ""), folder.run(&["--version"], ""));

    assert!(help.out.contains("--resume <ID>") && help.code() == 0, "{}", help.out);
    assert!(help.out.ends_with("signal N.\n"), "{}", help.out);
    assert_eq!(
        (version.out, version.err.as_str()),
        (format!("nano-cordis {}\n", env!("CARGO_PKG_VERSION")), "")
    );
}

#[test]
fn an_entry_that_fails_ends_a_one_shot_and_a_piped_conversation_with_2() {
    let folder = Folder::with(&format!("{}- {{id: second, name: llm-fake}}\n", list(&[])));

    let one_shot = folder.run(&["hi"], "");
    let conversation = folder.run(&[], "hi\n");

    for ended in [one_shot, conversation] {
        assert!(ended.err.starts_with("nano-cordis: entry `second`: "), "{}", ended.err);
        assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
        assert_eq!((ended.out.as_str(), ended.code()), ("", 2));
    }
}

#[test]
fn an_optional_entry_that_fails_is_said_once_and_ends_nothing() {
    let second = "- {id: second, name: llm-fake, optional: true}\n";
    let folder = Folder::with(&format!("{}{second}", list(&[])));

    let ended = folder.run(&["hi"], "n\n");

    assert!(ended.err.starts_with("[nano-cordis] `loader > second` failed: "), "{}", ended.err);
    assert_eq!((ended.err.lines().count(), ended.code()), (1, 0), "{}", ended.err);
}

#[test]
fn h_171_an_entry_that_waits_for_nobody_ends_a_one_shot_with_the_chain() {
    let folder = Folder::with(&list(&[("llm", "")]));

    let ended = folder.run(&["hi"], "");

    assert!(ended.err.contains("llm") && ended.err.contains("loop"), "{}", ended.err);
    assert_eq!(ended.code(), 2);
}

#[test]
fn a_list_without_a_command_line_does_not_wait_for_ever() {
    let folder = Folder::with(&list(&[("cli", ""), ("llm", &script("{content: hi}"))]));

    let ended = Running::start(folder.command(&["hi"])).ended_with_input_open();

    assert!(ended.err.contains("no entry leads a conversation"), "{}", ended.err);
    assert_eq!(ended.code(), 2);
}

#[test]
fn h_175_a_list_of_the_original_loads_unchanged() {
    let folder = Folder::with(include_str!("../fixtures/original.cordis.yml"));

    let ended = folder.run(&["Say hello"], "y\n");

    assert!(ended.out.contains("[result] hello from nano\n"), "{ended:?}");
    assert_eq!((ended.err.as_str(), ended.code()), ("", 0));
}
