//! The sandbox, tried by commands that want to write elsewhere. Only the real program can become a command.

use std::fs;
use std::io::{Write, stderr};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use crate::support::{Ended, Folder, Running, list, script, texts};

/// As many sandboxes as Linux puts into each other: one more is refused, as all are where there is no Landlock.
const DEEPEST: usize = 16;

/// Why commands cannot be confined here with these arguments, if so.
fn obstacle(arguments: &[&str]) -> Option<String> {
    let mut trial = Command::new(env!("CARGO_BIN_EXE_nano-cordis"));
    let ended = trial.arg("--sandboxed-exec").args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
    (ended.stdout != b"confined\n").then_some(said)
}

/// Whether they can. If not, the test has not tested anything, and says so where the test program keeps nothing back.
fn is_possible(test: &str, arguments: &[&str]) -> bool {
    let obstacle = obstacle(arguments);
    if let Some(why) = &obstacle {
        let line = format!("NOT TESTED: no Landlock here ({why}): {test}\n");
        stderr().write_all(line.as_bytes()).unwrap();
    }
    obstacle.is_none()
}

/// The list of an agent that has these commands run, unasked, in a sandbox of this config.
fn confined(commands: &[&str], config: &str) -> String {
    let calls = commands.iter().map(|it| {
        let arguments = json!({ "command": it }).to_string();
        format!("{{tool: bash, args: {}}}, ", json!(arguments))
    });
    let model = script(&format!("{}{{content: done}}", calls.collect::<String>()));
    let unasked = "name: approval, config: {tools: []}";
    let list = list(&[("llm", &model), ("approval", unasked)]);
    format!("{list}- {{id: box, name: sandbox, config: {config}}}\n")
}

/// A project, and a folder outside of it with a file `kept`.
struct Place {
    folder: Folder,
    outside: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: Folder::new(), outside: tempfile::tempdir().unwrap() };
        fs::write(place.outside.path().join("kept"), "old").unwrap();
        fs::create_dir(place.folder.path().join("tmp")).unwrap();
        place
    }

    fn outside(&self) -> &str {
        self.outside.path().to_str().unwrap()
    }

    /// The program in this place, where `$O` is the folder outside.
    fn command(&self, list: &str) -> Command {
        self.folder.save(list);
        self.surround(self.folder.command(&["hi"]))
    }

    fn surround(&self, mut command: Command) -> Command {
        command.env("TMPDIR", self.folder.path().join("tmp")).env("O", self.outside.path());
        command
    }

    /// What came of these commands.
    fn results(&self, commands: &[&str], config: &str) -> Vec<String> {
        let ended = Running::start(self.command(&confined(commands, config))).ended();
        assert_eq!(ended.code(), 0, "{ended:?}");
        let log = self.folder.log();
        texts(&log, "tool/result").into_iter().map(str::to_owned).collect()
    }

    fn is_untouched(&self) -> bool {
        let files = fs::read_dir(&self.outside).unwrap().count();
        let kept = fs::read_to_string(self.outside.path().join("kept"));
        files == 1 && kept.is_ok_and(|it| it == "old")
    }
}

#[test]
fn d_66_no_way_of_writing_elsewhere_works() {
    let ways = [
        "echo new > $O/kept",
        "echo new >> $O/kept",
        "echo new > $O/other",
        "truncate -s 0 $O/kept",
        "cd $O && echo new > kept",
        "rm -f $O/kept",
        "mkdir $O/other",
        "mkfifo $O/other",
        "ln -s x $O/other",
        "ln -s $O/kept link && echo new > link",
        "ln -s $O folder && echo new > folder/other",
        "mv $O/kept .",
        "echo new > mine && mv mine $O/other",
        "echo new > mine && mv -f mine $O/kept",
        "ln $O/kept hard && echo new > hard",
        "echo new > mine && ln mine $O/other",
        "echo new > /proc/self/root$O/kept",
        "echo new > /proc/$PPID/root$O/kept",
        "cd /proc/self/root && echo new > .$O/kept",
        "bash -c \"bash -c 'echo new > $O/kept'\"",
        "setsid -w bash -c 'echo new > $O/kept'",
        "(echo new > $O/kept) & wait $!",
        "env -i $(command -v bash) -c \"echo new > $O/kept\"",
        "echo new > $TMPDIR/../../$(basename $O)/kept",
    ];
    if !is_possible("no way of writing elsewhere works", &[]) {
        return;
    }
    for way in ways {
        let place = Place::new();
        let mut unconfined = place.surround(Command::new("bash"));
        unconfined.args(["-c", way]).current_dir(place.folder.path()).output().unwrap();
        assert!(!place.is_untouched(), "{way} writes nowhere");
    }
    let place = Place::new();

    let results = place.results(&ways, "{}");

    for (way, result) in ways.iter().zip(&results) {
        assert!(!result.contains("[exit code: 0]"), "{way}: {result}");
    }
    assert_eq!(results.len(), ways.len());
    assert!(place.is_untouched(), "{results:?}");
}

#[test]
fn d_66_a_file_that_was_open_when_the_program_began_is_closed_to_commands() {
    if !is_possible("an inherited descriptor is closed", &[]) {
        return;
    }
    let place = Place::new();
    let ways = ["echo new >&9", "echo new > /proc/self/fd/9", "echo new > /proc/$PPID/fd/9"];
    place.folder.save(&confined(&ways, "{}"));

    let line = format!("exec nano-cordis hi 9>> {}/kept", place.outside());
    let ended = Running::start(place.surround(place.folder.shell_command(&line))).ended();

    assert_eq!((ended.code(), ended.out.matches("[exit code: 1]").count()), (0, 3), "{ended:?}");
    assert!(place.is_untouched());
}

#[test]
fn in_the_project_and_among_temporary_files_all_is_as_without() {
    if !is_possible("in the project all is as without a sandbox", &[]) {
        return;
    }
    let place = Place::new();
    let commands = [
        "echo a > a && mkdir -p b/c && mv a b/c/a && ln b/c/a d && ln -s d e && echo f >> e && cat b/c/a",
        "truncate -s 0 d && rm -r b d e && mkfifo g && rm g",
        "cd $(mktemp -d) && echo a > a && mv a $OLDPWD/a",
        "echo x > /dev/null && echo err > /dev/stderr && echo y | tee /dev/stdout > /dev/null",
        "cat $O/kept && ls $O > /dev/null",
        "sleep 1000 & kill $!",
        "kill -0 $PPID",
    ];

    let results = place.results(&commands, "{}");

    for (command, result) in commands.iter().zip(&results) {
        assert!(
            result.contains("[exit code: 0]") && !result.contains("[sandbox"),
            "{command}: {result}"
        );
    }
    assert!(place.folder.has("a"));
}

#[test]
fn a_denial_is_one_line_that_says_what_is_possible() {
    if !is_possible("a denial is one line", &[]) {
        return;
    }
    let place = Place::new();

    let results = place.results(&["echo new > $O/kept", "mv $O/kept .", "false"], "{}");

    let folder = fs::canonicalize(place.folder.path()).unwrap();
    let line = format!("\n[sandbox: commands can write below {0}, {0}/tmp only]", folder.display());
    assert!(
        results[0].ends_with(&format!("Permission denied\n\n[exit code: 1]{line}")),
        "{results:?}"
    );
    assert_eq!(results[1].matches("[sandbox: ").count(), 1, "{results:?}");
    assert_eq!(results[2], "(no output)\n[exit code: 1]");
}

#[test]
fn what_the_config_names_is_writable_too() {
    if !is_possible("what the config names is writable", &[]) {
        return;
    }
    let place = Place::new();
    let config = format!("{{writable: [{}, /dev/null]}}", json!(place.outside.path().join("kept")));

    let results = place.results(&["echo -n new > $O/kept", "echo new > $O/other"], &config);

    assert!(results[0].contains("[exit code: 0]"), "{results:?}");
    assert!(results[1].contains("[exit code: 1]"), "{results:?}");
    assert_eq!(fs::read_to_string(place.outside.path().join("kept")).unwrap(), "new");
}

#[test]
fn a_writable_path_that_is_not_there_or_is_everything_is_refused_by_name() {
    for (writable, why) in [
        ("nothing", "/nothing is not there; make it"),
        ("/tmp/..", "/tmp/.. is the root of all files, so nothing would be confined"),
    ] {
        let place = Place::new();
        let list = confined(&["touch ran"], &format!("{{writable: [{writable}]}}"));

        let ended = Running::start(place.command(&list)).ended();

        assert_eq!(ended.code(), 2, "{ended:?}");
        assert!(ended.err.contains("entry `box`") && ended.err.contains(why), "{ended:?}");
        assert!(!place.folder.has("ran"));
    }
}

#[test]
fn without_network_no_connection_is_made_and_none_is_taken() {
    if !is_possible("there is no network", &["--no-network"]) {
        return;
    }
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{}", server.local_addr().unwrap().port());

    let open = Place::new().results(&[&connect], "{}");
    let closed = Place::new().results(&[&connect], "{network: off}");

    assert!(open[0].contains("[exit code: 0]"), "{open:?}");
    assert!(closed[0].contains("[exit code: 1]"), "{closed:?}");
    assert!(closed[0].ends_with(" only and use no TCP]"), "{closed:?}");
}

#[test]
fn hooks_are_confined_as_well() {
    if !is_possible("hooks are confined", &[]) {
        return;
    }
    let place = Place::new();
    let hook = "echo new > $O/kept; echo in > inside";
    let hooks = json!({ "PreToolUse": [{ "command": hook }] });
    let list =
        format!("{}- {{id: hooks, name: hooks, config: {hooks}}}\n", confined(&["true"], "{}"));

    let ended = Running::start(place.command(&list)).ended();

    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(place.folder.has("inside") && place.is_untouched(), "{ended:?}");
}

#[test]
fn the_shell_of_a_script_is_confined_as_well() {
    if !is_possible("the shell of a script is confined", &[]) {
        return;
    }
    let place = Place::new();
    let shell =
        "import { LocalShell } from 'cordis'\nexport default class Mine extends LocalShell {}\n";
    place.folder.write("shell.ts", shell);
    let list = confined(&["echo new > $O/kept", "echo in > inside"], "{}");

    let list = list.replace("name: shell-local", "name: ./shell.ts");
    let ended = Running::start(place.command(&list)).ended();

    assert!(ended.out.contains("Permission denied"), "{ended:?}");
    assert!(place.folder.has("inside") && place.is_untouched(), "{ended:?}");
}

#[test]
fn a_program_whose_file_is_gone_still_confines() {
    if !is_possible("a program whose file is gone still confines", &[]) {
        return;
    }
    let place = Place::new();
    fs::copy(env!("CARGO_BIN_EXE_nano-cordis"), place.folder.path().join("program")).unwrap();
    place.folder.save(&confined(&["rm program", "echo still", "echo new > $O/kept"], "{}"));

    let ended =
        Running::start(place.surround(place.folder.shell_command("exec ./program hi"))).ended();

    assert!(ended.out.contains("[result] still"), "{ended:?}");
    assert!(place.is_untouched() && !place.folder.has("program"));
}

/// The program at the bottom of so many sandboxes.
fn in_sandboxes(depth: usize, place: &Place, arguments: &str) -> Ended {
    let around = "nano-cordis --sandboxed-exec --writable / -- ".repeat(depth);
    let line = format!("exec {around} nano-cordis {arguments}");
    Running::start(place.surround(place.folder.shell_command(&line))).ended()
}

#[test]
fn where_the_kernel_cannot_nothing_runs_and_the_way_out_is_named() {
    let place = Place::new();
    place.folder.save(&confined(&["touch ran"], "{}"));
    // Where it never can, the plain program meets the same end.
    let depth = if obstacle(&[]).is_none() { DEEPEST } else { 0 };
    let run = |arguments: &str| in_sandboxes(depth, &place, arguments);

    let refused = run("hi");
    assert_eq!(refused.code(), 2, "{refused:?}");
    assert!(refused.err.contains("entry `box`: "), "{refused:?}");
    assert!(refused.err.contains("commands cannot be confined here: "), "{refused:?}");
    assert!(refused.err.contains("`--disable` with its id"), "{refused:?}");
    assert!(!place.folder.has("ran"));

    let unconfined = run("--disable box hi");
    assert_eq!((unconfined.code(), place.folder.has("ran")), (0, true), "{unconfined:?}");
}

#[test]
fn d_17_d_20_it_is_a_guard() {
    for (entry, why) in [
        ("{id: box, name: sandbox, optional: true}", "optional"),
        ("{id: box, name: sandbox, config: {writeable: []}}", "did you mean `writable`?"),
        (
            "{id: box, name: sandbox, config: {network: none}}",
            "config.network: must be one of `on`, `off`",
        ),
    ] {
        let folder = Folder::with(&format!("{}- {entry}\n", list(&[])));

        let ended = folder.run(&["hi"], "");

        assert_eq!(ended.code(), 2, "{ended:?}");
        assert!(ended.err.contains("`box`") && ended.err.contains(why), "{ended:?}");
    }
}

#[test]
fn the_hidden_command_line_is_in_no_help_and_runs_nothing_that_it_does_not_understand() {
    let folder = Folder::new();

    let help = folder.run(&["--help"], "");
    assert!(!help.out.contains("sandboxed"), "{help:?}");

    for arguments in
        [&["--", "touch", "ran"][..], &["--other", "--", "touch", "ran"], &["--writable"]]
    {
        let arguments =
            [&["--sandboxed-exec", "--writable", "/no/such/folder"], arguments].concat();
        let ended = folder.run(&arguments, "");
        assert!(ended.code() == 126 && ended.err.starts_with("sandbox: "), "{ended:?}");
    }
    assert!(!folder.has("ran"));
}

#[test]
fn the_sandbox_of_the_readme_is_a_configuration_that_fits() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = fs::read_to_string(readme).unwrap();
    let mut blocks = text.split("```yaml\n").skip(1).map(|it| it.split("```").next().unwrap());
    let block = blocks.find(|it| it.contains("name: sandbox")).unwrap();
    let folder = Folder::with(&(list(&[]) + block));
    fs::create_dir_all(folder.path().join(".cargo")).unwrap();

    let ended = folder.run(&["--check"], "");

    if is_possible("the sandbox of the README", &["--no-network"]) {
        assert_eq!(ended.code(), 0, "{ended:?}");
    }
}
