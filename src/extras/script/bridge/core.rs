//! Part of `script`: what a context can do.

use std::rc::Rc;

use serde_json::Value;

use super::{Bridge, ROOT, Reply, number, text};
use crate::cordis::BoxError;

impl Bridge {
    /// Operations of the kernel; none if it is not one of these.
    pub(super) fn core(self: &Rc<Self>, operation: &str, args: &[Value]) -> Option<Reply> {
        Some(match (operation, args) {
            ("check", [ctx]) => Reply::Now(self.check(ctx)),
            ("effect", [ctx, cleanup]) => Reply::Now(self.effect(ctx, cleanup)),
            ("undo", [effect]) => self.undo(effect),
            ("complain", [problem]) => Reply::Now(self.complain(problem)),
            _ => return None,
        })
    }

    fn check(&self, ctx: &Value) -> Result<Value, String> {
        let ctx = self.context(ctx)?;
        let probe = ctx.effect(|| ()).map_err(|err| err.to_string())?;
        drop(probe.call());
        Ok(Value::Null)
    }

    /// A failure that nobody waits for is one of a task.
    fn complain(&self, problem: &Value) -> Result<Value, String> {
        let problem: BoxError = text(problem)?.into();
        let ctx = self.context(&ROOT.into())?;
        let complaint = ctx.spawn::<Result<(), BoxError>>("script", async move |_| Err(problem));
        complaint.map(|_| Value::Null).map_err(|err| err.to_string())
    }

    fn effect(self: &Rc<Self>, ctx: &Value, cleanup: &Value) -> Result<Value, String> {
        let ctx = self.context(ctx)?;
        let (bridge, cleanup) = (self.clone(), number(cleanup).unwrap_or_default());
        let undo = ctx.effect(|| async move || bridge.clean_up(cleanup).await);
        Ok(self.keep(undo.map_err(|err| err.to_string())?))
    }

    fn undo(&self, effect: &Value) -> Reply {
        let undo = number(effect).and_then(|it| self.undos.borrow_mut().remove(&it));
        let Some(undo) = undo else { return Reply::Now(Ok(Value::Null)) };
        let undoing = undo.call();
        Reply::Later(Box::pin(async move {
            undoing.await.map(|_| Value::Null).map_err(|err| err.to_string())
        }))
    }
}
