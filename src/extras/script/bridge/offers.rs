//! Part of `script`: services that scripts provide, and how scripts find services.
//!
//! In its own script a service is the object itself, as a view that belongs to the caller. Another script gets methods
//! that return promises, because what they take and give crosses as JSON.

use std::{any::Any, rc::Rc};

use serde_json::{Value, json};

use super::{
    Bridge, Done, Reply, callback::Callback, llm::ScriptLlm, shell::ScriptShell, shown, text,
};
use crate::{
    cordis::{Context, Service, Svc, Undo},
    harness::{llm::Llm, shell::Shell},
};

/// Services of the agent that scripts have a view of, in `prelude/services.js`.
const NATIVE: [&str; 8] =
    ["tools", "prompt", "llm", "shell", "session", "agentLoop", "loader", "persistence"];

/// A service that a script provides under a name of its own.
struct ScriptService {
    /// Keeps the object.
    _object: Rc<Callback>,
    methods: Value,
    /// Takes the name of a method, its arguments, and the context of the caller.
    invoke: Rc<Callback>,
}

impl Bridge {
    /// Operations on the table of services; none if it is not one of these.
    pub(super) fn offers(self: &Rc<Self>, operation: &str, args: &[Value]) -> Option<Reply> {
        Some(match (operation, args) {
            ("provide", [ctx, name, object, offer]) => {
                Reply::Now(self.provide(ctx, name, object, offer))
            }
            ("service", [ctx, name, needed]) => Reply::Now(self.service(ctx, name, needed)),
            ("foreign", [ctx, name, needed, method, args]) => {
                let going = self.call_foreign(ctx, name, needed, method, args);
                going.unwrap_or_else(|problem| Reply::Now(Err(problem)))
            }
            _ => return None,
        })
    }

    fn provide(self: &Rc<Self>, ctx: &Value, name: &Value, object: &Value, offer: &Value) -> Done {
        let (ctx, name, kept) =
            (self.context(ctx)?, text("the name of a service", name)?, self.function(object)?);
        let undo = match name {
            "llm" => {
                let model = offer["model"].as_str().unwrap_or("script").to_owned();
                let chat = self.function(&offer["chat"]).map_err(|_| lacks("llm", "chat"))?;
                ctx.provide::<dyn Llm>(Rc::new(ScriptLlm::new(self, model, chat, kept)))
            }
            "shell" => {
                let run = self.function(&offer["run"]).map_err(|_| lacks("shell", "run"))?;
                ctx.provide::<dyn Shell>(Rc::new(ScriptShell::new(
                    self,
                    run,
                    kept,
                    &offer["local"],
                )))
            }
            _ => self.provide_own(&ctx, name, kept, offer)?,
        };
        let undo = undo.map_err(shown)?;
        if let (Ok(view), Some(object)) = (ctx.service_any(name), super::number(object)) {
            self.offers
                .borrow_mut()
                .insert(name.to_owned(), (Rc::downgrade(&view.shared()), object));
        }
        Ok(self.keep(undo))
    }

    fn provide_own(
        self: &Rc<Self>,
        ctx: &Context,
        name: &str,
        kept: Rc<Callback>,
        offer: &Value,
    ) -> Result<Result<Undo, crate::cordis::Error>, String> {
        let invoke = self.function(&offer["invoke"])?;
        let service = ScriptService { _object: kept, methods: offer["methods"].clone(), invoke };
        Ok(ctx.provide_named(name, Rc::new(service)))
    }

    fn service(&self, ctx: &Value, name: &Value, needed: &Value) -> Done {
        let (ctx, name) = (self.context(ctx)?, text("the name of a service", name)?);
        let Some(view) = look_up(&ctx, name, needed)? else { return Ok(Value::Null) };
        let value = view.shared();
        let own = self.offers.borrow().get(name).cloned();
        let own = own.filter(|(it, _)| it.upgrade().is_some_and(|it| Rc::ptr_eq(&it, &value)));
        if let Some((_, object)) = own {
            return Ok(json!({ "own": object, "context": self.name_context(view.ctx().clone()) }));
        }
        if let Some(service) = value.downcast_ref::<Rc<ScriptService>>() {
            return Ok(json!({ "methods": service.methods }));
        }
        if NATIVE.contains(&name) {
            return Ok(json!({ "native": true }));
        }
        Err(format!("the service `{name}` is not for scripts"))
    }

    fn call_foreign(
        &self,
        ctx: &Value,
        name: &Value,
        needed: &Value,
        method: &Value,
        args: &Value,
    ) -> Result<Reply, String> {
        let (ctx, name) = (self.context(ctx)?, text("the name of a service", name)?);
        let gone = || format!("the service `{name}` is not there any more");
        let view = look_up(&ctx, name, needed)?.ok_or_else(gone)?;
        let service =
            view.shared().downcast_ref::<Rc<ScriptService>>().cloned().ok_or_else(gone)?;
        let caller = service.invoke.bridge().name_context(view.ctx().clone());
        let going = service.invoke.call(vec![method.clone(), args.clone(), caller.into()]);
        Ok(Reply::Later(Box::pin(async move {
            let outcome = going.await.map_err(shown);
            drop(service);
            outcome
        })))
    }
}

/// Reads a service as it is needed: it must be there and declared, or may be absent. Whoever runs commands has said so.
fn look_up(ctx: &Context, name: &str, needed: &Value) -> Result<Option<Svc<dyn Any>>, String> {
    let found = ctx.get_any(name);
    let must_be_declared = name == <dyn Shell>::NAME && found.is_some();
    if *needed == Value::Bool(true) || must_be_declared {
        return ctx.service_any(name).map(Some).map_err(shown);
    }
    Ok(found)
}

fn lacks(name: &str, method: &str) -> String {
    format!("what provides `{name}` needs a method `{method}`")
}
