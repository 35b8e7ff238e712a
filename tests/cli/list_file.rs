//! What stands where `cordis.yml` should: at the start it is refused by name, as a save it changes nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use nix::unistd::geteuid;

use crate::support::{Folder, Running, reason, said, scripted};
use crate::terminal::{CTRL_D, Terminal};

type Put = fn(&Path);

/// What is put in the place of the list, and what is said of it.
const PLACES: [(Put, &str); 7] = [
    (|path| fs::write(path, "").unwrap(), "it is empty; a list without entries is written `[]`"),
    (
        |path| fs::write(path, "# nothing\n\n# here\n").unwrap(),
        "it is empty; a list without entries is written `[]`",
    ),
    (mkfifo, "it cannot be read: it is a named pipe, not a regular file"),
    (|path| fs::create_dir(path).unwrap(), "it cannot be read: it is a folder, not a regular file"),
    (
        |path| drop(UnixListener::bind(path).unwrap()),
        "it cannot be read: it is a socket, not a regular file",
    ),
    (
        |path| symlink("/dev/zero", path).unwrap(),
        "it cannot be read: it is a device, not a regular file",
    ),
    (
        |path| symlink("nowhere.yml", path).unwrap(),
        "it cannot be read: it is a link to nowhere.yml, which is not there",
    ),
];

#[test]
fn at_the_start_whatever_is_no_list_is_refused_by_its_name_with_2() {
    for (put, problem) in PLACES {
        for arguments in [&["hi"][..], &[]] {
            let folder = Folder::new();
            put(&folder.path().join("cordis.yml"));

            let ended = folder.run(arguments, "y\n");

            assert_eq!(ended.err, format!("nano-cordis: cordis.yml: {problem}\n"));
            assert_eq!((ended.out.as_str(), ended.code()), ("", 2));
            assert!(!folder.has(".nano"));
        }
    }
}

#[test]
fn as_a_save_whatever_is_no_list_changes_nothing_and_is_said_once() {
    for (put, problem) in PLACES {
        let folder = Folder::with(&scripted("{content: Hello}"));
        let mut terminal = Terminal::start(folder.command(&[]));
        terminal.wait_for("you> ");

        fs::remove_file(folder.path().join("cordis.yml")).unwrap();
        put(&folder.path().join("cordis.yml"));
        terminal.wait_for("[nano-cordis] cordis.yml not applied: ");
        terminal.type_keys("one\r");
        terminal.wait_for("assistant> Hello");
        terminal.wait_for("you> ");
        terminal.type_keys(CTRL_D);
        let (shown, status) = terminal.ended();

        let in_one_line = shown.replace('\n', "");
        assert_eq!(in_one_line.matches("not applied").count(), 1, "{shown}");
        assert!(in_one_line.contains(problem), "{problem}: {shown}");
        assert_eq!(
            (status, said(&folder.log()), reason(&folder.log())),
            (0, vec!["one"], "completed")
        );
    }
}

#[test]
fn a_list_that_may_not_be_read_is_never_replaced_by_the_built_in_one() {
    // Nothing is closed to the superuser.
    if geteuid().is_root() {
        return;
    }
    let folder = Folder::with(&scripted("{content: Hello}"));
    let path = folder.path().join("cordis.yml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();

    let ended = folder.run(&["hi"], "y\n");

    assert!(ended.err.starts_with("nano-cordis: cordis.yml: it cannot be read: "), "{}", ended.err);
    assert_eq!((ended.out.as_str(), ended.code()), ("", 2));
}

#[test]
fn a_pipe_that_is_named_on_the_command_line_is_refused_too() {
    let folder = Folder::new();
    mkfifo(&folder.path().join("list"));

    let ended = Running::start(folder.command(&["--config", "list", "hi"])).ended_with_input_open();

    assert_eq!(
        ended.err,
        "nano-cordis: list: it cannot be read: it is a named pipe, not a regular file\n"
    );
    assert_eq!(ended.code(), 2);
}

fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}
