//! Part of `script`: the prelude, what a script finds when it begins, in the words of the original. Its modules are the
//! files of the folder.
//!
//! Watch for: it is the same for every script, so it is compiled once. What each script begins with is compiled by an engine
//! for that alone, while the first script is still read; the rest by the first engine that asks for it. Every later one
//! reads what came of that, which holds neither text nor places: no message shows them.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
    thread,
};

use rquickjs::{
    Context, Ctx, Module, Object, Result, Runtime,
    context::intrinsic::Eval,
    loader::{
        Loader,
        bundle::{Bundle, HasByteCode},
    },
    module::{Declared, WriteOptions},
};

use super::{border::Border, imports::Links, machine::ENTRY, program::Program};
use crate::{cordis::plugin, harness::shell_local};

/// Names and modules.
static PRELUDE: [(&str, Part); 21] = [
    ("nano-cordis", Part::new(|| include_str!("prelude/index.js").into())),
    ("nano-cordis/host", Part::new(|| include_str!("prelude/host.js").into())),
    ("nano-cordis/abort", Part::new(|| include_str!("prelude/abort.js").into())),
    ("nano-cordis/children", Part::new(|| include_str!("prelude/children.js").into())),
    ("nano-cordis/config", Part::new(|| include_str!("prelude/config.js").into())),
    ("nano-cordis/console", Part::new(|| include_str!("prelude/console.js").into())),
    ("nano-cordis/context", Part::new(|| include_str!("prelude/context.js").into())),
    ("nano-cordis/effects", Part::new(|| include_str!("prelude/effects.js").into())),
    ("nano-cordis/events", Part::new(|| include_str!("prelude/events.js").into())),
    ("nano-cordis/natives", Part::new(|| include_str!("prelude/natives.js").into())),
    ("nano-cordis/offers", Part::new(|| include_str!("prelude/offers.js").into())),
    ("nano-cordis/plugins", Part::new(|| include_str!("prelude/plugins.js").into())),
    ("nano-cordis/schema", Part::new(|| include_str!("prelude/schema.js").into())),
    ("nano-cordis/service", Part::new(|| include_str!("prelude/service.js").into())),
    ("nano-cordis/services", Part::new(|| include_str!("prelude/services.js").into())),
    ("nano-cordis/session", Part::new(|| include_str!("prelude/session.js").into())),
    ("nano-cordis/tools", Part::new(|| include_str!("prelude/tools.js").into())),
    ("nano-cordis/web", Part::new(|| include_str!("prelude/web.js").into())),
    ("nano-cordis/shell-config", Part::new(shell_config)),
    ("cordis", Part::new(|| "export * from 'nano-cordis'".into())),
    ("schemastery", Part::new(|| "export { Schema as default, Schema } from 'nano-cordis'".into())),
];

/// What each script begins with.
pub(super) const BEGINNING: &str = "import 'nano-cordis/context'";

/// One module of it.
struct Part {
    source: fn() -> Cow<'static, str>,
    compiled: OnceLock<&'static [u8]>,
}

impl Part {
    const fn new(source: fn() -> Cow<'static, str>) -> Self {
        Self { source, compiled: OnceLock::new() }
    }
}

impl HasByteCode<'static> for Part {
    fn get_bytecode(&self) -> &'static [u8] {
        self.compiled.get().expect("whoever reads it has looked")
    }
}

/// Whether what each script begins with was compiled, or could not be: then each engine does it for itself.
static PREPARED: OnceLock<()> = OnceLock::new();

/// Has it compiled on a thread of its own. Nobody waits for that here.
pub(super) fn prepare_soon() {
    if PREPARED.get().is_none() {
        // Without the thread it is done when it is needed.
        drop(thread::Builder::new().name("prelude".into()).spawn(prepare));
    }
}

/// Waits until it is compiled, or does it.
pub(super) fn prepare() {
    let mut used = None;
    PREPARED.get_or_init(|| used = beginning().ok());
    // The engine goes when nobody waits any more.
    drop(used);
}

/// Its modules are declared, each of which asks for those that it imports.
fn beginning() -> Result<(Context, Runtime)> {
    let runtime = Runtime::new()?;
    let links = Links::new(Arc::new(Program::default()));
    runtime.set_loader(links.clone(), links);
    let context = Context::custom::<Eval>(&runtime)?;
    context.with(|ctx| Module::declare(ctx, ENTRY, BEGINNING).map(drop))?;
    Ok((context, runtime))
}

/// The schema of the config of `shell-local`, for those that add something to it.
fn shell_config() -> Cow<'static, str> {
    let schema = plugin(shell_local::apply).schema().cloned().unwrap_or_default();
    format!("export default {schema}").into()
}

/// Whether a module of the prelude has this name.
pub(super) fn has(name: &str) -> bool {
    find(name).is_some()
}

/// The module of this name, if it is one of the prelude.
pub(super) fn load<'js>(ctx: &Ctx<'js>, name: &str) -> Option<Result<Module<'js, Declared>>> {
    let (name, part) = find(name)?;
    Some(match part.compiled.get() {
        Some(_) => Bundle(&PRELUDE[..]).load(ctx, name, None),
        None => part.compile(ctx, name),
    })
}

/// A module that few scripts need: what it exports. It is loaded when the prelude asks for it the first time.
pub(super) fn part<'js>(border: &Border, ctx: &Ctx<'js>, name: &str) -> Result<Object<'js>> {
    let text = format!("export * as it from 'nano-cordis/{name}'");
    let (module, evaluated) = Module::declare(ctx.clone(), ENTRY, text)?.eval()?;
    // No module of the prelude waits for anything. Whoever asked for it hears what went wrong.
    let outcome = evaluated.result::<()>().transpose();
    outcome.inspect_err(|_| border.note_rejection(&evaluated, &evaluated, true))?;
    module.get("it")
}

/// A name may end in `?` and a number: which attempt it is to load the module.
fn find(name: &str) -> Option<&'static (&'static str, Part)> {
    let name = name.split('?').next();
    PRELUDE.iter().find(|it| name == Some(it.0))
}

impl Part {
    fn compile<'js>(&self, ctx: &Ctx<'js>, name: &str) -> Result<Module<'js, Declared>> {
        let module = Module::declare(ctx.clone(), name, (self.source)().into_owned())?;
        let options =
            WriteOptions { strip_source: true, strip_debug: true, ..WriteOptions::default() };
        let compiled = module.write(options)?;
        // Kept for good: it is small, and there is one of each module.
        self.compiled.get_or_init(|| compiled.leak());
        Ok(module)
    }
}

#[cfg(test)]
mod tests {
    use super::{PRELUDE, prepare};

    #[test]
    fn what_each_script_begins_with_is_compiled_ahead_of_it() {
        prepare();

        let compiled = PRELUDE.iter().filter(|it| it.1.compiled.get().is_some());
        let compiled: Vec<_> = compiled.map(|it| it.0).collect();

        for name in ["host", "context", "plugins", "services", "tools"] {
            assert!(compiled.contains(&&*format!("nano-cordis/{name}")), "{name}: {compiled:?}");
        }
    }
}
