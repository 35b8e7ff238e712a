//! Instructions: what `AGENTS.md` and `CLAUDE.md` say reaches the model, and what cannot be taken is said.

use std::{
    fs::{self, File},
    io::{Seek, SeekFrom, Write},
    os::unix::fs::symlink,
    path::Path,
};

use nano_cordis::harness::session::Session;
use nix::{sys::stat::Mode, unistd::mkfifo};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::hooks::rig::{Rig, agent};

const AGENT: &str = "
- {id: session, name: session}
- {id: prompt, name: prompt, config: {persona: Be brief.}}
- {id: tools, name: tools}
- {id: llm, name: llm-fake, config: {script: [{content: Done.}]}}
- {id: loop, name: agent-loop}
";

/// A project whose folder `a/b` the user works in.
fn project() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("a/b")).unwrap();
    fs::create_dir(folder.path().join(".git")).unwrap();
    folder
}

fn write(folder: &TempDir, name: &str, text: impl AsRef<[u8]>) {
    fs::write(folder.path().join(name), text).unwrap();
}

fn list(folder: &Path, more: &Value) -> String {
    let mut config = json!({ "folder": folder });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    format!("{AGENT}- {{id: instructions, name: instructions, config: {config}}}\n")
}

/// Runs a test in `a/b` of a project.
fn in_project(folder: &TempDir, more: &Value, test: impl AsyncFnOnce(&Rig)) {
    agent(&list(&folder.path().join("a/b"), more), test);
}

/// What the model of a new session is told.
async fn prompt(rig: &Rig) -> String {
    let session = rig.session();
    rig.turn(&session).await;
    system(&session)
}

fn system(session: &Session) -> String {
    session.header().unwrap().system.unwrap()
}

/// What that says below the heading of the instructions.
async fn section(rig: &Rig) -> String {
    let prompt = prompt(rig).await;
    prompt.split_once("the later one holds.").map_or_else(String::new, |it| it.1.trim().into())
}

#[test]
fn the_files_from_the_project_down_to_the_folder_are_in_the_prompt_and_one_line_says_so() {
    let folder = project();
    write(&folder, "AGENTS.md", "Use tabs.\n");
    write(&folder, "a/CLAUDE.md", "Use blanks.\n");
    write(&folder, "a/b/AGENTS.md", "使用中文。\n");
    write(&folder, "a/b/CLAUDE.md", "Run the tests.\n");

    in_project(&folder, &json!({}), async |rig| {
        let said = "instructions: AGENTS.md (10 bytes), a/CLAUDE.md (12 bytes), a/b/AGENTS.md (16 bytes), \
                    a/b/CLAUDE.md (15 bytes)";
        assert_eq!(rig.take_notices(), [said]);
        assert_eq!(
            section(rig).await,
            "## AGENTS.md\n\nUse tabs.\n\n## a/CLAUDE.md\n\nUse blanks.\n\n## a/b/AGENTS.md\n\n使用中文。\n\n\
             ## a/b/CLAUDE.md\n\nRun the tests."
        );
        assert!(prompt(rig).await.starts_with("Be brief.\n\n# Instructions of this project"));
    });
}

#[test]
fn without_a_project_only_the_folder_itself_counts() {
    let folder = project();
    fs::remove_dir(folder.path().join(".git")).unwrap();
    write(&folder, "AGENTS.md", "Above.");
    write(&folder, "a/b/AGENTS.md", "Here.");

    in_project(&folder, &json!({}), async |rig| {
        assert_eq!(rig.take_notices(), ["instructions: AGENTS.md (5 bytes)"]);
        assert_eq!(section(rig).await, "## AGENTS.md\n\nHere.");
    });
}

#[test]
fn without_files_nothing_is_said_and_the_prompt_is_as_before() {
    let folder = project();
    write(&folder, "AGENTS.md", " \n");

    in_project(&folder, &json!({}), async |rig| {
        assert_eq!(rig.take_notices(), [""; 0]);
        assert_eq!(prompt(rig).await, "Be brief.");
    });
}

#[test]
fn what_stands_in_a_folder_under_two_names_is_taken_once() {
    let folder = project();
    write(&folder, "AGENTS.md", "Use tabs.");
    symlink("AGENTS.md", folder.path().join("CLAUDE.md")).unwrap();

    in_project(&folder, &json!({}), async |rig| {
        assert_eq!(rig.take_notices(), ["instructions: AGENTS.md (9 bytes)"]);
    });
}

#[test]
fn the_names_of_the_files_can_be_others() {
    let folder = project();
    write(&folder, "AGENTS.md", "Use tabs.");
    write(&folder, "RULES.md", "Use blanks.");

    in_project(&folder, &json!({ "files": ["RULES.md"] }), async |rig| {
        assert_eq!(section(rig).await, "## RULES.md\n\nUse blanks.");
        rig.take_notices();
    });
}

#[test]
fn broad_files_are_left_out_before_the_one_of_the_folder_is_cut() {
    let folder = project();
    write(&folder, "AGENTS.md", "a".repeat(30));
    write(&folder, "a/AGENTS.md", "b".repeat(10));
    write(&folder, "a/b/AGENTS.md", "c".repeat(25));

    in_project(&folder, &json!({ "maxBytes": 40 }), async |rig| {
        let said = [
            "instructions: a/AGENTS.md (10 bytes), a/b/AGENTS.md (25 bytes)",
            "instructions: AGENTS.md (30 bytes) is left out: there is room for 40 bytes (maxBytes)",
        ];
        assert_eq!(rig.take_notices(), said);
    });
}

#[test]
fn a_file_that_is_too_long_is_cut_where_a_character_ends() {
    let folder = project();
    write(&folder, "a/b/AGENTS.md", "中".repeat(5));

    in_project(&folder, &json!({ "maxBytes": 7 }), async |rig| {
        let said = [
            "instructions: a/b/AGENTS.md (6 bytes)",
            "instructions: a/b/AGENTS.md is cut, 9 bytes of it are left out: there is room for 7 bytes (maxBytes)",
        ];
        assert_eq!(rig.take_notices(), said);
        assert_eq!(
            section(rig).await,
            "## a/b/AGENTS.md\n\n中中\n\n(The rest of this file was left out.)"
        );
    });
}

#[test]
fn of_a_file_of_ten_megabytes_as_much_is_taken_as_there_is_room_for() {
    let folder = project();
    let mut file = File::create(folder.path().join("a/b/AGENTS.md")).unwrap();
    file.write_all(&vec![b'x'; 100_000]).unwrap();
    file.seek(SeekFrom::Start(10 << 20)).unwrap();
    file.write_all(b"end").unwrap();

    in_project(&folder, &json!({}), async |rig| {
        let said = rig.take_notices();
        assert_eq!(said[0], "instructions: a/b/AGENTS.md (32768 bytes)");
        assert!(said[1].contains("10452995 bytes of it are left out"), "{said:?}");
    });
}

#[test]
fn a_file_in_latin_1_is_taken_and_said() {
    let folder = project();
    write(&folder, "AGENTS.md", b"Un caf\xe9.");

    in_project(&folder, &json!({}), async |rig| {
        let said = rig.take_notices();
        let expected = "instructions: AGENTS.md is not UTF-8: 1 character of it is shown as \u{fffd}; save it as UTF-8";
        assert_eq!(said[0], expected);
        assert_eq!(section(rig).await, "## AGENTS.md\n\nUn caf\u{fffd}.");
    });
}

#[test]
fn what_is_no_text_of_the_project_is_left_out_and_said_and_nothing_waits() {
    let folder = project();
    let outside = tempfile::NamedTempFile::new().unwrap();
    mkfifo(&folder.path().join("AGENTS.md"), Mode::S_IRWXU).unwrap();
    fs::create_dir(folder.path().join("CLAUDE.md")).unwrap();
    symlink(outside.path(), folder.path().join("a/AGENTS.md")).unwrap();
    symlink("nowhere", folder.path().join("a/CLAUDE.md")).unwrap();
    symlink("/dev/zero", folder.path().join("a/b/AGENTS.md")).unwrap();
    write(&folder, "a/b/CLAUDE.md", b"a\0b");

    in_project(&folder, &json!({}), async |rig| {
        let said = rig.take_notices();
        let expected = [
            "AGENTS.md is left out: it is not a regular file",
            "CLAUDE.md is left out: it is not a regular file",
            "a/AGENTS.md is left out: it is a link out of the project, to ",
            "a/CLAUDE.md is left out: No such file or directory",
            "a/b/AGENTS.md is left out: it is a link out of the project, to /dev/zero",
            "a/b/CLAUDE.md is left out: it is not a text",
        ];
        assert_eq!(said.len(), expected.len(), "{said:?}");
        for (said, expected) in said.iter().zip(expected) {
            assert!(said.starts_with(&format!("instructions: {expected}")), "{said}");
        }
        assert_eq!(prompt(rig).await, "Be brief.");
    });
}

#[test]
fn a_session_keeps_what_it_began_with_and_the_next_one_has_what_is_there_then() {
    let folder = project();
    write(&folder, "AGENTS.md", "Use tabs.");

    in_project(&folder, &json!({}), async |rig| {
        let (first, second) = (rig.session(), rig.session());
        rig.take_notices();

        rig.turn(&first).await;
        write(&folder, "AGENTS.md", "Use blanks.");
        rig.turn(&first).await;
        let quiet = rig.take_notices();
        rig.turn(&second).await;
        rig.turn(&first).await;

        assert_eq!(quiet, [""; 0]);
        assert!(system(&first).ends_with("Use tabs."));
        assert!(system(&second).ends_with("Use blanks."));
        assert_eq!(rig.take_notices(), ["instructions: AGENTS.md (11 bytes)"]);
    });
}

#[test]
fn what_is_gone_at_the_next_session_is_said() {
    let folder = project();
    write(&folder, "AGENTS.md", "Use tabs.");

    in_project(&folder, &json!({}), async |rig| {
        let (first, second) = (rig.session(), rig.session());
        rig.turn(&first).await;
        rig.take_notices();

        fs::remove_file(folder.path().join("AGENTS.md")).unwrap();
        rig.turn(&second).await;

        assert_eq!(rig.take_notices(), ["instructions: none any more"]);
        assert_eq!(system(&second), "Be brief.");
    });
}

#[test]
fn unloading_takes_the_section_away() {
    let folder = project();
    write(&folder, "AGENTS.md", "Use tabs.");

    in_project(&folder, &json!({}), async |rig| {
        rig.save(AGENT).await.unwrap();

        assert_eq!(prompt(rig).await, "Be brief.");
    });
}

#[test]
fn names_that_are_paths_and_no_room_at_all_are_refused() {
    let folder = project();
    in_project(&folder, &json!({}), async |rig| {
        let here = folder.path();
        let room = rig.save(&list(here, &json!({ "maxBytes": 0 }))).await.unwrap_err();
        let path = rig.save(&list(here, &json!({ "files": ["../A.md"] }))).await.unwrap_err();

        assert!(
            room.contains("entry `instructions` (line 7): config.maxBytes: must be at least 1"),
            "{room}"
        );
        assert!(path.contains("config.files.0: `../A.md` is a path"), "{path}");
    });
}
