//! The local shell: what a command gives, what it gets, and what is refused.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    rc::Rc,
    time::Instant,
};

use nano_cordis::{
    cordis::plugin,
    harness::{
        env::Env,
        shell::{ShellError, ShellRequest},
        shell_local,
    },
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use self::rig::{names, plain, shell, shell_in};
use crate::support::{in_process, run};

mod ending;
mod rig;
mod secrets;
mod strays;

#[test]
fn h_127_a_command_gives_what_it_printed_and_its_exit_code() {
    shell(plain(), async |rig| {
        let result = rig.run("echo hello from nano").await;

        assert_eq!(result.stdout.text, "hello from nano\n");
        assert_eq!((result.exit_code, result.signal), (Some(0), None));
        assert!(!result.timed_out && !result.cancelled && !result.left_children);
    });
}

#[test]
fn a_program_whose_folder_is_gone_says_so() {
    let test = "shell::a_program_whose_folder_is_gone_says_so";
    let gone = "cd \"$NANO_TEST_DIR\" && mkdir gone && cd gone && rmdir ../gone";
    in_process(gone, test, |_| {
        run(async |app| {
            app.ctx.provide(Rc::new(Env::default())).unwrap();
            let mount = app.ctx.plugin(&plugin(shell_local::apply), json!({})).unwrap();
            mount.ready().await.unwrap_err();

            let report = app.take_report();
            assert!(report.contains("the folder that the program was started in"), "{report}");
        });
    });
}

#[test]
fn h_128_an_exit_code_is_a_result_and_no_error() {
    shell(plain(), async |rig| {
        assert_eq!(rig.run("exit 3").await.exit_code, Some(3));
        assert_eq!(rig.run("exit 300").await.exit_code, Some(44));
    });
}

#[test]
fn h_129_the_two_streams_are_kept_apart() {
    shell(plain(), async |rig| {
        let result = rig.run("echo err >&2; echo out").await;

        assert_eq!((result.stdout.text.as_str(), result.stderr.text.as_str()), ("out\n", "err\n"));
    });
}

#[test]
fn h_134_long_output_keeps_both_ends_and_a_file() {
    shell(plain(), async |rig| {
        // Three bytes a character: neither 20,000 nor 10,000 is a border.
        let result = rig.run("for i in {1..2000}; do printf '哈%.0s' {1..1700}; done").await;

        let output = result.stdout;
        let (head, rest) = output.text.split_once("\n… ").unwrap();
        let (note, tail) = rest.split_once(" …\n").unwrap();
        let path = output.file.unwrap();
        assert_eq!((head, tail), ("哈".repeat(6666).as_str(), "哈".repeat(3333).as_str()));
        assert_eq!(output.left_out, 10_200_000 - 3 * (6666 + 3333));
        assert_eq!(
            note,
            format!("{} bytes left out, first 64 MiB in {}", output.left_out, path.display())
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "哈".repeat(3_400_000));
        assert!(!output.replaced);
    });
}

#[test]
fn h_134_the_file_and_its_folder_are_for_the_user_alone() {
    shell(plain(), async |rig| {
        let result = rig.run("head -c 30001 /dev/zero").await;

        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(result.stdout.file.unwrap()), 0o600);
        assert_eq!(mode(rig.path("spill")), 0o700);
    });
}

#[test]
fn h_134_output_within_bounds_makes_no_file() {
    shell(plain(), async |rig| {
        let result = rig.run("head -c 30000 /dev/zero | tr '\\0' x").await;

        assert_eq!(result.stdout.text, "x".repeat(30_000));
        assert_eq!(names(&rig.path("spill")), Vec::<String>::new());
    });
}

#[test]
fn h_134_the_file_ends_at_64_mib_and_streams_do_not_share_one() {
    shell(plain(), async |rig| {
        let result = rig.run("head -c 70000000 /dev/zero; head -c 40000 /dev/zero >&2").await;

        let length = |path: &Option<PathBuf>| fs::metadata(path.as_ref().unwrap()).unwrap().len();
        assert_eq!(length(&result.stdout.file), 64 << 20);
        assert_eq!(length(&result.stderr.file), 40_000);
        assert_eq!(result.stdout.left_out, 69_970_000);
    });
}

#[test]
fn h_134_a_file_that_cannot_be_made_costs_only_the_file() {
    shell(plain(), async |rig| {
        fs::write(rig.path("spill"), "in the way").unwrap();

        let result = rig.run("head -c 40000 /dev/zero").await;

        assert_eq!((result.stdout.left_out, result.stdout.file), (10_000, None));
        assert!(result.stdout.text.contains("\n… 10000 bytes left out …\n"));
    });
}

#[test]
fn h_134_a_file_that_meets_a_limit_of_the_system_is_given_up_and_takes_no_room() {
    let test = "shell::h_134_a_file_that_meets_a_limit_of_the_system_is_given_up_and_takes_no_room";
    in_process("ulimit -f 80", test, |_| {
        shell(plain(), async |rig| {
            let result = rig.run("head -c 60000 /dev/zero").await;

            assert_eq!((result.stdout.left_out, result.stdout.file), (30_000, None));
            assert_eq!(names(&rig.path("spill")), Vec::<String>::new());
        });
    });
}

#[test]
fn h_134_no_file_is_made_behind_a_link() {
    shell(plain(), async |rig| {
        fs::create_dir(rig.path("elsewhere")).unwrap();
        symlink("elsewhere", rig.path("spill")).unwrap();

        let result = rig.run("head -c 60000 /dev/zero").await;

        assert_eq!((result.stdout.left_out, result.stdout.file), (30_000, None));
        assert_eq!(names(&rig.path("elsewhere")), Vec::<String>::new());
    });
}

#[test]
fn h_134_without_a_folder_the_file_goes_to_a_private_one_that_ends_with_the_shell() {
    shell(plain(), async |rig| {
        let request =
            ShellRequest { command: "head -c 40000 /dev/zero".into(), ..ShellRequest::default() };

        let file =
            rig.try_run(&request, CancellationToken::new()).await.unwrap().stdout.file.unwrap();
        let was_there = file.exists();
        rig.unload().await;

        assert!(was_there);
        assert!(!file.parent().unwrap().exists());
    });
}

#[test]
fn h_135_bytes_that_are_not_utf_8_are_replaced_and_characters_in_two_pieces_are_not() {
    shell(plain(), async |rig| {
        let mut bell = rig.bell();
        let pieces = rig.run(
            "printf 'a\\377\\376b\\000c\\n\\345\\223'; echo > bell; read < go; printf '\\210\\n'",
        );

        let (result, ()) = tokio::join!(pieces, async {
            bell.rung().await;
            bell.go();
        });

        assert_eq!(result.stdout.text, "a\u{FFFD}\u{FFFD}b\0c\n哈\n");
        assert!(result.stdout.replaced);
    });
}

#[test]
fn a_10_commands_are_told_that_nobody_is_there() {
    shell(plain(), async |rig| {
        let result =
            rig.run("echo $NO_COLOR $TERM $PAGER $GIT_PAGER; cat </dev/tty || echo no-tty").await;

        assert_eq!(result.stdout.text, "1 dumb cat cat\nno-tty\n");
    });
}

#[test]
fn bash_reads_no_file_of_the_user_before_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let rc = folder.path().join("rc");
    fs::write(&rc, "echo from rc").unwrap();
    shell_in(plain(), [("BASH_ENV", rc.to_str().unwrap())], async |rig| {
        assert_eq!(rig.run("echo from command").await.stdout.text, "from command\n");
    });
}

#[test]
fn a_command_that_begins_with_a_dash_is_no_option() {
    shell(plain(), async |rig| {
        assert_eq!(rig.run("--version").await.exit_code, Some(127));
    });
}

#[test]
fn h_137_input_is_at_its_end_at_once() {
    shell(plain(), async |rig| {
        assert_eq!(rig.run("read x; echo \"got:[$x]\"").await.stdout.text, "got:[]\n");
    });
}

#[test]
fn h_138_a_spec_has_everything_and_stays_below_the_cap() {
    shell(json!({ "timeoutMs": 5000, "maxTimeoutMs": 9000 }), async |rig| {
        let resolve = |timeout_ms| {
            rig.shell()
                .resolve(&ShellRequest {
                    command: "true".into(),
                    timeout_ms,
                    ..ShellRequest::default()
                })
                .unwrap()
        };

        assert_eq!(resolve(None).timeout_ms, 5000);
        assert_eq!(resolve(Some(7000)).timeout_ms, 7000);
        assert_eq!(resolve(Some(10_000)).timeout_ms, 9000);
        assert_eq!(resolve(None).cwd, std::env::current_dir().unwrap());
    });
}

#[test]
fn h_138_a_relative_folder_starts_at_the_folder_of_the_program() {
    shell(plain(), async |rig| {
        let request = ShellRequest {
            command: "pwd".into(),
            cwd: Some("tests".into()),
            ..ShellRequest::default()
        };

        let result = rig.try_run(&request, CancellationToken::new()).await.unwrap();

        assert_eq!(
            PathBuf::from(result.stdout.text.trim()),
            std::env::current_dir().unwrap().join("tests")
        );
    });
}

#[test]
fn h_140_a_missing_folder_is_named_and_bash_is_not_blamed() {
    shell(plain(), async |rig| {
        let request = ShellRequest { cwd: Some(rig.path("gone")), ..rig.request("true") };

        let err = rig.try_run(&request, CancellationToken::new()).await.unwrap_err();

        assert!(
            matches!(&err, ShellError::NoDirectory { path } if *path == rig.path("gone")),
            "{err}"
        );
    });
}

#[test]
fn a_14_a_folder_that_a_command_removed_is_named_too() {
    shell(plain(), async |rig| {
        let work = rig.path("work");
        fs::create_dir(&work).unwrap();
        let request = |command| ShellRequest { cwd: Some(work.clone()), ..rig.request(command) };

        let first = rig
            .try_run(&request("rm -rf ../work; echo gone"), CancellationToken::new())
            .await
            .unwrap();
        let second =
            rig.try_run(&request("echo still"), CancellationToken::new()).await.unwrap_err();

        assert_eq!(first.stdout.text, "gone\n");
        assert!(second.to_string().contains(work.to_str().unwrap()), "{second}");
    });
}

#[test]
fn a_15_a_nul_byte_is_refused_before_anything_runs() {
    shell(plain(), async |rig| {
        let err = rig.shell().resolve(&rig.request("printf 'a\0b'; touch ran")).unwrap_err();

        assert!(matches!(err, ShellError::NulByte));
    });
}

#[test]
fn a_15_a_command_that_the_system_does_not_take_is_refused_with_its_length() {
    shell(plain(), async |rig| {
        let long = format!("cat > f <<'Q'\n{}\nQ", "x".repeat(4 << 20));

        let err = rig.try_run(&rig.request(&long), CancellationToken::new()).await.unwrap_err();

        assert!(matches!(err, ShellError::TooLong { bytes } if bytes == long.len()), "{err}");
    });
}

#[test]
fn without_bash_the_error_says_what_to_do() {
    shell_in(plain(), [("PATH", "/nowhere")], async |rig| {
        let err = rig.try_run(&rig.request("true"), CancellationToken::new()).await.unwrap_err();

        assert!(matches!(err, ShellError::NoBash), "{err}");
        assert!(err.to_string().contains("cordis.yml"), "{err}");
    });
}

#[test]
fn a_12_a_stream_that_is_filled_first_does_not_block_the_other() {
    shell(plain(), async |rig| {
        let result = rig.run("head -c 300000 /dev/zero | tr '\\0' e >&2; echo ok").await;

        assert_eq!(result.stdout.text, "ok\n");
        assert_eq!(result.stderr.left_out, 270_000);
    });
}

#[test]
fn a_12_the_deadline_comes_under_full_output() {
    shell(plain(), async |rig| {
        let begun = Instant::now();

        let result = rig.run_for("yes abcdefgh", Some(700)).await;

        assert!(result.timed_out && result.stdout.left_out > 0);
        assert!(begun.elapsed().as_millis() < 3000, "{:?}", begun.elapsed());
    });
}
