//! Part of `script`: events that only scripts know. They are dispatched by the script that raises them, in
//! `prelude/events.js`, which asks here who listens and has the listeners of other scripts called.

use std::{cell::Cell, rc::Rc};

use serde_json::{Value, json};

use super::{Bridge, Done, Reply, callback::Callback, shown, text};
use crate::cordis::NamedListener;

/// A listener of such an event.
struct Heard {
    id: u64,
    /// Takes a list of arguments, and a number that stands for `next`.
    callback: Rc<Callback>,
}

thread_local! {
    static LAST: Cell<u64> = const { Cell::new(0) };
}

impl Bridge {
    /// Operations on events; none if it is not one of these.
    pub(super) fn named(self: &Rc<Self>, operation: &str, args: &[Value]) -> Option<Reply> {
        Some(match (operation, args) {
            ("on", [ctx, event, order, listener]) => {
                Reply::Now(self.listen(ctx, event, order, listener))
            }
            ("listeners", [ctx, event, mode]) => Reply::Now(self.listeners(ctx, event, mode)),
            ("raise", [ctx, event, values]) => Reply::Now(self.raise(ctx, event, values)),
            ("listener", [ctx, event, id, values, next]) => {
                self.ask_listener(ctx, event, id, values, next)
            }
            ("failed", [ctx, event, id, problem]) => {
                Reply::Now(self.listener_failed(ctx, event, id, problem))
            }
            _ => return None,
        })
    }

    fn listen(
        self: &Rc<Self>,
        ctx: &Value,
        event: &Value,
        order: &Value,
        listener: &Value,
    ) -> Done {
        let (ctx, event, callback) =
            (self.context(ctx)?, text("the name of an event", event)?, self.function(listener)?);
        let order = order.as_i64().and_then(|it| i32::try_from(it).ok());
        let order = order.ok_or_else(|| "the order of a listener is a whole number".to_owned())?;
        if let Some(undo) = self.listen_native(&ctx, event, order, callback.clone()) {
            return Ok(self.keep(undo?));
        }
        let id = LAST.get() + 1;
        LAST.set(id);
        let undo = ctx.on_named(event, order, Heard { id, callback }).map_err(shown)?;
        Ok(self.keep(undo))
    }

    /// Who listens, in order: the function of a listener of this script, 0 for others, and the id.
    fn listeners(self: &Rc<Self>, ctx: &Value, event: &Value, mode: &Value) -> Done {
        let (ctx, event) = (self.context(ctx)?, text("the name of an event", event)?);
        if Self::may_raise(event, text("a way to raise it", mode)?)? {
            return Ok("native".into());
        }
        let is_told = mode == "emit";
        let mut found = ctx.named(event).map_err(shown)?;
        found.retain(|it| !is_told || self.can_be_told_to(it, event));
        let each = found.iter().filter_map(NamedListener::get::<Heard>);
        Ok(each
            .map(|it| {
                let own = if it.callback.is_of(self) { it.callback.function() } else { 0 };
                json!([own, it.id])
            })
            .collect())
    }

    /// Whether a listener of another script keeps up.
    fn can_be_told_to(self: &Rc<Self>, listener: &NamedListener, event: &str) -> bool {
        let Some(heard) = listener.get::<Heard>() else { return false };
        if heard.callback.is_of(self) {
            return true;
        }
        let outcome = heard.callback.bridge().can_be_told();
        outcome.unwrap_or_else(|failure| {
            listener.ctx().listener_failed(event, failure.into());
            false
        })
    }

    fn find(
        &self,
        ctx: &Value,
        event: &Value,
        id: &Value,
    ) -> Result<Option<NamedListener>, String> {
        let (ctx, id) = (self.context(ctx)?, id.as_u64());
        let found = ctx.named(text("the name of an event", event)?).map_err(shown)?;
        Ok(found.into_iter().find(|it| it.get::<Heard>().is_some_and(|it| Some(it.id) == id)))
    }

    /// Calls the listener of another script. What comes back says whether it was still there.
    fn ask_listener(
        self: &Rc<Self>,
        ctx: &Value,
        event: &Value,
        id: &Value,
        values: &Value,
        next: &Value,
    ) -> Reply {
        let found = match self.find(ctx, event, id) {
            Ok(found) => found,
            Err(problem) => return Reply::Now(Err(problem)),
        };
        let Some((heard, callback)) = found
            .as_ref()
            .and_then(|it| Some((it.ctx().clone(), it.get::<Heard>()?.callback.clone())))
        else {
            return Reply::Now(Ok(json!([false, null])));
        };
        let rest = self.callback(next);
        let token = rest.map(|rest| {
            callback.bridge().next(move || {
                let going = rest.call(Vec::new());
                Box::pin(async move { going.await.map_err(shown) })
            })
        });
        let args = vec![values.clone(), token.as_ref().map_or(Value::Null, |it| it.number.into())];
        let (going, told) = (callback.call(args), callback.bridge().pace.tell());
        Reply::Later(Box::pin(async move {
            let answer = tokio::select! {
                biased;
                answer = going => answer.map_err(shown),
                () = heard.stopping() => Err("the plugin that listens was unloaded meanwhile".into()),
            };
            drop((token, callback, told));
            answer.map(|it| json!([true, it]))
        }))
    }

    fn listener_failed(&self, ctx: &Value, event: &Value, id: &Value, problem: &Value) -> Done {
        let listening = self.find(ctx, event, id)?.map(|it| it.ctx().clone());
        let listening = listening.map_or_else(|| self.context(ctx), Ok)?;
        listening.listener_failed(
            text("the name of an event", event)?,
            self.masked(text("a problem", problem)?).into(),
        );
        Ok(Value::Null)
    }
}
