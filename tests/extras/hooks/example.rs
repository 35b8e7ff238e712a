//! The example, run as it stands.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;

#[test]
fn the_example_refuses_a_command_and_makes_the_turn_go_on() {
    let folder = tempfile::tempdir().unwrap();
    for file in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/hooks")).unwrap()
    {
        let file = file.unwrap();
        fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    let mut program = Command::new(env!("CARGO_BIN_EXE_nano-cordis"))
        .arg("Tidy up")
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();

    program.stdin.take().unwrap().write_all(b"y\n").unwrap();
    let ended = program.wait_with_output().unwrap();

    let (out, err) =
        (String::from_utf8(ended.stdout).unwrap(), String::from_utf8(ended.stderr).unwrap());
    let refused =
        "[result] Error: a PreToolUse hook refused this call: folders are not deleted here";
    assert!(
        out.contains(refused) && out.ends_with("assistant> Done, and written down.\n"),
        "{out}"
    );
    assert_eq!(out.matches("[y/N]").count(), 1, "{out}");
    let notice = "[nano-cordis] a Stop hook lets the turn go on: write what you did to CHANGES\n";
    assert_eq!((err.as_str(), ended.status.code()), (notice, Some(0)));
    let noted = fs::read_to_string(folder.path().join("tools.jsonl")).unwrap();
    let [noted] = &noted.lines().collect::<Vec<_>>()[..] else { unreachable!("{noted}") };
    let noted: Value = serde_json::from_str(noted).unwrap();
    assert_eq!(noted["tool_input"]["command"], "echo nothing was deleted > CHANGES");
    assert!(folder.path().join("CHANGES").exists());
}

#[test]
fn what_both_readmes_show_is_the_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let (list, script) = (read("examples/hooks/cordis.yml"), read("examples/hooks/no-rm.sh"));
    for readme in ["README.md", "README.zh.md"] {
        let text = read(readme);
        let entry = text.split("```yaml\n").find(|it| it.starts_with("- id: hooks")).unwrap();

        assert!(list.contains(entry.split("```").next().unwrap()), "{readme}");
        assert!(text.contains(&format!("```bash\n{script}```\n")), "{readme}");
    }
}
