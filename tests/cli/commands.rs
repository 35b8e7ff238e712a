//! What commands do to the program, and what the model is told of them: the cases of the bash tool.

use std::fs;

use serde_json::Value;

use crate::model::Model;
use crate::support::{Ended, Folder, Running, kinds, reason, texts, until};
use crate::terminal::Terminal;

/// What the user says to have these commands run.
fn said(commands: &[impl AsRef<str>]) -> String {
    let lines: Vec<_> = commands.iter().map(|it| format!("$ {}", it.as_ref())).collect();
    lines.join("\n")
}

/// What the model is told of these commands, which run in one turn; and how the program ended.
fn run_in(folder: &Folder, model: &Model, shell: &str, commands: &[&str]) -> (Vec<String>, Ended) {
    folder.save(&model.list(shell));
    let ended = folder.run(&["-"], &said(commands));
    assert_eq!(model.faults(), Vec::<String>::new());
    (texts(&folder.log(), "tool/result").into_iter().map(Into::into).collect(), ended)
}

fn run(shell: &str, commands: &[&str]) -> Vec<String> {
    let (results, ended) = run_in(&Folder::new(), &Model::start(), shell, commands);
    assert_eq!(ended.code(), 0, "{}", ended.err);
    results
}

#[test]
fn a_09_a_deadline_stops_a_child_that_ignores_it_before_it_writes() {
    let folder = Folder::new();
    let command = "trap '' TERM; (trap '' TERM; sleep 4; echo late > late.txt) & echo $! > pid; echo early; sleep 30";

    let (results, _) = run_in(&folder, &Model::start(), "timeoutMs: 2000", &[command]);

    let pid = fs::read_to_string(folder.path().join("pid")).unwrap();
    let status = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    assert!(results[0].starts_with("early\n\n[timed out after 2000ms]\n"), "{results:?}");
    assert!(status.is_empty() || status.contains(") Z "), "{status}");
    assert!(!folder.has("late.txt"));
}

#[test]
fn a_10_at_a_terminal_no_command_gets_it_and_none_waits_for_an_answer() {
    let model = Model::start();
    let folder = Folder::with(&model.list("timeoutMs: 20000"));
    let repository = "git init -q r && cd r && git config user.name n && git config user.email e";
    let editor = "sh -c 'cat </dev/tty'";
    let commands = [
        "read x; echo \"got:[$x]\"".to_owned(),
        "cat </dev/tty || echo no-tty".to_owned(),
        "stty -echo </dev/tty || echo no-tty".to_owned(),
        format!(
            "{repository}; git -c core.editor=\"{editor}\" commit -q --allow-empty -e -m x; git commit -q --allow-empty -m y"
        ),
        format!("cd r; git -c sequence.editor=\"{editor}\" rebase -q -i --root"),
    ];

    let terminal = Terminal::start(folder.command(&[&said(&commands)]));
    let (before, after) = (terminal.modes_at_first.clone(), terminal.modes_at_the_end());
    let (shown, status) = terminal.ended();

    let log = folder.log();
    let results = texts(&log, "tool/result");
    assert_eq!((after, status), (before, 0), "{shown}");
    assert_eq!(results[0], "got:[]\n\n[exit code: 0]");
    for (result, end) in results[1..].iter().zip(["no-tty", "no-tty", "", ""]) {
        assert!(result.contains(end) && result.ends_with("[exit code: 0]"), "{result}");
        assert!(!result.contains("[timed out"), "{result}");
    }
}

#[test]
fn a_11_output_that_is_not_utf_8_is_replaced_and_told_and_the_log_stays_json() {
    let folder = Folder::new();
    let command = "printf 'a\\377\\376b\\000c\\001\\033\\n'; printf '\\345\\223'; sleep 0.3; printf '\\210\\n'";

    let (results, ended) = run_in(&folder, &Model::start(), "", &[command]);

    assert_eq!(ended.code(), 0, "{}", ended.err);
    let expected = "a\u{FFFD}\u{FFFD}b\0c\u{1}\u{1b}\n哈\n\n[bytes that are not UTF-8 were replaced]\n[exit code: 0]";
    assert_eq!(results, [expected]);
    let text = fs::read_to_string(&folder.sessions()[0]).unwrap();
    assert!(text.lines().all(|it| serde_json::from_str::<Value>(it).is_ok()));
    assert_eq!(reason(&folder.log()), "completed");
}

#[test]
fn a_11_a_binary_and_a_cut_character_at_every_place_do_no_harm() {
    let each_half = "for i in {1..3}; do printf '\\360\\237\\230\\200' | head -c $i; echo; done";

    let results = run("", &["head -c 50000 /dev/urandom", each_half]);

    assert!(results[0].contains("left out") && results[0].contains("were replaced"));
    assert_eq!(results[1].matches('\u{FFFD}').count(), 3);
}

/// The most memory that the program ever had, in kB, after a command that prints until its deadline.
fn peak_of_endless_output(timeout_ms: u32) -> u64 {
    let folder = Folder::with(&Model::start().list(&format!("timeoutMs: {timeout_ms}")));
    let mut running = Running::start(folder.command(&[]));
    running.write("$ yes abcdefgh\n");
    until("the result", || {
        folder.sessions().len() == 1 && kinds(&folder.log()).contains(&"tool/result")
    });
    let status = fs::read_to_string(format!("/proc/{}/status", running.id())).unwrap();
    running.end_of_input();
    assert_eq!(running.ended().code(), 0);
    let peak = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_12_memory_does_not_grow_while_a_command_prints_for_ever() {
    let (short, long) = (peak_of_endless_output(300), peak_of_endless_output(3000));

    assert!(long < 100_000, "{long} kB");
    assert!(long < short + 4_000, "{short} kB, then {long} kB");
}

#[test]
fn a_12_gigabytes_in_one_line_or_on_stderr_first_give_a_short_result_with_the_count() {
    let one_line = "head -c 50000000 /dev/zero | tr '\\0' x";
    let errors_first = "head -c 300000 /dev/zero | tr '\\0' e >&2; echo ok";

    let results = run("", &[one_line, errors_first]);

    assert!(results[0].contains("49970000 bytes left out") && results[0].len() < 31_000);
    assert!(
        results[1].starts_with("ok\n[stderr]\ne") && results[1].contains("270000 bytes left out")
    );
}

#[test]
fn a_13_how_a_command_ended_stands_on_its_own_line_whatever_it_printed() {
    let results = run(
        "",
        &[
            "printf 'tail-without-newline'; kill -9 $$",
            "true",
            "exit 300",
            "printf x",
            "kill -SEGV $$",
            "printf 'e' >&2; false",
        ],
    );

    assert_eq!(
        results,
        [
            "tail-without-newline\n[killed by signal: SIGKILL, exit code: 137]",
            "(no output)\n[exit code: 0]",
            "(no output)\n[exit code: 44]",
            "x\n[exit code: 0]",
            "(no output)\n[killed by signal: SIGSEGV, exit code: 139]",
            "[stderr]\ne\n[exit code: 1]",
        ]
    );
}

#[test]
fn a_16_a_progress_bar_is_told_to_the_model_as_it_looks_in_the_end() {
    let bar = "printf 'A\\033[2J\\033]0;T\\007B\\n'; for i in {1..5000}; do printf '\\r%d%%' $i; done; echo";

    let results = run("", &[bar]);

    let [result] = &results[..] else { unreachable!("there is one call") };
    assert!(
        result.starts_with('A') && result.ends_with("B\n5000%\n\n[exit code: 0]"),
        "{result:?}"
    );
    assert!(result.len() < 100);
}

#[test]
fn a_14_a_working_directory_that_is_gone_is_named_and_nothing_runs_elsewhere() {
    let (outside, model) = (Folder::new(), Model::start());
    let logs = outside.path().join("logs");
    let work = outside.path().join("work");
    fs::create_dir(&work).unwrap();
    let keep = format!(
        "\n- {{id: persistence, name: persistence, config: {{dir: '{}'}}}}\n",
        logs.display()
    );
    let list = model.list("").replace("\n- {id: persistence, name: persistence}\n", &keep);
    outside.write("work/cordis.yml", &list);
    let mut command =
        outside.command(&["$ rm -rf ../work; echo gone\n$ touch still; echo still\n"]);
    command.current_dir(&work);

    let mut running = Running::start(command);
    running.end_of_input();
    let ended = running.ended();

    let log = fs::read_dir(&logs).unwrap().map(|it| it.unwrap().path());
    let log = log.filter(|it| it.extension().is_some_and(|it| it == "jsonl"));
    let events = crate::support::events(&log.last().unwrap());
    let results = texts(&events, "tool/result");
    assert_eq!((ended.code(), reason(&events)), (0, "completed"), "{}", ended.err);
    assert_eq!(results[0], "gone\n\n[exit code: 0]");
    assert_eq!(results[1], format!("Error: the working directory {} is not there", work.display()));
    assert!(!outside.has("still") && model.faults().is_empty());
}

#[test]
fn a_14_a_log_that_went_with_the_directory_is_said_and_nothing_more_runs() {
    let (outside, model) = (Folder::new(), Model::start());
    fs::create_dir(outside.path().join("work")).unwrap();
    outside.write("work/cordis.yml", &model.list(""));
    let mut command =
        outside.command(&["$ rm -rf ../work; echo gone\n$ touch ../ran; echo still\n"]);
    command.current_dir(outside.path().join("work"));

    let mut running = Running::start(command);
    running.end_of_input();
    let ended = running.ended();

    assert_eq!(ended.code(), 1, "{}", ended.err);
    assert!(ended.err.contains("jsonl was removed by another program"), "{}", ended.err);
    assert!(!outside.has("ran") && !outside.has("work"));
}

#[test]
fn a_15_a_nul_and_a_command_beyond_the_systems_limit_are_results_and_the_turn_goes_on() {
    let folder = Folder::new();
    let long = format!("cat > f <<'Q'\\n{}\\nQ", "x".repeat(200_000));

    let (results, ended) =
        run_in(&folder, &Model::start(), "", &["printf 'a<NUL>b'; touch ran", &long, "echo after"]);

    assert_eq!((ended.code(), results.len()), (0, 3), "{}", ended.err);
    assert!(results[0].starts_with("Error: ") && results[0].contains("NUL"), "{}", results[0]);
    assert!(results[1].contains("200016 bytes long"), "{}", results[1]);
    assert_eq!(results[2], "after\n\n[exit code: 0]");
    assert!(!folder.has("ran"));
}
