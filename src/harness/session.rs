//! Session: the log of a conversation, and the only source of what is known about it.
//!
//! Provides `session`. Raises `session/event`, once for each event, after it is in the log.
//! Full-size counterpart: the core session package.
//! Watch for: `append` is the only writer. What the model is sent is derived from the log at each request and kept
//! nowhere; and what cannot be recorded did not happen.

mod derive;
pub mod error;
pub mod event;
pub mod id;
pub mod line;
pub mod message;
mod open;
pub mod trace;

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use crate::{
    cordis::{BoxError, Context, Emit, NoConfig, Service},
    harness::session::{
        error::SessionError,
        event::{Event, EventBody},
        id::Surroundings,
        message::{Header, Message},
        trace::Trace,
    },
};

/// The plugin `session`.
pub async fn apply(ctx: Context, _: NoConfig) -> Result<(), BoxError> {
    let sessions = Sessions::new(&ctx, Surroundings::system());
    ctx.provide(Rc::new(sessions))?;
    Ok(())
}

/// The service `session`: the conversations that are open.
pub struct Sessions {
    ctx: Context,
    outside: Surroundings,
    open: RefCell<Vec<Rc<Session>>>,
    store: RefCell<Option<Rc<dyn Store>>>,
}

impl Service for Sessions {
    const NAME: &'static str = "session";
}

/// Where the events of sessions are kept. One at a time; a session without one lives in memory only.
pub trait Store {
    /// A session is open. What it holds already and the store lacks is written now.
    fn open(&self, session: &Session) -> Result<(), BoxError>;
    /// An event is about to enter the log; `line` is its text. An error means that nothing of it was kept.
    fn write(&self, session: &Session, line: &str, event: &Event) -> Result<(), BoxError>;
    /// The session is closed, or the store is taken away from it.
    fn close(&self, session: &Session);
}

/// `session/event`: an event is in the log.
pub struct SessionEvent {
    /// Whose log.
    pub session: Rc<Session>,
    /// The event.
    pub event: Rc<Event>,
}

impl Emit for SessionEvent {
    const NAME: &'static str = "session/event";
}

/// One conversation: a list of events that only grows.
pub struct Session {
    home: Rc<Sessions>,
    id: String,
    events: RefCell<Vec<Rc<Event>>>,
    trace: RefCell<Trace>,
    appending: Cell<bool>,
    sealed: RefCell<Option<String>>,
}

impl Session {
    fn new(home: Rc<Sessions>, id: String, history: Vec<Event>) -> Self {
        let mut trace = Trace::default();
        for event in &history {
            trace.follow(&event.body);
        }
        let events = RefCell::new(history.into_iter().map(Rc::new).collect());
        Self {
            home,
            id,
            events,
            trace: trace.into(),
            appending: Cell::default(),
            sealed: RefCell::default(),
        }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The log as it is now.
    pub fn events(&self) -> Vec<Rc<Event>> {
        self.events.borrow().clone()
    }

    /// How many events the log has.
    pub fn len(&self) -> usize {
        self.events.borrow().len()
    }

    /// Nothing happened yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of the last turn; 0 before the first.
    pub fn turns(&self) -> u32 {
        self.trace.borrow().turn()
    }

    /// A turn is open.
    pub fn is_mid_turn(&self) -> bool {
        self.trace.borrow().open_turn().is_some()
    }

    /// Why the session takes no more events, if so.
    pub fn sealed(&self) -> Option<String> {
        self.sealed.borrow().clone()
    }

    /// The messages so far, as the model is to read them.
    pub fn messages(&self) -> Vec<Message> {
        derive::shown(&self.events.borrow()).into_iter().map(|(_, message)| message).collect()
    }

    /// The newest header: what it says of model, system prompt and tools is what the last request had.
    pub fn header(&self) -> Option<Header> {
        self.events.borrow().iter().rev().find_map(|event| match &event.body {
            EventBody::RequestHeader { header, .. } => Some(header.clone()),
            _ => None,
        })
    }

    /// Adds an event: check, store, push, broadcast. A listener may not append, so all see the order of the log.
    pub fn append(self: &Rc<Self>, body: EventBody) -> Result<Rc<Event>, SessionError> {
        let _appending = self.begin(&body)?;
        let event = self.number(body);
        let line = event.to_line();
        self.check(&event, &line)?;
        self.keep(&event, &line)?;
        self.trace.borrow_mut().follow(&event.body);
        let event = Rc::new(event);
        self.events.borrow_mut().push(Rc::clone(&event));
        self.home.ctx.emit(&SessionEvent { session: Rc::clone(self), event: Rc::clone(&event) });
        Ok(event)
    }

    fn begin(&self, body: &EventBody) -> Result<Appending<'_>, SessionError> {
        if let Some(reason) = self.sealed() {
            return Err(SessionError::Sealed { id: self.id.clone(), reason });
        }
        if self.appending.replace(true) {
            return Err(SessionError::Busy { kind: body.kind().into() });
        }
        Ok(Appending(&self.appending))
    }

    fn number(&self, body: EventBody) -> Event {
        let (now, events) = (self.home.now(), self.events.borrow());
        let (seq, earliest) = events.last().map_or((0, 0), |it| (it.seq + 1, it.time));
        Event { seq, time: now.max(earliest), body }
    }

    /// A log that could not be read again would be lost at the next resume, so nothing of the kind is written.
    fn check(&self, event: &Event, line: &str) -> Result<(), SessionError> {
        let kind = event.body.kind();
        if let Err(problem) = self.trace.borrow().check(&event.body).and_then(|()| self.fits(event))
        {
            return Err(SessionError::OutOfPlace { kind: kind.into(), problem });
        }
        match Event::parse(line) {
            Ok(Event { body, .. }) if (body.kind(), body.place()) == (kind, event.body.place()) => {
                Ok(())
            }
            Ok(_) => Err(SessionError::Misread { kind: kind.into() }),
            Err(source) => Err(SessionError::Unreadable { kind: kind.into(), source }),
        }
    }

    fn fits(&self, event: &Event) -> Result<(), String> {
        derive::check(&self.events.borrow(), &event.body)
    }

    fn keep(&self, event: &Event, line: &str) -> Result<(), SessionError> {
        let Some(store) = self.home.store() else { return Ok(()) };
        store.write(self, line, event).map_err(|source| {
            self.seal(&source.to_string());
            SessionError::NotKept { id: self.id.clone(), source }
        })
    }

    fn seal(&self, reason: &str) {
        self.sealed.borrow_mut().get_or_insert_with(|| reason.into());
    }
}

/// While it lives, the session takes no other event.
struct Appending<'a>(&'a Cell<bool>);

impl Drop for Appending<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}
