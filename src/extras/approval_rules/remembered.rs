//! Part of `approval-rules`: the calls to which somebody said "always".
//!
//! Watch for: that is said of one call as it was shown, in one session, to a tool as it was then (D-64). A tool that says
//! something else of itself is another one, whatever its name.

use std::{
    cell::RefCell,
    rc::{Rc, Weak},
};

use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};

use crate::{
    cordis::Svc,
    harness::{
        session::Session,
        tools::{Call, Tools},
    },
};

/// All of them. They are nowhere else: with this plugin, or the program, they are gone.
#[derive(Default)]
pub(super) struct Remembered(RefCell<Vec<Approved>>);

/// Compared as a whole; the order of arguments makes no difference.
struct Approved {
    session: Weak<Session>,
    tool: String,
    definition: Vec<u8>,
    arguments: Map<String, Value>,
}

impl Remembered {
    /// What to do if this call is approved for the rest of its session. A call of no session has none.
    pub(super) fn offer(
        self: &Rc<Self>,
        call: &Call,
        tools: &Svc<Tools>,
    ) -> Option<impl FnOnce() + use<>> {
        let session = Rc::downgrade(call.session.as_ref()?);
        let definition = definition(&call.name, tools)?;
        let (tool, arguments) = (call.name.clone(), call.arguments.clone());
        let approved = Approved { session, tool, definition, arguments };
        let all = self.clone();
        Some(move || {
            let mut all = all.0.borrow_mut();
            all.retain(|it| it.session.strong_count() > 0);
            all.push(approved);
        })
    }

    pub(super) fn has(&self, call: &Call, tools: &Svc<Tools>) -> bool {
        let Some(session) = call.session.as_ref().map(Rc::downgrade) else { return false };
        let all = self.0.borrow();
        let is_this = |it: &&Approved| {
            it.session.ptr_eq(&session) && it.tool == call.name && it.arguments == call.arguments
        };
        let mut same = all.iter().filter(is_this).peekable();
        // Only now, because it takes longer than all the rest.
        let definition = same.peek().and_then(|_| definition(&call.name, tools));
        same.any(|it| Some(&it.definition) == definition.as_ref())
    }
}

/// The hash of what a tool says of itself.
fn definition(name: &str, tools: &Tools) -> Option<Vec<u8>> {
    let schema = tools.schemas().into_iter().find(|it| it.function.name == name)?;
    let text = serde_json::to_vec(&schema).expect("it is plain JSON");
    Some(digest(&SHA256, &text).as_ref().to_vec())
}
