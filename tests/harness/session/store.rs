//! Sessions that are kept: what the store gets, and what happens when it fails.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use nano_cordis::{
    cordis::BoxError,
    harness::session::{Session, SessionEvent, Sessions, Store, error::SessionError, event::Event},
};

use serde_json::json;

use super::{note, session, turn_start};
use crate::support::run;

/// A store that notes what it is told, and fails when it is told to.
#[derive(Default)]
struct Notes {
    notes: RefCell<Vec<String>>,
    broken: Cell<bool>,
}

impl Store for Notes {
    fn open(&self, session: &Session) -> Result<(), BoxError> {
        if self.broken.get() {
            return Err("the disk is full".into());
        }
        self.notes.borrow_mut().push(format!("open {}", session.len()));
        Ok(())
    }

    fn write(&self, session: &Session, line: &str, event: &Event) -> Result<(), BoxError> {
        if self.broken.get() {
            return Err("the disk is full".into());
        }
        assert_eq!((event.to_line(), session.len() as u64), (line.to_string(), event.seq));
        self.notes.borrow_mut().push(format!("write {}", event.seq));
        Ok(())
    }

    fn close(&self, _: &Session) {
        self.notes.borrow_mut().push("close".into());
    }
}

#[test]
fn a_store_gets_open_sessions_then_each_event_before_it_is_in_the_log() {
    run(async |app| {
        let session = session(app).await;
        session.append(turn_start(1)).unwrap();
        let store = Rc::new(Notes::default());

        let undo = app.service::<Sessions>().keep_in(store.clone()).unwrap();
        let second = app.service::<Sessions>().keep_in(store.clone());
        session.append(note("kept")).unwrap();
        undo.call().await.unwrap();
        session.append(note("not kept")).unwrap();

        assert!(matches!(second, Err(SessionError::SecondStore)));
        assert_eq!(*store.notes.borrow(), ["open 1", "write 1", "close"]);
    });
}

#[test]
fn h_092_an_event_that_cannot_be_kept_did_not_happen_and_is_the_last() {
    run(async |app| {
        let session = session(app).await;
        let store = Rc::new(Notes::default());
        app.service::<Sessions>().keep_in(store.clone()).unwrap();
        session.append(turn_start(1)).unwrap();
        let seen = app.record(|it: &SessionEvent| it.event.seq);
        store.broken.set(true);

        let failed = session.append(note("lost")).unwrap_err().to_string();
        store.broken.set(false);
        let later = session.append(note("later")).unwrap_err();

        assert!(failed.ends_with("cannot be saved: the disk is full"), "{failed}");
        assert!(matches!(later, SessionError::Sealed { .. }));
        assert_eq!((session.len(), seen.borrow().len()), (1, 0));
        assert_eq!(session.sealed().as_deref(), Some("the disk is full"));
    });
}

#[test]
fn a_session_that_cannot_be_kept_is_not_opened_and_a_store_that_cannot_keep_one_is_not_used() {
    run(async |app| {
        let first = session(app).await;
        let sessions = app.service::<Sessions>();
        let broken = || Rc::new(Notes { broken: Cell::new(true), ..Notes::default() });

        let unusable = sessions.keep_in(broken());
        let unsaved = first.append(turn_start(1));
        app.unmount("session").await;
        app.mount("session", json!({})).await;
        let sessions = app.service::<Sessions>();
        sessions.keep_in(broken()).unwrap();
        let unopened = sessions.create();

        assert!(matches!(unusable, Err(SessionError::NotKept { .. })) && unsaved.is_ok());
        assert!(matches!(unopened, Err(SessionError::NotKept { .. })));
        assert_eq!(sessions.open().len(), 0);
    });
}
