//! What stands where `cordis.yml` should: at the start it is refused by name, as a save it changes nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
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
        "it cannot be read: it is a link to `nowhere.yml`, which is not there",
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

const BY_OTHERS: &str =
    "it is code, and other users can write it; read it, then: chmod go-w cordis.yml";

fn chmod(folder: &Folder, mode: u32) {
    fs::set_permissions(folder.path().join("cordis.yml"), fs::Permissions::from_mode(mode))
        .unwrap();
}

#[test]
fn a_list_that_others_can_write_is_refused_with_the_command_that_mends_it() {
    let folder = Folder::with(&scripted("{content: Hello}"));
    chmod(&folder, 0o666);

    let refused = folder.run(&["hi"], "");
    let mended = refused.err.rsplit_once("then: ").unwrap().1.trim().to_owned();
    assert!(folder.shell_command(&mended).status().unwrap().success());
    let trusted = folder.run(&["hi"], "");

    assert_eq!(refused.err, format!("nano-cordis: cordis.yml: {BY_OTHERS}\n"));
    assert_eq!((refused.out.as_str(), refused.code()), ("", 2));
    assert_eq!((trusted.out.as_str(), trusted.code()), ("assistant> Hello\n", 0));
}

#[test]
fn a_list_that_others_can_write_is_refused_as_a_save_too_and_applied_when_that_is_mended() {
    let folder = Folder::with(&scripted("{content: Hello}"));
    let mut running = Running::start(folder.command(&[]));
    running.wait_for_error("continue later");

    chmod(&folder, 0o646);
    folder.save(&scripted("{content: Changed}"));
    running.wait_for_error(&format!("[nano-cordis] cordis.yml not applied: {BY_OTHERS}\n"));
    running.write("one\n");
    running.wait_for_output("assistant> Hello\n");
    let mended = BY_OTHERS.rsplit_once("then: ").unwrap().1;
    assert!(folder.shell_command(mended).status().unwrap().success());
    running.wait_for_error("[nano-cordis] applied cordis.yml\n");
    running.end_of_input();

    assert_eq!(running.ended().code(), 0);
}

#[test]
fn a_list_of_another_user_is_refused_and_so_is_a_link_of_another_user() {
    // Only the superuser can give files away.
    if !geteuid().is_root() {
        return;
    }
    let (file, link) = (Folder::with(&scripted("{content: Hello}")), Folder::new());
    chown(file.path().join("cordis.yml"), Some(12_345), None).unwrap();
    link.write("list.yml", &scripted("{content: Hello}"));
    symlink("list.yml", link.path().join("cordis.yml")).unwrap();
    std::os::unix::fs::lchown(link.path().join("cordis.yml"), Some(12_345), None).unwrap();

    for folder in [file, link] {
        let ended = folder.run(&["hi"], "");

        let problem =
            "it is code, and belongs to another user (12345); read it, then: chown -h 0 cordis.yml";
        assert_eq!(ended.err, format!("nano-cordis: cordis.yml: {problem}\n"));
        assert_eq!((ended.out.as_str(), ended.code()), ("", 2));
    }
}

#[test]
fn at_a_terminal_a_list_says_what_it_is_about_to_do_and_the_built_in_one_does_not() {
    let model = "name: llm-openai, config: {baseUrl: 'http://127.0.0.1:9/v1?k=s', apiKeyEnv: MY_KEY, model: m}";
    let persona = "name: prompt, config: {persona: 'I am ${HOME}, ${HOME} or ${ALIAS:-nobody}, not $${PATH}'}";
    let own = Folder::with(&crate::support::list(&[("llm", model), ("prompt", persona)]));
    let mut with = Terminal::start_in(400, own.command(&[]));
    let mut without = Terminal::start(Folder::new().command(&[]));
    for terminal in [&mut with, &mut without] {
        terminal.wait_for("you> ");
        terminal.type_keys(CTRL_D);
    }
    let (with, without) = (with.ended().0, without.ended().0);

    let announced = "[nano-cordis] cordis.yml decides what runs here: requests go to 127.0.0.1:9; the key is in MY_KEY; \
                     its placeholders read ALIAS, HOME; asked about: bash; programs are started by shell-local\n";
    assert!(with.starts_with(announced), "{with}");
    assert!(!without.contains("decides"), "{without}");
}

#[test]
fn d_24_a_key_that_a_placeholder_puts_into_the_persona_is_in_no_log() {
    let model = "name: llm-openai, config: {baseUrl: 'http://127.0.0.1:9/v1', apiKeyEnv: MY_KEY, model: m, retries: 0}";
    let persona = "name: prompt, config: {persona: 'My code is ${MYCODE}.'}";
    let folder = Folder::with(&crate::support::list(&[("llm", model), ("prompt", persona)]));
    let mut command = folder.command(&["-vv", "hi"]);
    command.env("MY_KEY", "sk-123456789").env("MYCODE", "sk-123456789");

    let ended = Running::start(command).ended();

    let log = fs::read_to_string(&folder.sessions()[0]).unwrap();
    assert!(log.contains("My code is ***.") && !log.contains("sk-123456789"), "{log}");
    assert!(!ended.err.contains("sk-123456789"), "{}", ended.err);
}

#[test]
fn a_copy_of_the_built_in_list_is_not_announced() {
    let folder = Folder::with(include_str!("../../cordis.yml"));
    let mut terminal = Terminal::start(folder.command(&[]));
    terminal.wait_for("you> ");
    terminal.type_keys(CTRL_D);

    let shown = terminal.ended().0;

    assert!(!shown.contains("decides"), "{shown}");
}

#[test]
fn a_list_that_leads_no_conversation_is_named() {
    let ended = Folder::with("[]\n").run(&["hi"], "");

    assert!(ended.err.starts_with("nano-cordis: cordis.yml: no entry leads"), "{}", ended.err);
    assert_eq!(ended.code(), 2);
}

fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}
