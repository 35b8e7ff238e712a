//! Part of `script`: gives the engine the modules that it asks for, all of which were read before.

use std::sync::Arc;

use rquickjs::{
    Ctx, Error, Exception, Module, Result,
    loader::{ImportAttributes, Loader, Resolver},
    module::Declared,
};

use super::{machine::ENTRY, prelude, program::Program};

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
        let is_ours = base == ENTRY || prelude::has(base);
        if is_ours && (prelude::has(name) || name == self.0.entry) {
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
        let Some(module) = self.0.modules.get(name) else {
            return prelude::load(ctx, name).unwrap_or_else(|| Err(Error::new_loading(name)));
        };
        let declared = Module::declare(ctx.clone(), name, &*module.code)?;
        declared.meta()?.set("url", format!("file://{name}"))?;
        Ok(declared)
    }
}
