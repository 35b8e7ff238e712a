//! The environment of this process, as a service.
//!
//! Provides `env` on the root context, before the loader is mounted; nothing else reads the process environment.
//! Full-size counterpart: the `ctx.env` of a host application.
//! Watch for: it is read once. A test gives its own with [`Env::fixed`] and never touches the process.

pub(crate) mod mask;

use std::{cell::RefCell, collections::BTreeMap, ffi::OsString, rc::Rc};

use crate::cordis::{Emit, Error, Service, Svc, Undo};

/// Environment variables: of this process, or made up.
#[derive(Clone, Default)]
pub struct Env {
    vars: BTreeMap<OsString, OsString>,
    secrets: RefCell<Vec<Rc<str>>>,
}

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
        Self::fixed(std::env::vars_os())
    }

    /// Exactly these variables.
    pub fn fixed<K: Into<OsString>, V: Into<OsString>>(
        vars: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let vars = vars.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { vars, secrets: RefCell::default() }
    }

    /// One variable. Bytes that are not UTF-8 come as U+FFFD: a damaged value is not the same as none.
    pub fn get(&self, name: &str) -> Option<String> {
        self.vars.get(&OsString::from(name)).map(|it| it.to_string_lossy().into_owned())
    }

    /// All variables, sorted by name: what a child process may be given.
    pub fn all(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.vars.iter()
    }

    /// Texts that a plugin said are secret.
    pub fn secrets(&self) -> Vec<Rc<str>> {
        self.secrets.borrow().clone()
    }
}

impl Svc<Env> {
    /// This text is a secret as long as the caller lives: whoever passes on what children print masks it.
    pub fn hide(&self, secret: &str) -> Result<Undo, Error> {
        let (env, secret) = (self.shared(), Rc::<str>::from(secret));
        self.ctx().effect(|| {
            self.secrets.borrow_mut().push(Rc::clone(&secret));
            move || env.secrets.borrow_mut().retain(|it| !Rc::ptr_eq(it, &secret))
        })
    }
}
