//! Part of `approval-rules`: says which rules are about nothing (D-33).

use std::rc::Rc;

use super::{Config, rule::Rule};
use crate::{
    cordis::{Applied, Context, Error, Svc, Warning},
    harness::{session::message::ToolSchema, tools::Tools},
};

/// Looks after each apply: by then every entry is at rest, so a name without a tool is no matter of order.
pub(super) fn watch(ctx: &Context, config: &Rc<Config>, tools: Svc<Tools>) -> Result<(), Error> {
    let config = config.clone();
    ctx.on(move |ctx, _: &Applied| {
        let tools = tools.schemas();
        for why in config.all().filter_map(|rule| idle(rule, &tools)) {
            ctx.emit(&Warning(format!("approval-rules: {why}")));
        }
    })?;
    Ok(())
}

/// Why no call fits a rule, if so.
fn idle(rule: &Rule, tools: &[ToolSchema]) -> Option<String> {
    let mut named = tools.iter().filter(|it| rule.is_of(&it.function.name)).peekable();
    if named.peek().is_none() {
        let is_name = !rule.tool.contains('*');
        return is_name.then(|| format!("there is no tool named `{}`, as in `{rule}`", rule.tool));
    }
    let takes_command =
        |it: &ToolSchema| it.function.parameters.pointer("/properties/command").is_some();
    let is_idle = rule.line.is_some() && !named.any(takes_command);
    is_idle.then(|| format!("`{rule}` never fits, because `{}` takes no command", rule.tool))
}
