//! Part of `script`: tools and the prompt, for scripts.

use std::rc::Rc;

use serde_json::{Value, json};

use super::{Bridge, Done, Reply, codec, shown, text};
use crate::{
    cordis::{BoxError, Context, Service, Svc},
    harness::{
        prompt::Prompt,
        tools::{Call, CallRequest, Tool, Tools, arguments::completed},
    },
};

/// A service as a plugin of the script sees it: declared, or found by `get`.
pub(super) fn view<S: Service + ?Sized>(ctx: &Context) -> Result<Svc<S>, String> {
    ctx.service::<S>().or_else(|err| ctx.get::<S>().ok_or(err)).map_err(shown)
}

impl Bridge {
    /// Operations on these services; none if it is not one of these.
    pub(super) fn services(self: &Rc<Self>, operation: &str, args: &[Value]) -> Option<Reply> {
        Some(match (operation, args) {
            ("tools.register", [ctx, tool, execute]) => {
                Reply::Now(self.register(ctx, tool, execute))
            }
            ("tools.schemas", [ctx]) => {
                Reply::Now(self.tools(ctx).map(|it| codec::json(&it.schemas())))
            }
            ("tools.names", [ctx]) => Reply::Now(self.tools(ctx).map(|it| it.names().into())),
            ("tools.execute", [cancel, ctx, call]) => self.execute(cancel, ctx, call),
            ("prompt.section", [ctx, name, order, section]) => {
                Reply::Now(self.section(ctx, name, order, section))
            }
            ("prompt.render", [ctx]) => Reply::Now(
                self.context(ctx).and_then(|it| view::<Prompt>(&it)).map(|it| it.render().into()),
            ),
            _ => return None,
        })
    }

    fn tools(&self, ctx: &Value) -> Result<Svc<Tools>, String> {
        view(&self.context(ctx)?)
    }

    fn register(self: &Rc<Self>, ctx: &Value, tool: &Value, execute: &Value) -> Done {
        let (tools, execute, bridge) = (self.tools(ctx)?, self.function(execute)?, self.clone());
        let name = text("the name of a tool", &tool["name"])?;
        let parameters = completed(tool["parameters"].clone());
        let parameters = parameters.map_err(|why| format!("tool `{name}`: its schema {why}"))?;
        let body = async move |call: Rc<Call>| {
            let signal = bridge.number();
            let mut seen = codec::call(&call, signal);
            // Once is enough: the script has them as its first argument.
            seen["arguments"] = Value::Null;
            let args = vec![call.arguments.clone().into(), seen];
            let work = execute.call_with(args, signal);
            let said = bridge.with_signal(signal, &call.cancel, work).await;
            said.map(codec::result).map_err(BoxError::from)
        };
        let description = tool["description"].as_str().unwrap_or_default();
        let tool = Tool::new(name, description, parameters, body);
        Ok(self.keep(tools.register(tool).map_err(shown)?))
    }

    fn execute(self: &Rc<Self>, cancel: &Value, ctx: &Value, call: &Value) -> Reply {
        let request = || -> Result<_, String> {
            let tools = self.tools(ctx)?;
            let arguments = match &call["arguments"] {
                Value::String(raw) => raw.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            };
            let (held, token) = self.cancellation(cancel);
            let id = call["id"]
                .as_str()
                .map_or_else(|| format!("script_{}", self.number()), str::to_owned);
            let name = text("the name of a tool", &call["name"])?.to_owned();
            let (problem, session, turn, step) = (None, None, 0, 0);
            let request =
                CallRequest { id, name, arguments, problem, cancel: token, session, turn, step };
            Ok((tools, request, held))
        };
        match request() {
            Err(problem) => Reply::Now(Err(problem)),
            Ok((tools, request, held)) => Reply::Later(Box::pin(async move {
                let result = tools.execute(request).await;
                drop(held);
                Ok(json!({
                    "content": result.content, "isError": result.is_error, "denied": result.denied,
                }))
            })),
        }
    }

    fn section(&self, ctx: &Value, name: &Value, order: &Value, section: &Value) -> Done {
        let prompt = view::<Prompt>(&self.context(ctx)?)?;
        let (name, section) = (text("the name of a section", name)?, text("a section", section)?);
        let order = order.as_i64().and_then(|it| i32::try_from(it).ok());
        let order = order.ok_or_else(|| "the order of a section is a whole number".to_owned())?;
        Ok(self.keep(prompt.section(name, order, section).map_err(shown)?))
    }
}
