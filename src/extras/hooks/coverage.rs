//! Part of `hooks`: says which matchers are about no tool (D-33).

use std::collections::BTreeSet;

use super::hook::Hook;
use crate::{
    cordis::{Applied, Context, Error, Svc, Warning},
    harness::tools::Tools,
};

/// Looks after each apply: by then every entry is at rest, so a name without a tool is no matter of order.
pub(super) fn watch(ctx: &Context, hooks: &[Hook], tools: Svc<Tools>) -> Result<(), Error> {
    let matchers = hooks.iter().flat_map(|hook| {
        let event = hook.event().name();
        hook.matchers().iter().filter(|it| !it.contains('*')).map(move |it| (event, it.clone()))
    });
    let wanted: BTreeSet<_> = matchers.collect();
    ctx.on(move |ctx, _: &Applied| {
        let names = tools.names();
        for (event, name) in wanted.iter().filter(|(_, it)| !names.contains(it)) {
            let text =
                format!("hooks: there is no tool wanted `{name}`, so its {event} hook never runs");
            ctx.emit(&Warning(text));
        }
    })?;
    Ok(())
}
