//! Two hundred reloads in one conversation: nothing is left behind by any of them.

use std::fs;

use crate::support::{Folder, Running, list, script};

/// What the system knows of a process.
#[derive(Debug, PartialEq, Eq)]
struct Holdings {
    descriptors: usize,
    threads: usize,
}

fn count(id: u32, what: &str) -> usize {
    fs::read_dir(format!("/proc/{id}/{what}")).unwrap().count()
}

/// Resident memory in KiB.
fn memory(id: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The list in one of many versions: nearly everything starts anew with each of them.
fn version(number: usize) -> String {
    let persona = format!("name: prompt, config: {{persona: version {number}}}");
    let model = script(&format!(
        "{{tool: bash, args: {{command: echo {number}}}}}, {{content: Done {number}}}"
    ));
    list(&[
        ("prompt", &persona),
        ("llm", &model),
        ("approval", "name: approval, config: {tools: []}"),
    ])
}

#[test]
fn two_hundred_reloads_hold_no_more_than_twenty() {
    let folder = Folder::with(&version(0));
    let mut running = Running::start(folder.command(&[]));
    running.wait_for_error("continue later");
    let mut reload = |number: usize| {
        folder.save(&version(number));
        running.wait_for_errors("applied cordis.yml\n", number);
        if number.is_multiple_of(20) {
            running.write("go\n");
            running.wait_for_output(&format!("assistant> Done {number}\n"));
        }
        let id = running.id();
        (Holdings { descriptors: count(id, "fd"), threads: count(id, "task") }, memory(id))
    };

    let (held, resident) = (1..=20).map(&mut reload).last().unwrap();
    let (held_later, resident_later) = (21..=200).map(&mut reload).last().unwrap();
    running.end_of_input();
    let ended = running.ended();

    assert_eq!(held, held_later);
    assert!(resident_later * 100 <= resident * 105, "{resident} KiB became {resident_later}");
    assert_eq!((ended.out.matches("assistant> Done").count(), ended.code()), (10, 0));
}
