//! `--types` writes down for editors what a script may use.

use std::{fs, os::unix::fs::symlink};

use crate::support::Folder;

const FILE: &str = "nano-cordis.d.ts";

fn text(folder: &Folder) -> String {
    fs::read_to_string(folder.path().join(FILE)).unwrap()
}

#[test]
fn the_types_are_written_and_said_to_be_whatever_else_is_in_the_folder() {
    let folder = Folder::with("- id: broken\n  name: [\n");

    let ended = folder.run(&["--types"], "");

    assert_eq!((ended.out.as_str(), ended.code()), ("", 0));
    assert_eq!(ended.err, "[nano-cordis] wrote nano-cordis.d.ts\n");
    assert!(text(&folder).contains("declare module 'cordis' {"));
    let files = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!((files, folder.run(&["--types", "-q"], "").err.as_str()), (2, ""));
}

#[test]
fn an_older_file_of_its_own_is_replaced_and_a_current_one_stays() {
    let folder = Folder::new();
    folder.write(FILE, "// Written by `nano-cordis --types`: of an older program.\n");

    let older = folder.run(&["--types"], "");
    let current = folder.run(&["--types"], "");

    assert_eq!(older.err, "[nano-cordis] wrote nano-cordis.d.ts\n");
    assert!(text(&folder).contains("declare module 'cordis' {"));
    assert_eq!(current.err, "[nano-cordis] nano-cordis.d.ts is up to date\n");
    assert_eq!((older.code(), current.code()), (0, 0));
}

#[test]
fn what_somebody_else_has_written_is_never_replaced() {
    let (own, linked, folder) = (Folder::new(), Folder::new(), Folder::new());
    own.write(FILE, "declare module 'mine' {}\n");
    linked.write("elsewhere", "// Written by `nano-cordis --types`\n");
    symlink("elsewhere", linked.path().join(FILE)).unwrap();
    fs::create_dir(folder.path().join(FILE)).unwrap();

    for place in [&own, &linked, &folder] {
        let ended = place.run(&["--types"], "");

        assert!(
            ended.err.starts_with("nano-cordis: nano-cordis.d.ts is there and was not written")
        );
        assert_eq!((ended.out.as_str(), ended.code()), ("", 2));
    }
    assert_eq!(text(&own), "declare module 'mine' {}\n");
    assert_eq!(text(&linked), "// Written by `nano-cordis --types`\n");
}

#[test]
fn the_types_are_asked_for_alone() {
    for other in ["hi", "--check", "--sessions", "--json", "--resume=x"] {
        let ended = Folder::new().run(&["--types", other], "");

        assert!(ended.err.contains("--types") && ended.err.lines().count() == 1, "{}", ended.err);
        assert_eq!(ended.code(), 2);
    }
}
