//! Sessions in files: saved, resumed, refused, repaired.

mod damage;
mod disk;
mod fork;
mod judge;
mod list;
mod pairs;

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    rc::Rc,
};

use nano_cordis::{
    cordis::{Notice, Warning},
    harness::{
        persistence::{Loaded, Persistence, error::PersistenceError},
        session::{
            Session, SessionEvent, Sessions,
            event::{Event, EventBody, FORMAT, Reason},
            message::{AssistantMessage, Message, ToolCallRequest},
        },
    },
};
use serde_json::json;
use tempfile::TempDir;

use crate::support::{App, answered, folder, run, talk};

/// A kernel with `session` and `persistence`, and the folder of its logs.
struct Desk<'a> {
    app: &'a App,
    folder: TempDir,
}

fn desk(test: impl AsyncFnOnce(&Desk<'_>)) {
    run(async |app| {
        let desk = Desk { app, folder: folder() };
        app.mount("session", json!({})).await;
        desk.mount().await;
        test(&desk).await;
    });
}

impl Desk<'_> {
    fn dir(&self) -> PathBuf {
        self.folder.path().join(".nano/sessions")
    }

    fn path(&self, id: &str) -> PathBuf {
        self.dir().join(format!("{id}.jsonl"))
    }

    async fn mount(&self) {
        self.app.mount("persistence", json!({ "dir": self.dir() })).await;
    }

    /// As after a restart of the program: nothing is open or locked.
    async fn restart(&self) {
        self.app.unmount("persistence").await;
        self.mount().await;
    }

    /// As after a crash: the sessions that were open are gone as well.
    async fn mount_without_sessions(&self) {
        self.app.unmount("session").await;
        self.app.mount("session", json!({})).await;
        self.mount().await;
    }

    fn persistence(&self) -> Rc<Persistence> {
        self.app.service::<Persistence>().shared()
    }

    /// A new session of this id, open until the test ends.
    fn open(&self, id: &str) -> Rc<Session> {
        self.app.service::<Sessions>().restore(id, vec![]).unwrap()
    }

    /// Saves a session with some turns and closes it.
    async fn save(&self, id: &str, turns: usize) -> String {
        let sessions = self.app.caller::<Sessions>("author").await;
        let session = sessions.restore(id, vec![]).unwrap();
        for n in 1..=turns {
            talk(&session, &format!("question {n}"), &format!("answer {n}"));
        }
        self.app.unmount("author").await;
        self.text(id)
    }

    /// Makes a log by hand.
    fn put(&self, id: &str, text: impl AsRef<[u8]>) {
        fs::create_dir_all(self.dir()).unwrap();
        fs::write(self.path(id), text).unwrap();
    }

    fn text(&self, id: &str) -> String {
        fs::read_to_string(self.path(id)).unwrap()
    }

    fn load(&self, id: &str) -> Result<Loaded, PersistenceError> {
        self.persistence().load(id)
    }

    fn resume(&self, id: &str) -> Rc<Session> {
        let Loaded { id, history, .. } = self.load(id).unwrap();
        self.app.service::<Sessions>().restore(&id, history).unwrap()
    }

    /// Why a log is refused; nothing in the folder may change by that.
    fn refusal(&self, id: &str) -> String {
        let before = self.snapshot();
        let refused = self.load(id).unwrap_err().to_string();
        assert_eq!(self.snapshot(), before);
        assert!(!refused.contains('\n'));
        refused
    }

    /// Names and contents of all files.
    fn snapshot(&self) -> Vec<(String, Vec<u8>)> {
        let Ok(entries) = fs::read_dir(self.dir()) else { return vec![] };
        let entries = entries.map(|it| it.unwrap());
        let mut files: Vec<_> = entries
            .map(|it| {
                (it.file_name().into_string().unwrap(), fs::read(it.path()).unwrap_or_default())
            })
            .collect();
        files.sort();
        files
    }

    fn names(&self) -> Vec<String> {
        self.snapshot().into_iter().map(|(name, _)| name).collect()
    }
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

fn lines(session: &Session) -> String {
    session.events().iter().map(|it| it.to_line() + "\n").collect()
}

#[test]
fn h_078_the_file_holds_one_object_an_event_and_equals_the_log() {
    desk(async |desk| {
        let session = desk.open("one");

        talk(&session, "hi", "hello");

        assert_eq!(desk.text("one"), lines(&session));
        let read: Vec<_> = desk.text("one").lines().map(|it| Event::parse(it).unwrap()).collect();
        let logged: Vec<_> = session.events().iter().map(|it| Event::clone(it)).collect();
        assert_eq!(read, logged);
    });
}

#[test]
fn h_079_the_logs_are_below_the_run_directory_under_their_ids() {
    run(async |app| {
        app.mount("session", json!({})).await;
        app.mount("persistence", json!({})).await;

        let dir = app.service::<Persistence>().dir().to_path_buf();

        assert_eq!(dir, std::env::current_dir().unwrap().join(".nano/sessions"));
    });
    desk(async |desk| {
        let session = desk.app.service::<Sessions>().create().unwrap();

        talk(&session, "hi", "hello");

        assert_eq!(desk.names(), [format!("{}.jsonl", session.id())]);
    });
}

#[test]
fn h_083_a_log_that_ends_with_its_turn_is_accepted() {
    desk(async |desk| {
        let old = desk.save("one", 1).await;

        let session = desk.resume("one");

        let last = session.events().last().map(|it| it.body.kind().to_owned());
        assert_eq!(last.as_deref(), Some("turn/end"));
        assert_eq!((session.is_mid_turn(), session.sealed()), (false, None));
        assert_eq!(lines(&session), old);
    });
}

#[test]
fn h_080_a_resumed_session_has_its_messages_and_goes_on_in_its_file() {
    desk(async |desk| {
        let old = desk.save("one", 2).await;
        let heard = desk.app.record(|it: &SessionEvent| it.event.seq);

        let session = desk.resume("one");
        let messages: Vec<_> = session.messages().iter().map(|it| it.text().to_string()).collect();
        talk(&session, "question 3", "answer 3");

        assert_eq!(messages, ["question 1", "answer 1", "question 2", "answer 2"]);
        assert_eq!(*heard.borrow(), [12, 13, 14, 15, 16, 17]);
        assert!(desk.text("one").starts_with(&old));
        assert_eq!(desk.text("one"), lines(&session));
    });
}

#[test]
fn h_088_what_was_loaded_is_not_written_again() {
    desk(async |desk| {
        let old = desk.save("one", 1).await;

        desk.resume("one");

        assert_eq!(desk.text("one"), old);
    });
}

#[test]
fn h_089_an_event_is_a_whole_line_in_the_file_when_listeners_hear_of_it() {
    desk(async |desk| {
        let path = desk.path("one");
        let ends = desk.app.record(move |it: &SessionEvent| {
            let text = fs::read_to_string(&path).unwrap();
            text.ends_with(&format!("{}\n", it.event.to_line()))
        });

        talk(&desk.open("one"), "hi", "hello");

        assert_eq!(*ends.borrow(), [true; 6]);
    });
}

/// A turn that asks for two calls, of which the first is `started`.
fn stop_in_calls(session: &Rc<Session>, started: bool) {
    let (turn, step) = (1, 1);
    let tool_calls = ["c1", "c2"].map(|id| ToolCallRequest::new(id, "bash", "{}")).into();
    let (call_id, name, arguments) = ("c1".into(), "bash".into(), "{}".into());
    let mut bodies = vec![
        EventBody::TurnStart { turn, format: FORMAT, cwd: String::new() },
        EventBody::StepStart { turn, step },
        EventBody::UserMessage { turn, step, message: Message::user("go") },
        answered(turn, step, AssistantMessage { tool_calls, ..Default::default() }),
    ];
    bodies.extend(started.then_some(EventBody::ToolCall { turn, step, call_id, name, arguments }));
    for body in bodies {
        session.append(body).unwrap();
    }
}

#[test]
fn h_090_a_repair_says_that_the_outcome_of_a_started_call_is_unknown() {
    desk(async |desk| {
        stop_in_calls(&desk.open("one"), true);
        desk.app.unmount("persistence").await;
        let open = desk.text("one");
        desk.mount_without_sessions().await;

        let repaired = desk.persistence().repair("one").unwrap();
        let session = desk.load("one").unwrap();

        let kinds: Vec<_> = repaired.added.iter().map(|it| it.body.kind().to_string()).collect();
        assert_eq!(kinds, ["tool/result", "tool/result", "step/end", "turn/end"]);
        let result = repaired.added[0].body.message().unwrap();
        assert!(matches!(&result, Message::Tool { tool_call_id, .. } if &**tool_call_id == "c1"));
        assert!(
            result.text().starts_with("Error:") && result.text().contains("unknown"),
            "{result:?}"
        );
        assert!(matches!(
            repaired.added[3].body,
            EventBody::TurnEnd { turn: 1, reason: Reason::Interrupted, .. }
        ));
        assert!(desk.text("one").starts_with(&open));
        assert_eq!(session.history.len(), 9);
    });
}

#[test]
fn h_091_a_repair_says_that_a_call_was_not_started() {
    desk(async |desk| {
        stop_in_calls(&desk.open("one"), false);
        desk.app.unmount("persistence").await;
        desk.mount_without_sessions().await;

        let repaired = desk.persistence().repair("one").unwrap();
        let again = desk.persistence().repair("one").unwrap();

        let results: Vec<_> = repaired.added.iter().filter_map(|it| it.body.message()).collect();
        let told =
            results.iter().filter(|it| it.text().contains("before this call was started")).count();
        assert_eq!((results.len(), told), (2, 2));
        assert!(again.added.is_empty());
    });
}

#[test]
fn h_093_a_session_without_events_leaves_nothing_behind() {
    desk(async |desk| {
        desk.app.service::<Sessions>().create().unwrap();

        desk.restart().await;

        assert_eq!(fs::read_dir(desk.folder.path()).unwrap().count(), 0);
    });
}

#[test]
fn a_store_that_comes_late_writes_what_its_file_lacks() {
    desk(async |desk| {
        let (notices, warnings) = (
            desk.app.record(|it: &Notice| it.0.clone()),
            desk.app.record(|it: &Warning| it.0.clone()),
        );
        let session = desk.open("one");
        talk(&session, "kept", "yes");
        desk.app.unmount("persistence").await;
        talk(&session, "not kept", "no");
        let between = desk.text("one");
        desk.put("one", between.clone() + "{\"seq\":");

        desk.mount().await;
        talk(&session, "kept again", "yes");

        let notices = notices.borrow();
        let [torn, saved] = notices.as_slice() else { unreachable!("{notices:?}") };
        assert_eq!(*warnings.borrow(), ["session one is no longer saved"]);
        assert!(torn.contains("ended with a write that was cut short"), "{torn}");
        assert_eq!(saved, "session one is saved again");
        assert_eq!(between.lines().count(), 6);
        assert_eq!(desk.text("one"), lines(&session));
    });
}

#[test]
fn a_closed_session_is_not_said_to_be_unsaved() {
    desk(async |desk| {
        let notices = desk.app.record(|it: &Notice| it.0.clone());
        let warnings = desk.app.record(|it: &Warning| it.0.clone());

        desk.save("one", 1).await;

        assert!(notices.borrow().is_empty() && warnings.borrow().is_empty());
    });
}

#[test]
fn a_file_that_others_changed_removed_or_replaced_gets_no_more_events() {
    desk(async |desk| {
        let ids = ["longer", "shorter", "empty", "gone", "replaced", "linked", "elsewhere"];
        let sessions = ids.map(|id| desk.open(id));
        for session in &sessions {
            talk(session, "hi", "hello");
        }
        let text = desk.text("replaced");
        let file = |id| fs::File::options().write(true).open(desk.path(id)).unwrap();
        desk.put("longer", text.clone() + "{}\n");
        file("shorter").set_len(text.len() as u64 - 1).unwrap();
        file("empty").set_len(0).unwrap();
        fs::remove_file(desk.path("gone")).unwrap();
        fs::remove_file(desk.path("replaced")).unwrap();
        desk.put("replaced", &text);
        fs::rename(desk.path("linked"), desk.path("real")).unwrap();
        symlink("real.jsonl", desk.path("linked")).unwrap();
        fs::rename(desk.path("elsewhere"), desk.path("moved")).unwrap();
        let before = desk.snapshot();

        for (id, session) in ids.iter().zip(&sessions) {
            let turn = EventBody::TurnStart { turn: 2, format: FORMAT, cwd: String::new() };
            let refused = session.append(turn).unwrap_err().to_string();

            let what = if matches!(*id, "gone" | "elsewhere") { "removed" } else { "changed" };
            assert!(refused.contains(&format!("was {what} by another program")), "{refused}");
            assert!(!refused.contains("--repair"), "no turn is open: {refused}");
            assert_eq!((session.len(), session.sealed().is_some()), (6, true));
        }
        assert_eq!(desk.snapshot(), before);
    });
}
