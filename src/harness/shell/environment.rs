//! Part of `shell`: which environment variables a child process gets. Raises `shell/env`.
//!
//! Full-size counterpart: the environment of the local bash package.
//! Watch for: whoever starts processes asks here, so that a secret is kept from all of them or from none.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    rc::Rc,
};

use super::ShellError;
use crate::{
    cordis::{Context, Waterfall, loader::secret_part},
    harness::env::Env,
};

/// Environment variables of a child process.
pub type Vars = BTreeMap<OsString, OsString>;

/// `shell/env`: which variables does a child process get? A plugin that knows a secret variable by name takes it out
/// of what `next` gives. A listener that fails keeps the child from starting.
pub struct ShellEnv;

impl Waterfall for ShellEnv {
    const NAME: &str = "shell/env";
    type Input = Vars;
    type Output = Vars;
}

/// The environment for a child process: that of this process without what looks secret by name and without what plugins
/// take out, but with everything that the user named in `pass`.
pub async fn child_env(ctx: &Context, env: &Env, pass: &[String]) -> Result<Vars, ShellError> {
    let own = |keep: &dyn Fn(&OsStr) -> bool| -> Vars {
        env.all()
            .filter(|(name, _)| keep(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let open = Rc::new(own(&|name| secret_part(&name.to_string_lossy()).is_none()));
    let vars = ctx.waterfall::<ShellEnv>(open, async |vars: Rc<Vars>| Ok(Vars::clone(&vars))).await;
    let mut vars = vars.map_err(|source| ShellError::Environment { source })?;
    vars.extend(own(&|name| pass.iter().any(|it| name == it.as_str())));
    Ok(vars)
}
