//! What is never written, under whichever name; and who is asked about what.

use std::{cell::RefCell, fs, os::unix::fs::symlink, rc::Rc};

use nano_cordis::harness::{
    approval::{Answer, ApprovalRequest},
    tools::Call,
};
use serde_json::json;

use super::{Desk, desk, desk_with, edit, list};

const APPROVAL: &str = "- {id: approval, name: approval, config: {tools: [write, edit]}}\n";

#[test]
fn the_list_is_never_written_under_any_name() {
    desk(async |desk| {
        // The agent's own folder is the root now, and its list has another name for each way to it.
        let root = desk.rig.folder.path().canonicalize().unwrap();
        desk.rig.save(&list(&root, "")).await.unwrap();
        let before = fs::read_to_string(root.join("cordis.yml")).unwrap();
        symlink("cordis.yml", root.join("soft")).unwrap();
        fs::hard_link(root.join("cordis.yml"), root.join("hard")).unwrap();

        for name in ["cordis.yml", "soft", "hard", "sub/cordis.yml", "sub/CORDIS.YML"] {
            let write = json!({ "file_path": name, "content": "[]" });
            let said = desk.refused("write", write).await;
            assert!(said.contains("is never written by the file tools"), "{name}: {said}");
        }
        for name in ["cordis.yml", "soft", "hard"] {
            desk.read(name).await;
            let said = desk.refused("edit", edit(name, "session", "x")).await;
            assert!(said.contains("is never written by the file tools"), "{name}: {said}");
        }

        assert_eq!(fs::read_to_string(root.join("cordis.yml")).unwrap(), before);
    });
}

#[test]
fn scripts_in_use_are_never_written_and_other_scripts_are() {
    desk(async |desk| {
        let root = desk.rig.folder.path().canonicalize().unwrap();
        let script = "import './part.js'\nexport function apply() {}\n";
        fs::write(root.join("used.js"), script).unwrap();
        fs::write(root.join("part.js"), "export const a = 1\n").unwrap();
        fs::hard_link(root.join("used.js"), root.join("hard.js")).unwrap();
        let entry = "- {id: used, name: ./used.js}\n";
        desk.rig.save(&list(&root, entry)).await.unwrap();

        for name in ["used.js", "part.js", "hard.js"] {
            let said = desk.refused("write", json!({ "file_path": name, "content": "" })).await;
            assert!(said.contains("the running plugins are read from it"), "{name}: {said}");
        }
        desk.done("write", json!({ "file_path": "other.js", "content": "" })).await;

        assert_eq!(fs::read_to_string(root.join("used.js")).unwrap(), script);
    });
}

#[test]
fn sessions_are_never_written_wherever_they_are_kept() {
    let kept = tempfile::tempdir().unwrap();
    let dir = kept.path().canonicalize().unwrap().join("logs");
    let entry = format!("- {{id: kept, name: persistence, config: {{dir: {}}}}}\n", json!(dir));
    desk(async |desk| {
        let root = dir.parent().unwrap();
        fs::create_dir(&dir).unwrap();
        symlink("logs", root.join("link")).unwrap();
        desk.rig.save(&list(root, &entry)).await.unwrap();

        for name in [".nano/x", "sub/.nano/sessions/x.jsonl", "logs/x.jsonl", "link/x.jsonl"] {
            let said = desk.refused("write", json!({ "file_path": name, "content": "" })).await;
            assert!(said.contains("sessions are kept there"), "{name}: {said}");
        }

        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
        // A second name of a log can be given what one likes; the log is none the less what it was.
        fs::write(dir.join("x.jsonl"), "log\n").unwrap();
        fs::hard_link(dir.join("x.jsonl"), root.join("hard")).unwrap();
        desk.read("hard").await;
        desk.edit("hard", "log", "lie").await;
        assert_eq!(fs::read_to_string(dir.join("x.jsonl")).unwrap(), "log\n");
        desk.rig.take_notices();
    });
}

/// What each question is about.
fn questions(desk: &Desk<'_>, answer: Answer) -> Rc<RefCell<Vec<Option<String>>>> {
    let asked: Rc<RefCell<Vec<_>>> = Rc::default();
    let seen = asked.clone();
    let listener = async move |_, call: Rc<Call>| {
        seen.borrow_mut().push(call.preview.clone());
        Ok(Some(answer.clone()))
    };
    desk.rig.root.answer::<ApprovalRequest>(listener).unwrap();
    asked
}

#[test]
fn the_question_shows_the_diff_and_a_call_that_cannot_work_is_not_asked_about() {
    desk_with(APPROVAL, async |desk| {
        desk.put("a", "1\n2\n");
        let asked = questions(desk, Answer::Yes);

        desk.refused("edit", edit("a", "1", "x")).await;
        desk.read("a").await;
        desk.refused("edit", edit("a", "none", "x")).await;
        desk.refused("write", json!({ "file_path": "../a", "content": "" })).await;
        desk.refused("write", json!({ "file_path": "cordis.yml", "content": "" })).await;
        assert_eq!(*asked.borrow(), []);

        desk.edit("a", "1", "x").await;
        desk.done("write", json!({ "file_path": "b", "content": "new\n" })).await;

        let edited = "--- a\n+++ a\n@@ -1,2 +1,2 @@\n-1\n+x\n 2\n".to_owned();
        let written = "--- /dev/null\n+++ b\n@@ -0,0 +1 @@\n+new\n".to_owned();
        assert_eq!(*asked.borrow(), [Some(edited), Some(written)]);
    });
}

#[test]
fn what_changes_while_the_user_thinks_is_not_overwritten() {
    desk_with(APPROVAL, async |desk| {
        desk.put("a", "1\n");
        desk.read("a").await;
        let root = desk.root.clone();
        let listener = async move |_, _| {
            fs::write(root.join("a"), "1 and more\n").unwrap();
            fs::write(root.join("b"), "first\n").unwrap();
            Ok(Some(Answer::Yes))
        };
        desk.rig.root.answer::<ApprovalRequest>(listener).unwrap();

        let edited = desk.refused("edit", edit("a", "1", "2")).await;
        let written = desk.refused("write", json!({ "file_path": "b", "content": "x" })).await;

        assert_eq!(edited, "`a` has changed since it was read; read it again, then retry");
        assert!(written.contains("`b`"), "{written}");
        assert_eq!((desk.text("a"), desk.text("b")), ("1 and more\n".into(), "first\n".into()));
    });
}
