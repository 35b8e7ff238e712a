//! Which conversations are open, whose they are, and where they are kept.

use std::{cell::RefCell, rc::Rc};

use super::{
    Session, Sessions, Store, derive,
    error::SessionError,
    event::Event,
    id::{Surroundings, fresh, is_id},
    trace::Trace,
};
use crate::cordis::{Context, Svc, Undo};

impl Sessions {
    /// The service, raising its events through `ctx`.
    pub fn new(ctx: &Context, outside: Surroundings) -> Self {
        Self { ctx: ctx.clone(), outside, open: RefCell::default(), store: RefCell::default() }
    }

    /// The open sessions, oldest first.
    pub fn open(&self) -> Vec<Rc<Session>> {
        self.open.borrow().clone()
    }

    /// The open session of this id.
    pub fn get(&self, id: &str) -> Option<Rc<Session>> {
        self.open.borrow().iter().find(|it| it.id == id).cloned()
    }

    /// The time in Unix milliseconds.
    pub fn now(&self) -> u64 {
        (self.outside.now)()
    }

    /// An id that no open session has, nor is any other likely to have.
    pub fn fresh_id(&self) -> String {
        let (now, random) = (self.now(), (self.outside.random)());
        let mut ids = (0..).map(|n| fresh(now, random.wrapping_add(n)));
        ids.find(|id| self.get(id).is_none()).expect("the ids of one second do not run out")
    }

    pub(super) fn store(&self) -> Option<Rc<dyn Store>> {
        self.store.borrow().clone()
    }

    /// Takes the store away from every session.
    fn part(&self) {
        let Some(store) = self.store.take() else { return };
        for session in self.open() {
            store.close(&session);
        }
    }

    fn close(&self, session: &Session) {
        self.open.borrow_mut().retain(|it| !std::ptr::eq(&raw const **it, session));
        session.seal("it is closed");
        if let Some(store) = self.store() {
            store.close(session);
        }
    }
}

impl Svc<Sessions> {
    /// Begins a conversation. It belongs to the caller and is closed when the caller unloads.
    pub fn create(&self) -> Result<Rc<Session>, SessionError> {
        self.adopt(self.fresh_id(), Vec::new())
    }

    /// Goes on with a conversation whose events so far are `history`. They are not broadcast again.
    // Omitted: the full-size session marks the end of such a history with an event of its own.
    pub fn restore(&self, id: &str, history: Vec<Event>) -> Result<Rc<Session>, SessionError> {
        if !is_id(id) {
            return Err(SessionError::BadId(id.into()));
        }
        if self.get(id).is_some() {
            return Err(SessionError::AlreadyOpen(id.into()));
        }
        check_numbers(&history)?;
        check_places(&history)?;
        self.adopt(id.into(), history)
    }

    /// Keeps every open and future session in `store`, until the caller unloads.
    pub fn keep_in(&self, store: Rc<dyn Store>) -> Result<Undo, SessionError> {
        if self.store().is_some() {
            return Err(SessionError::SecondStore);
        }
        let home = self.shared();
        let undo = self.ctx().effect(move || move || home.part())?;
        self.store.replace(Some(store));
        for session in self.open() {
            self.attach(&session, &undo)?;
        }
        Ok(undo)
    }

    fn adopt(&self, id: String, history: Vec<Event>) -> Result<Rc<Session>, SessionError> {
        let session = Rc::new(Session::new(self.shared(), id, history));
        let (home, owned) = (self.shared(), Rc::clone(&session));
        let undo = self.ctx().effect(move || move || home.close(&owned))?;
        self.open.borrow_mut().push(Rc::clone(&session));
        self.attach(&session, &undo)?;
        Ok(session)
    }

    /// Has the session kept; if that fails, what led to it is undone.
    fn attach(&self, session: &Session, undo: &Undo) -> Result<(), SessionError> {
        let Some(store) = self.store() else { return Ok(()) };
        store.open(session).map_err(|source| {
            drop(undo.call());
            SessionError::NotKept { id: session.id.clone(), source }
        })
    }
}

/// However it was kept, a history in which calls and results do not belong together is one that no model can be shown.
fn check_places(history: &[Event]) -> Result<(), SessionError> {
    let mut trace = Trace::default();
    for (index, Event { body, .. }) in history.iter().enumerate() {
        let fits = || derive::check(&history[..index], body);
        trace.check_read(body).and_then(|()| fits()).map_err(|problem| {
            let kind = body.kind().into();
            SessionError::BadHistory { index, kind, problem }
        })?;
        trace.follow(body);
    }
    Ok(())
}

/// The first number is 0, or 1 in the logs of others; from there each is one more.
fn check_numbers(history: &[Event]) -> Result<(), SessionError> {
    let first = history.first().map_or(0, |it| it.seq.min(1));
    match (first..).zip(history).enumerate().find(|(_, (expected, event))| event.seq != *expected) {
        Some((index, (expected, event))) => {
            Err(SessionError::Gap { index, seq: event.seq, expected })
        }
        None => Ok(()),
    }
}
