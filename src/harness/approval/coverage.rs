//! Part of `approval`: says which tools run unasked and which names guard nothing (D-33).
//!
//! Watch for: an empty list is an explicit "ask about nothing" and is not commented on.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use super::Guarded;
use crate::{
    cordis::{Applied, Context, Error, Svc, Warning},
    harness::tools::{Tools, ToolsChanged},
};

/// How the names of tools of servers begin.
const MCP: &str = "mcp__";

/// Keeps an eye on the table of tools for as long as the plugin lives.
pub(super) fn watch(ctx: &Context, guarded: &Rc<Guarded>, tools: Svc<Tools>) -> Result<(), Error> {
    if guarded.0.is_empty() {
        return Ok(());
    }
    let guarded = guarded.clone();
    let coverage =
        Rc::new(Coverage { guarded, tools, told: RefCell::default(), is_due: Cell::default() });
    let (on_tools, on_applied) = (coverage.clone(), coverage.clone());
    ctx.on(move |ctx, _: &ToolsChanged| on_tools.tell_soon(ctx))?;
    // By now every entry is at rest, so a name without a tool is no matter of order.
    ctx.on(move |ctx, _: &Applied| on_applied.tell_idle_names(ctx))?;
    coverage.tell_soon(ctx);
    Ok(())
}

struct Coverage {
    guarded: Rc<Guarded>,
    tools: Svc<Tools>,
    told: RefCell<BTreeSet<String>>,
    /// Somebody is about to tell.
    is_due: Cell<bool>,
}

impl Coverage {
    /// A plugin registers its tools in one go; waiting a moment makes one line of them.
    fn tell_soon(self: &Rc<Self>, ctx: &Context) {
        if self.is_due.replace(true) {
            return;
        }
        let coverage = self.clone();
        let tell = async move |ctx: Context| {
            tokio::task::yield_now().await;
            coverage.is_due.set(false);
            coverage.tell_open_tools(&ctx);
        };
        // A plugin that is being unloaded has nothing to say any more.
        ctx.spawn("coverage", tell).ok();
    }

    fn tell_open_tools(&self, ctx: &Context) {
        let names = self.tools.names().into_iter();
        let open: BTreeSet<String> = names.filter(|name| !self.guarded.covers(name)).collect();
        // A tool that went and came back, as at each reload of its script, is no news.
        let news: Vec<_> = open.difference(&self.told.borrow()).cloned().collect();
        self.told.borrow_mut().extend(news.iter().cloned());
        let mut families: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
        for name in &news {
            families.entry(family(name)).or_default().push(name);
        }
        for (family, names) in families {
            ctx.emit(&Warning(match names[..] {
                [name] => format!("{name}: runs without asking"),
                _ => format!("{family}: {} tools run without asking", names.len()),
            }));
        }
    }

    fn tell_idle_names(&self, ctx: &Context) {
        let names = self.tools.names();
        let idle = self.guarded.0.iter().filter(|it| !it.contains('*') && !names.contains(it));
        for name in idle {
            ctx.emit(&Warning(format!("approval: there is no tool named `{name}`")));
        }
    }
}

/// Tools of one server are told together: `mcp__x` of `mcp__x__read`, and of `mcp__x__read__all`.
fn family(name: &str) -> &str {
    if let Some((server, _)) = name.strip_prefix(MCP).and_then(|it| it.split_once("__")) {
        return &name[..MCP.len() + server.len()];
    }
    name.rsplit_once("__").map_or(name, |(server, _)| server)
}
