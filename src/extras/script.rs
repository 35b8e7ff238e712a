//! Script plugins: a `.ts` or `.js` file as a full plugin, with nothing installed but this binary.
//!
//! An entry whose `name` is a path is one. Its words are the original's: named exports `name`, `inject`, `Config` and
//! `apply(ctx, config)`, or a default export that replaces them. In the folder: `sources` reads the file and what it
//! imports, `translate` takes the types out, `engine` and `machine` run it on a thread of its own, `bridge` does on the
//! agent's side what it asks for, and `prelude/` is what it finds when it begins.
//! Watch for: everything that a script registers is an effect of its fiber, so saving and reloading needs nothing special.
//! Each start has an engine of its own: nothing is left of the last one.

mod border;
mod bridge;
mod console;
mod engine;
mod failure;
mod imports;
mod machine;
mod moment;
mod naming;
mod prelude;
#[cfg(any(test, fuzzing))]
pub(crate) mod probe;
mod program;
mod sources;
mod timers;
mod translate;
mod value;

use std::{
    cell::RefCell,
    collections::HashMap,
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
};

use serde_json::Value;

use self::{
    bridge::Bridge,
    engine::{Engine, Exports},
    failure::Failure,
    program::Program,
    sources::Sources,
};
use crate::cordis::{
    BoxError, Builtins, Cleanup, Context, ModuleError, ModuleKey, ModuleSource, PluginDef,
    is_script, secrets_in,
};
use crate::harness::env::{Env, mask::can_be_secret};

/// Where plugins come from: the built-ins, and the files that entries name.
pub struct Scripts {
    builtins: Builtins,
    /// What is known of the files of each script that was named.
    sources: RefCell<HashMap<ModuleKey, Rc<Sources>>>,
}

impl Scripts {
    /// The built-ins, and all scripts.
    pub fn new(builtins: Builtins) -> Self {
        Self { builtins, sources: RefCell::default() }
    }

    fn script(&self, key: &ModuleKey) -> Option<Rc<Sources>> {
        self.sources.borrow().get(key).cloned()
    }
}

impl ModuleSource for Scripts {
    fn resolve(&self, name: &str, base: &Path) -> Result<ModuleKey, ModuleError> {
        if !is_script(name) {
            return self.builtins.resolve(name, base);
        }
        let sources = Sources::new(name, base);
        let key = ModuleKey(naming::name_of(&sources.entry).into());
        self.sources.borrow_mut().entry(key.clone()).or_insert_with(|| Rc::new(sources));
        Ok(key)
    }

    fn load(&self, key: &ModuleKey) -> Result<PluginDef, ModuleError> {
        let Some(sources) = self.script(key) else { return self.builtins.load(key) };
        let broken = |failure: Failure| ModuleError::Broken {
            name: sources.name.clone(),
            problem: failure.to_string(),
        };
        prelude::prepare_soon();
        let program = Arc::new(sources.program().map_err(broken)?);
        let stem = sources.entry.file_stem().unwrap_or_default().to_string_lossy();
        define(&stem, program).map_err(|it| broken(it.of(&sources.shown())))
    }

    fn files(&self, key: &ModuleKey) -> Vec<PathBuf> {
        self.script(key).map_or_else(Vec::new, |it| it.files())
    }
}

type Loaded = (Engine, tokio::sync::mpsc::Receiver<Box<engine::Request>>);

/// The plugin that a program is. The engine that told what it exports serves the first start.
fn define(stem: &str, program: Arc<Program>) -> Result<PluginDef, Failure> {
    let (engine, Exports { name, inject, schema }, requests) = Engine::load(program.clone())?;
    let first: Rc<RefCell<Option<Loaded>>> = Rc::new(RefCell::new(Some((engine, requests))));
    if schema.as_ref().is_some_and(bridge::fetch::grants_itself) {
        let problem =
            "`Config` gives `allow` a default; whom a script may fetch from only its entry says";
        return Err(Failure::new(problem));
    }
    let schema = bridge::fetch::with_allow(schema);
    // Few mark anything as secret; the others need not be there twice.
    let marked = schema.to_string().contains("\"writeOnly\"").then(|| schema.clone());
    let start = move |ctx: Context, config: Value| {
        let (program, loaded) = (program.clone(), first.take());
        let secrets = marked.as_ref().map(|schema| secrets_in(&config, schema));
        let mut secrets = secrets.unwrap_or_default();
        secrets.retain(|it| can_be_secret(it));
        let body = async move {
            for secret in secrets {
                ctx.get::<Env>().map(|env| env.hide(&secret)).transpose()?;
            }
            let (engine, requests) = match loaded {
                Some(loaded) => loaded,
                None => Engine::load(program).map(|(engine, _, requests)| (engine, requests))?,
            };
            Bridge::start(ctx, engine, requests, config).await
        };
        let body: crate::cordis::LocalBoxFuture<'static, Result<Option<Cleanup>, BoxError>> =
            Box::pin(body);
        body
    };
    PluginDef::dynamic(name.as_deref().unwrap_or(stem), &inject, Some(schema), start)
        .map_err(|err| Failure::new(err.to_string()))
}
