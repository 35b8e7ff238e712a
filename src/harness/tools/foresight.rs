//! Part of `tools`: what a tool can say of a call before it runs: that it cannot, and what it would change.
//!
//! Watch for: both are asked before anybody decides about the call, so they look and change nothing, and they are quick.

use serde_json::{Map, Value};

use super::Tool;
use crate::harness::session::Session;

/// What a tool says beforehand; one that was given nothing to say is silent.
#[derive(Default)]
pub(super) struct Foresight {
    check: Option<Box<Check>>,
    preview: Option<Box<Preview>>,
}

type Check = dyn Fn(&Map<String, Value>, Option<&Session>) -> Result<(), String>;
type Preview = dyn Fn(&Map<String, Value>, Option<&Session>) -> Option<String>;

impl Tool {
    /// Adds what a schema cannot say. An `Err` is the problem of the call: it is not run, and nobody is asked about it.
    #[must_use]
    pub fn checked(
        self,
        check: impl Fn(&Map<String, Value>) -> Result<(), String> + 'static,
    ) -> Tool {
        self.checked_in_session(move |arguments, _| check(arguments))
    }

    /// As [`Tool::checked`], for what depends on the session that the call is of.
    #[must_use]
    pub fn checked_in_session(
        mut self,
        check: impl Fn(&Map<String, Value>, Option<&Session>) -> Result<(), String> + 'static,
    ) -> Tool {
        self.foresight.check = Some(Box::new(check));
        self
    }

    /// Adds what the call would change, as lines of text: whoever is asked about the call reads it.
    #[must_use]
    pub fn previewed(
        mut self,
        preview: impl Fn(&Map<String, Value>, Option<&Session>) -> Option<String> + 'static,
    ) -> Tool {
        self.foresight.preview = Some(Box::new(preview));
        self
    }

    /// Why a call with these arguments cannot work, if the tool knows.
    pub(super) fn objection(
        &self,
        arguments: &Map<String, Value>,
        session: Option<&Session>,
    ) -> Option<String> {
        self.foresight.check.as_ref().and_then(|check| check(arguments, session).err())
    }

    /// What it would change.
    pub(super) fn preview(
        &self,
        arguments: &Map<String, Value>,
        session: Option<&Session>,
    ) -> Option<String> {
        self.foresight.preview.as_ref().and_then(|preview| preview(arguments, session))
    }
}
