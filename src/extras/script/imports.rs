//! Part of `script`: gives the engine the modules that it asks for, all of which were read before.

use std::sync::{Arc, OnceLock};

use rquickjs::{
    Ctx, Error, Exception, Module, Result,
    loader::{ImportAttributes, Loader, Resolver},
    module::Declared,
};

use super::{machine::ENTRY, program::Program};
use crate::{cordis::plugin, harness::shell_local};

/// The prelude: what a script finds when it begins, in the words of the original. Names and sources.
const PRELUDE: [(&str, &str); 14] = [
    ("nano-cordis", include_str!("prelude/index.js")),
    ("nano-cordis/host", include_str!("prelude/host.js")),
    ("nano-cordis/context", include_str!("prelude/context.js")),
    ("nano-cordis/events", include_str!("prelude/events.js")),
    ("nano-cordis/inspect", include_str!("prelude/inspect.js")),
    ("nano-cordis/natives", include_str!("prelude/natives.js")),
    ("nano-cordis/plugins", include_str!("prelude/plugins.js")),
    ("nano-cordis/schema", include_str!("prelude/schema.js")),
    ("nano-cordis/service", include_str!("prelude/service.js")),
    ("nano-cordis/services", include_str!("prelude/services.js")),
    ("nano-cordis/session", include_str!("prelude/session.js")),
    ("nano-cordis/web", include_str!("prelude/web.js")),
    ("cordis", "export * from 'nano-cordis'"),
    ("schemastery", "export { Schema as default, Schema } from 'nano-cordis'"),
];

/// The schema of the config of `shell-local`, for those that add something to it.
const SHELL_CONFIG: &str = "nano-cordis/shell-config";

fn shell_config() -> &'static str {
    static SOURCE: OnceLock<String> = OnceLock::new();
    SOURCE.get_or_init(|| {
        let schema = plugin(shell_local::apply).schema().cloned().unwrap_or_default();
        format!("export default {schema}")
    })
}

/// Bare names that the host serves.
pub(super) const HOST: [&str; 3] = ["nano-cordis", "cordis", "schemastery"];

/// Resolves and loads what is in a program, and nothing else.
#[derive(Clone)]
pub(super) struct Links(Arc<Program>);

impl Links {
    pub(super) fn new(program: Arc<Program>) -> Self {
        Self(program)
    }
}

impl Resolver for Links {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        // What the prelude is made of is not for the script.
        let is_ours = base == ENTRY || prelude(base).is_some();
        if is_ours && (prelude(name).is_some() || name == self.0.entry) {
            return Ok(name.to_owned());
        }
        let link = (base.to_owned(), name.to_owned());
        let found = self.0.links.get(&link).cloned();
        let problem = "only what is written out in `import(…)` is there: a path in quotes";
        found.ok_or_else(|| {
            Exception::throw_reference(ctx, &format!("cannot import `{name}`: {problem}"))
        })
    }
}

impl Loader for Links {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        let module = self.0.modules.get(name).map(|it| &*it.code);
        let code = module.or_else(|| prelude(name)).ok_or_else(|| Error::new_loading(name))?;
        let declared = Module::declare(ctx.clone(), name, code)?;
        if module.is_some() {
            declared.meta()?.set("url", format!("file://{name}"))?;
        }
        Ok(declared)
    }
}

fn prelude(name: &str) -> Option<&'static str> {
    if name == SHELL_CONFIG {
        return Some(shell_config());
    }
    PRELUDE.iter().find(|it| it.0 == name).map(|it| it.1)
}
