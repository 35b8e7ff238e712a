//! How editors, scripts and people save (A27, A28), seen from outside: one line for each change, and the last one wins.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Folder, Running, list, script};

const APPLIED: &str = "[nano-cordis] applied cordis.yml\n";

/// The list in one of many versions.
fn version(number: usize) -> String {
    list(&[("llm", &script(&format!("{{content: Version {number}}}"))), ("hmr", "name: hmr")])
}

/// A conversation on version 0, whose list is what `cordis.yml` leads to.
fn conversation(folder: &Folder) -> Running {
    let running = Running::start(folder.command(&[]));
    running.wait_for_error("continue later");
    running
}

/// Asks which version is in force, and ends.
fn version_at_the_end(mut running: Running) -> (String, usize) {
    running.write("which?\n");
    running.wait_for_output("assistant> Version ");
    running.end_of_input();
    let ended = running.ended();
    (ended.out, ended.err.matches("applied cordis.yml").count())
}

/// Five saves of one style are five changes; a new time without new content is none.
fn five_saves(before: impl Fn(&Folder), save: impl Fn(&Folder, usize)) {
    let folder = Folder::new();
    before(&folder);
    let running = conversation(&folder);

    for number in 1..=5 {
        save(&folder, number);
        running.wait_for_errors(APPLIED, number);
    }
    let list = fs::File::options().append(true).open(folder.path().join("cordis.yml")).unwrap();
    list.set_modified(std::time::SystemTime::now()).unwrap();
    save(&folder, 6);
    running.wait_for_errors(APPLIED, 6);

    assert_eq!(version_at_the_end(running), ("assistant> Version 6\n".into(), 6));
}

fn plain(folder: &Folder) {
    folder.save(&version(0));
}

#[test]
fn a_27_saves_in_place() {
    five_saves(plain, |folder, number| folder.save(&version(number)));
}

#[test]
fn a_27_saves_by_rename_over_it() {
    five_saves(plain, |folder, number| {
        folder.write("n", &version(number));
        fs::rename(folder.path().join("n"), folder.path().join("cordis.yml")).unwrap();
    });
}

#[test]
fn a_27_saves_by_delete_and_create() {
    five_saves(plain, |folder, number| {
        fs::remove_file(folder.path().join("cordis.yml")).unwrap();
        // Longer than the watcher waits for quiet.
        thread::park_timeout(Duration::from_millis(200));
        folder.save(&version(number));
    });
}

#[test]
fn a_27_saves_by_turning_a_link() {
    let turn = |folder: &Folder, number: usize| {
        let name = format!("{number}.yml");
        folder.write(&name, &version(number));
        symlink(&name, folder.path().join("n")).unwrap();
        fs::rename(folder.path().join("n"), folder.path().join("cordis.yml")).unwrap();
    };
    five_saves(|folder| turn(folder, 0), turn);
}

#[test]
fn a_27_saves_by_removing_and_making_a_link() {
    let turn = |folder: &Folder, number: usize| {
        let name = format!("{number}.yml");
        folder.write(&name, &version(number));
        fs::remove_file(folder.path().join("cordis.yml")).ok();
        symlink(&name, folder.path().join("cordis.yml")).unwrap();
    };
    five_saves(|folder| turn(folder, 0), turn);
}

#[test]
fn a_27_saves_of_the_target_of_a_link_in_another_folder() {
    let save = |folder: &Folder, number: usize| folder.write("dotfiles/list.yml", &version(number));
    let link = |folder: &Folder| {
        fs::create_dir(folder.path().join("dotfiles")).unwrap();
        save(folder, 0);
        symlink("dotfiles/list.yml", folder.path().join("link.yml")).unwrap();
        symlink("link.yml", folder.path().join("cordis.yml")).unwrap();
    };
    five_saves(link, save);
}

#[test]
fn a_28_thirty_saves_in_a_row_are_few_reloads_and_the_last_one_wins() {
    let folder = Folder::with(&version(0));
    let running = conversation(&folder);

    for number in 1..=30 {
        folder.save(&version(number));
    }
    running.wait_for_error(APPLIED);
    folder.save(&version(31));
    // Whatever became of those before, this is in force in the end.
    let mut running = running;
    running.write("which?\n");
    running.wait_for_output("assistant> Version ");
    let (out, reloads) = until_version(running, 31);

    assert!(out.ends_with("assistant> Version 31\n"), "{out}");
    assert!(reloads <= 10, "{reloads} reloads");
}

/// Asks until this version is in force.
fn until_version(mut running: Running, number: usize) -> (String, usize) {
    let begun = Instant::now();
    while !running.output().contains(&format!("Version {number}\n")) {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", running.output());
        let before = running.output().matches("Version").count();
        running.write("which?\n");
        crate::support::until("a reply", || running.output().matches("Version").count() > before);
    }
    running.end_of_input();
    let ended = running.ended();
    (ended.out, ended.err.matches("applied cordis.yml").count())
}

#[test]
fn a_28_a_busy_folder_does_not_put_a_save_off() {
    let folder = Arc::new(Folder::with(&version(0)));
    let running = conversation(&folder);
    let is_over = Arc::new(AtomicBool::new(false));
    let (busy, stop) = (folder.clone(), is_over.clone());
    let neighbour = thread::spawn(move || {
        for number in 0.. {
            if stop.load(Ordering::SeqCst) {
                break;
            }
            busy.write("other.txt", &number.to_string());
            thread::park_timeout(Duration::from_millis(50));
        }
    });

    let saved = Instant::now();
    folder.save(&version(1));
    running.wait_for_error(APPLIED);
    let taken = saved.elapsed();
    is_over.store(true, Ordering::SeqCst);
    neighbour.join().unwrap();

    assert!(taken < Duration::from_secs(10), "{taken:?}");
    assert_eq!(version_at_the_end(running), ("assistant> Version 1\n".into(), 1));
}
