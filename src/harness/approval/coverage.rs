//! Part of `approval`: says which tools run unasked and which names guard nothing (D-33).
//!
//! Watch for: an empty list is an explicit "ask about nothing" and is not commented on. And nothing is said before the
//! agent is at rest: while entries start, every list has gaps.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use super::Guarded;
use crate::{
    cordis::{Applied, Context, Error, Loader, Notice, Optional, Svc},
    harness::tools::{Tools, ToolsChanged},
};

/// Keeps an eye on the table of tools for as long as the plugin lives.
pub(super) fn watch(
    ctx: &Context,
    guarded: &Rc<Guarded>,
    tools: Svc<Tools>,
    loader: Optional<Loader>,
) -> Result<(), Error> {
    if guarded.0.is_empty() {
        return Ok(());
    }
    let (guarded, told) = (guarded.clone(), RefCell::default());
    let coverage = Rc::new(Coverage { guarded, tools, loader, told });
    let on_tools = coverage.clone();
    ctx.on(move |ctx, _: &ToolsChanged| on_tools.review(ctx, Coverage::tell_open_tools))?;
    let on_applied = coverage.clone();
    ctx.on(move |ctx, _: &Applied| on_applied.review(ctx, Coverage::tell_idle_names))?;
    coverage.review(ctx, Coverage::tell_open_tools);
    coverage.review(ctx, Coverage::tell_idle_names);
    Ok(())
}

struct Coverage {
    guarded: Rc<Guarded>,
    tools: Svc<Tools>,
    loader: Optional<Loader>,
    told: RefCell<BTreeSet<String>>,
}

impl Coverage {
    fn review(self: &Rc<Self>, ctx: &Context, tell: fn(&Self, &Context)) {
        let coverage = self.clone();
        let review = async move |ctx: Context| {
            match coverage.loader.get() {
                Some(loader) => drop(loader.applied().await),
                None => tokio::task::yield_now().await,
            }
            tell(&coverage, &ctx);
        };
        // A plugin that is being unloaded has nothing to say any more.
        ctx.spawn("coverage", review).ok();
    }

    fn tell_open_tools(&self, ctx: &Context) {
        let names = self.tools.names().into_iter();
        let open: BTreeSet<String> = names.filter(|name| !self.guarded.covers(name)).collect();
        let told = self.told.replace(open.clone());
        let mut families: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
        for name in open.difference(&told) {
            families.entry(family(name)).or_default().push(name);
        }
        for (family, names) in families {
            ctx.emit(&Notice(match names[..] {
                [name] => format!("{name}: runs without asking"),
                _ => format!("{family}: {} tools run without asking", names.len()),
            }));
        }
    }

    fn tell_idle_names(&self, ctx: &Context) {
        let names = self.tools.names();
        let idle = self.guarded.0.iter().filter(|it| !it.contains('*') && !names.contains(it));
        for name in idle {
            ctx.emit(&Notice(format!("approval: there is no tool named `{name}`")));
        }
    }
}

/// Tools of one server are told together: `mcp__x` of `mcp__x__read`.
fn family(name: &str) -> &str {
    name.rsplit_once("__").map_or(name, |(server, _)| server)
}
