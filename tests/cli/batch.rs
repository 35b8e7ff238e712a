//! `examples/batch`: many runs at once under a runner, each with a folder of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::support::{Ended, Folder, Running};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/batch");
const SCRIPT: &str = "one.sh";

/// A copy of the example, with this many tasks.
fn copy(tasks: usize) -> Folder {
    let folder = Folder::new();
    for name in [SCRIPT, "cordis.yml"] {
        fs::copy(Path::new(EXAMPLE).join(name), folder.path().join(name)).unwrap();
    }
    fs::create_dir(folder.path().join("tasks")).unwrap();
    for number in 0..tasks {
        folder.write(&format!("tasks/{number:03}.txt"), &format!("第 {number} 个任务\n"));
    }
    folder
}

/// A line for the shell of which the script finds the program.
fn shell(folder: &Folder, line: &str) -> Ended {
    let mut command = folder.shell_command(line);
    command.env("NANO_CORDIS", env!("CARGO_BIN_EXE_nano-cordis"));
    let mut running = Running::start(command);
    running.end_of_input();
    running.ended()
}

fn result(folder: &Folder, task: &str) -> Value {
    let path = folder.path().join("results").join(task).join("result.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn each_of_many_runs_has_its_own_folder_and_one_result() {
    let folder = copy(24);

    let ended = shell(&folder, "ls tasks/*.txt | xargs -P 8 -n 1 ./one.sh");

    assert_eq!((ended.code(), ended.err.as_str()), (0, ""), "{ended:?}");
    for number in 0..24 {
        let task = format!("{number:03}");
        let result = result(&folder, &task);
        assert_eq!((&result["reason"], &result["exitCode"]), (&"completed".into(), &0.into()));
        let own = folder.path().join("results").join(&task);
        assert_eq!(fs::read_to_string(own.join("answer.txt")).unwrap(), "42\n");
        assert_eq!(fs::read_dir(own.join(".nano/sessions")).unwrap().count(), 1);
    }
}

#[test]
fn a_run_that_fails_has_its_result_its_words_and_its_status() {
    let folder = copy(1);
    let list = fs::read_to_string(folder.path().join("cordis.yml")).unwrap();
    let at = list.find("    script:").unwrap();
    folder.save(&format!("{}    script: [{{error: the service is away}}]\n", &list[..at]));

    let ended = shell(&folder, "./one.sh tasks/000.txt");

    assert_eq!(ended.code(), 1, "{ended:?}");
    assert_eq!(result(&folder, "000")["error"]["message"], "the service is away");
    let errors = fs::read_to_string(folder.path().join("results/000/errors.txt")).unwrap();
    assert!(errors.contains("the service is away"), "{errors}");
}

#[test]
fn a_run_that_was_killed_leaves_no_result_that_looks_whole() {
    let folder = copy(1);
    shell(&folder, "./one.sh tasks/000.txt");
    assert!(folder.has("results/000/result.json"));
    let program = folder.path().join("killed");
    fs::write(&program, "#!/bin/bash\nprintf '{\"schema\":1'\nkill -9 $$\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();

    let ended = shell(&folder, "NANO_CORDIS=$PWD/killed ./one.sh tasks/000.txt");

    assert_eq!(ended.code(), 137, "{ended:?}");
    assert!(!folder.has("results/000/result.json"));
}

#[test]
fn a_task_that_is_not_there_is_status_2_and_no_folder() {
    let folder = copy(0);

    let ended = shell(&folder, "./one.sh tasks/none.txt");

    assert_eq!(ended.code(), 2, "{ended:?}");
    assert!(ended.err.contains("tasks/none.txt"), "{ended:?}");
    assert!(!folder.has("results"));
}

#[test]
fn the_manifest_is_yaml_and_runs_the_same_script() {
    let text = fs::read_to_string(Path::new(EXAMPLE).join("job.yaml")).unwrap();

    let job: Value = serde_yaml::from_str(&text).unwrap();

    let container = &job["spec"]["template"]["spec"]["containers"][0];
    let line = container["args"][0].as_str().unwrap();
    assert_eq!((&job["kind"], &job["spec"]["completionMode"]), (&"Job".into(), &"Indexed".into()));
    assert!(line.contains(SCRIPT) && line.contains("$JOB_COMPLETION_INDEX"), "{line}");
    // Only indexed jobs that do not restart their containers may have limits for each index.
    assert_eq!(job["spec"]["template"]["spec"]["restartPolicy"], "Never");
}
