//! The environment of this process, as a service.
//!
//! Provides `env` on the root context, before the loader is mounted; nothing else reads the process environment.
//! Full-size counterpart: the `ctx.env` of a host application.
//! Watch for: it is read once. A test gives its own with [`Env::fixed`] and never touches the process.

use std::{collections::BTreeMap, ffi::OsString};

use crate::cordis::{Emit, Service};

/// Environment variables: of this process, or made up.
#[derive(Clone, Default)]
pub struct Env(BTreeMap<OsString, OsString>);

impl Service for Env {
    const NAME: &str = "env";
}

/// `env/check`: `--check` asks what is missing that is needed later, such as a key. Whoever knows raises a
/// [`Warning`](crate::cordis::Warning).
pub struct Checking;

impl Emit for Checking {
    const NAME: &'static str = "env/check";
}

impl Env {
    /// What this process was started with.
    pub fn process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// Exactly these variables.
    pub fn fixed<K: Into<OsString>, V: Into<OsString>>(
        vars: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        Self(vars.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// One variable. Bytes that are not UTF-8 come as U+FFFD: a damaged value is not the same as none.
    pub fn get(&self, name: &str) -> Option<String> {
        self.0.get(&OsString::from(name)).map(|it| it.to_string_lossy().into_owned())
    }

    /// All variables, sorted by name: what a child process may be given.
    pub fn all(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.0.iter()
    }
}
