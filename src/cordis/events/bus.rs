//! Where listeners stand: one list for each event, by order and age, walked without a borrow.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use super::Asked;
use crate::cordis::context::Context;
use crate::cordis::effect::{Slots, Undo};
use crate::cordis::error::{BoxError, Error, ListenerError};
use crate::cordis::fiber::FiberId;
use crate::cordis::guard::Guarded;
use crate::cordis::report::What;

/// All lists of listeners, by name. The names are text, so that scripts can use them; the types are checked on the way in.
#[derive(Default)]
pub(in crate::cordis) struct Bus {
    lists: RefCell<HashMap<Rc<str>, Rc<dyn AnyList>>>,
}

/// A list of listeners whose type is not known here.
trait AnyList {
    fn len(&self) -> usize;
    fn owners(&self) -> Vec<FiberId>;
    fn into_any(self: Rc<Self>) -> Rc<dyn Any>;
}

/// Order, then age.
type Place = (i32, u64);

/// The listeners of one event.
pub(super) struct List<F: ?Sized> {
    event: Rc<str>,
    slots: RefCell<Slots<Place, Rc<Listener<F>>>>,
}

impl<F: ?Sized + 'static> AnyList for List<F> {
    fn len(&self) -> usize {
        self.slots.borrow().len()
    }

    fn owners(&self) -> Vec<FiberId> {
        self.slots.borrow().iter().map(|it| it.ctx.owner).collect()
    }

    fn into_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}

pub(super) struct Listener<F: ?Sized> {
    pub(super) ctx: Context,
    pub(super) live: Cell<bool>,
    pub(super) call: F,
}

impl<F: ?Sized> Listener<F> {
    pub(super) fn error(&self, event: &str, source: BoxError) -> ListenerError {
        ListenerError { event: event.to_owned(), plugin: self.ctx.path(), source: source.into() }
    }
}

impl<I: 'static, O: 'static> Listener<Asked<I, O>> {
    pub(super) fn ask(&self, input: Rc<I>) -> Guarded<O> {
        Guarded::inherit((self.call)(self.ctx.clone(), input))
    }
}

impl Bus {
    pub(in crate::cordis) fn count(&self, event: &str) -> usize {
        self.lists.borrow().get(event).map_or(0, |list| list.len())
    }

    /// Names of the events that one of these plugins listens to, sorted.
    pub(in crate::cordis) fn heard(&self, is_meant: impl Fn(FiberId) -> bool) -> Vec<String> {
        let lists = self.lists.borrow();
        let heard = lists.iter().filter(|(_, list)| list.owners().into_iter().any(&is_meant));
        let mut names: Vec<_> = heard.map(|(name, _)| name.to_string()).collect();
        names.sort();
        names
    }

    fn list<F: ?Sized + 'static>(&self, event: &str) -> Result<Rc<List<F>>, Error> {
        let mut lists = self.lists.borrow_mut();
        let list = lists.get(event).cloned().unwrap_or_else(|| {
            let name: Rc<str> = event.into();
            let list = Rc::new(List::<F> { event: name.clone(), slots: RefCell::default() });
            lists.insert(name, list.clone());
            list
        });
        list.into_any().downcast().map_err(|_| Error::EventMismatch { event: event.into() })
    }

    /// Empties the place at once, so that a dispatch that has not reached it passes it by.
    fn remove<F: ?Sized>(&self, list: &List<F>, key: Place) {
        let removed = list.slots.borrow_mut().remove(key);
        if list.slots.borrow().len() == 0 {
            self.lists.borrow_mut().remove(&list.event);
        }
        // What the listener holds is dropped last, with no borrow open.
        if let Some(listener) = removed {
            listener.live.set(false);
        }
    }
}

impl Context {
    /// Registers a listener, which `listener` makes of this context and a mark that it is there.
    pub(super) fn listen<F: ?Sized + 'static>(
        &self,
        event: &str,
        order: i32,
        listener: impl FnOnce(Self, Cell<bool>) -> Rc<Listener<F>>,
    ) -> Result<Undo, Error> {
        self.running()?;
        let list = self.kernel.bus.list::<F>(event)?;
        let key = (order, self.kernel.number());
        let listener = listener(self.clone(), Cell::new(true));
        self.effect(|| {
            list.slots.borrow_mut().insert(key, listener);
            let kernel = self.kernel.clone();
            move || kernel.bus.remove(&list, key)
        })
    }

    pub(super) fn listeners<F: ?Sized + 'static>(&self, event: &str) -> Option<Rc<List<F>>> {
        let list = self.kernel.bus.lists.borrow().get(event)?.clone();
        let list = list.into_any().downcast().ok();
        if list.is_none() {
            let what = What::EventMismatch { event: event.to_owned() };
            self.kernel.report(self.owner, what, None);
        }
        list
    }

    /// The list of an event, if it is one of this type; nobody is told if it is not.
    pub(super) fn list_of<F: ?Sized + 'static>(
        &self,
        event: &str,
    ) -> Result<Option<Rc<List<F>>>, Error> {
        let list = self.kernel.bus.lists.borrow().get(event).cloned();
        let typed = list.map(|list| list.into_any().downcast());
        typed.transpose().map_err(|_| Error::EventMismatch { event: event.into() })
    }

    /// Those that listen now; whether one still does at its turn, `live` tells.
    pub(super) fn snapshot<F: ?Sized + 'static>(&self, event: &str) -> Rc<[Rc<Listener<F>>]> {
        let list = self.listeners::<F>(event);
        list.map_or_else(|| Rc::from([]), |list| list.all())
    }
}

impl<F: ?Sized> List<F> {
    pub(super) fn all(&self) -> Rc<[Rc<Listener<F>>]> {
        self.slots.borrow().iter().cloned().collect()
    }

    /// Visits those that were there at the beginning (their number is below `limit`) and are still there at their turn.
    /// No borrow is open during a visit.
    pub(super) fn walk(&self, limit: u64, mut visit: impl FnMut(Rc<Listener<F>>)) {
        let (mut at, mut last, mut version) = (0, None, self.slots.borrow().version());
        loop {
            let listener = {
                let slots = self.slots.borrow();
                if slots.version() != version {
                    // Places have moved: find the one after the last that was visited.
                    version = slots.version();
                    at = last.map_or(0, |key| slots.place_after(key));
                }
                let Some((key, listener)) = slots.place(at) else { break };
                at += 1;
                last = Some(key);
                listener.filter(|_| key.1 < limit).cloned()
            };
            if let Some(listener) = listener {
                visit(listener);
            }
        }
    }
}
