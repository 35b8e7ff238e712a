//! Part of `script`: the services of the agent, called by a script.

use std::rc::Rc;

use serde_json::{Value, json};

use super::{Bridge, Reply, number, text};
use crate::harness::{
    prompt::Prompt,
    tools::{Call, Tool, ToolResult, Tools},
};

impl Bridge {
    /// Operations on services; none if it is not one of these.
    pub(super) fn services(self: &Rc<Self>, operation: &str, args: &[Value]) -> Option<Reply> {
        Some(Reply::Now(match (operation, args) {
            ("service", [_, _, _]) => Ok(json!({ "function": null })),
            ("tools.register", [ctx, name, description, parameters, execute]) => {
                self.register(ctx, name, description, parameters, execute)
            }
            ("prompt.section", [ctx, name, order, section]) => {
                self.section(ctx, name, order, section)
            }
            ("prompt.render", [ctx]) => self.render(ctx),
            _ => return None,
        }))
    }

    fn register(
        self: &Rc<Self>,
        ctx: &Value,
        name: &Value,
        description: &Value,
        parameters: &Value,
        execute: &Value,
    ) -> Result<Value, String> {
        let tools = self.context(ctx)?.service::<Tools>().map_err(|err| err.to_string())?;
        let (bridge, execute) = (self.clone(), number(execute).unwrap_or_default());
        let body = async move |call: Rc<Call>| {
            let args = vec![
                Value::Object(call.arguments.clone()),
                json!({ "id": call.id, "name": call.name }),
            ];
            Ok(result(bridge.call(execute, args).await?))
        };
        let description = description.as_str().unwrap_or_default();
        let tool = Tool::new(text(name)?, description, parameters.clone(), body);
        Ok(self.keep(tools.register(tool).map_err(|err| err.to_string())?))
    }

    fn section(
        &self,
        ctx: &Value,
        name: &Value,
        order: &Value,
        section: &Value,
    ) -> Result<Value, String> {
        let prompt = self.context(ctx)?.service::<Prompt>().map_err(|err| err.to_string())?;
        let order = order.as_i64().and_then(|it| i32::try_from(it).ok()).unwrap_or_default();
        let undo = prompt.section(text(name)?, order, text(section)?);
        Ok(self.keep(undo.map_err(|err| err.to_string())?))
    }

    fn render(&self, ctx: &Value) -> Result<Value, String> {
        let prompt = self.context(ctx)?.service::<Prompt>().map_err(|err| err.to_string())?;
        Ok(prompt.render().into())
    }
}

/// What a tool of a script returned, as a result.
fn result(value: Value) -> ToolResult {
    match value {
        Value::String(text) => ToolResult::text(text),
        Value::Null => ToolResult::text(""),
        other => ToolResult::text(other.to_string()),
    }
}
