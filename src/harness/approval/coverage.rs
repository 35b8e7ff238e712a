//! Part of `approval`: says which tools run unasked and which names guard nothing (D-33).
//!
//! Watch for: an empty list is an explicit "ask about nothing" and is not commented on.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use super::Guarded;
use crate::{
    cordis::{
        BoxError, Context, Error, Svc,
        loader::{Applied, Notice},
    },
    harness::tools::{Tools, ToolsChanged},
};

/// Keeps an eye on the table of tools for as long as the plugin lives.
pub(super) fn watch(ctx: &Context, guarded: &Rc<Guarded>, tools: &Svc<Tools>) -> Result<(), Error> {
    if guarded.0.is_empty() {
        return Ok(());
    }
    let open =
        Rc::new(Open { guarded: guarded.clone(), tools: tools.clone(), told: RefCell::default() });
    let (changed, applied) = (open.clone(), open.clone());
    ctx.on::<ToolsChanged, _>(move |ctx, _| {
        tell_soon(ctx, changed.clone()).map_err(BoxError::from)
    })?;
    ctx.on::<Applied, _>(move |ctx, _| applied.tell_idle_names(ctx))?;
    tell_soon(ctx, open)
}

/// A plugin registers its tools in one go; waiting a moment makes one line of them.
fn tell_soon(ctx: &Context, open: Rc<Open>) -> Result<(), Error> {
    ctx.spawn("tools that run unasked", async move |ctx: Context| {
        tokio::task::yield_now().await;
        open.tell_new_ones(&ctx);
    })?;
    Ok(())
}

struct Open {
    guarded: Rc<Guarded>,
    tools: Svc<Tools>,
    told: RefCell<BTreeSet<String>>,
}

impl Open {
    fn tell_new_ones(&self, ctx: &Context) {
        let open: BTreeSet<String> =
            self.tools.names().into_iter().filter(|name| !self.guarded.covers(name)).collect();
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
