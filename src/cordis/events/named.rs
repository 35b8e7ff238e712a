//! Events that no type stands for: their listeners are known by the name of the event alone, as those of scripts are.
//!
//! The kernel only keeps them, in order, as effects of their plugins. What such a listener is, and how it is called, is
//! between those who register and those who dispatch.

use std::any::Any;
use std::rc::Rc;

use super::bus::Listener;
use crate::cordis::context::Context;
use crate::cordis::effect::Undo;
use crate::cordis::error::{BoxError, Error};
use crate::cordis::report::What;

/// One listener of an event that has only a name.
#[derive(Clone)]
pub struct NamedListener(Rc<Listener<dyn Any>>);

impl NamedListener {
    /// What was registered, if it is of this type and still there.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.0.call.downcast_ref().filter(|_| self.0.live.get())
    }

    /// The context of the plugin that listens.
    pub fn ctx(&self) -> &Context {
        &self.0.ctx
    }
}

impl Context {
    /// Listens to an event by its name. [`Error::EventMismatch`] if a type stands for it.
    pub fn on_named(&self, event: &str, order: i32, listener: impl Any) -> Result<Undo, Error> {
        self.listen::<dyn Any>(event, order, |ctx, live| {
            Rc::new(Listener { ctx, live, call: listener })
        })
    }

    /// Those that listen to an event by its name now, in order. [`Error::EventMismatch`] if a type stands for it.
    pub fn named(&self, event: &str) -> Result<Vec<NamedListener>, Error> {
        let list = self.list_of::<dyn Any>(event)?;
        Ok(list
            .map_or_else(Vec::new, |list| list.all().iter().cloned().map(NamedListener).collect()))
    }

    /// Reports that a listener of this plugin failed after the dispatch had ended.
    pub fn listener_failed(&self, event: &str, error: BoxError) {
        let what = What::ListenerFailed { event: event.to_owned() };
        self.kernel.report(self.owner, what, Some(error.into()));
    }
}
