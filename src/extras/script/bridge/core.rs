//! Part of `script`: what a context can do on its own: effects and children.

use std::rc::Rc;

use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};

use super::{Bridge, Done, Reply, number, shown, text};
use crate::{
    cordis::{BoxError, Cleanup, Context, LocalBoxFuture, Mount, PluginDef, Waited},
    extras::script::console,
};

type Body = LocalBoxFuture<'static, Result<Option<Cleanup>, BoxError>>;

impl Bridge {
    /// Operations of the kernel; none if it is not one of these.
    pub(super) fn core(self: &Rc<Self>, operation: &str, args: &[Value]) -> Option<Reply> {
        Some(match (operation, args) {
            ("effect", [ctx, cleanup]) => Reply::Now(self.effect(ctx, cleanup)),
            ("undo", [effect]) => self.undo(effect),
            ("plugin", [ctx, name, inject, schema, start, config]) => {
                Reply::Now(self.plugin(ctx, name, inject, schema, start, config))
            }
            ("mount.state", [mount]) => {
                Reply::Now(self.mount(mount).map(|it| it.state().to_string().into()))
            }
            ("mount.ready", [mount]) => self.with_mount(mount, async |it| match it.ready().await {
                Ok(state) => Ok(state.to_string().into()),
                Err(err) => Err(shown(err)),
            }),
            ("mount.dispose", [mount]) => self.with_mount(mount, async |it| {
                let waited: Waited = it.dispose().await;
                Ok(json!(matches!(waited, Waited::Done)))
            }),
            ("next", [next]) => self.run_next(next),
            ("cancel", [what]) => {
                self.cancel(what);
                Reply::NOTHING
            }
            ("release", [what]) => {
                self.release(what);
                Reply::NOTHING
            }
            ("uuid", []) => Reply::Now(uuid()),
            ("log", line) => {
                console::log(line);
                Reply::NOTHING
            }
            ("complain", [problem]) => Reply::Now(self.complain(problem)),
            _ => return None,
        })
    }

    fn effect(self: &Rc<Self>, ctx: &Value, cleanup: &Value) -> Done {
        let (ctx, bridge) = (self.context(ctx)?, self.clone());
        let cleanup = self.function(cleanup)?;
        let undo = ctx.effect(|| async move || bridge.clean_up(cleanup).await);
        Ok(self.keep(undo.map_err(shown)?))
    }

    fn undo(&self, effect: &Value) -> Reply {
        let undo = number(effect).and_then(|it| self.undos.borrow_mut().remove(&it));
        let Some(undo) = undo else { return Reply::Now(Ok(Value::Null)) };
        let undoing = undo.call();
        Reply::Later(Box::pin(async move { undoing.await.map(|_| Value::Null).map_err(shown) }))
    }

    fn plugin(
        self: &Rc<Self>,
        ctx: &Value,
        name: &Value,
        inject: &Value,
        schema: &Value,
        start: &Value,
        config: &Value,
    ) -> Done {
        let (ctx, start, bridge) = (self.context(ctx)?, self.function(start)?, self.clone());
        let begin = move |ctx: Context, config: Value| {
            let (bridge, start) = (bridge.clone(), start.clone());
            let body: Body = Box::pin(async move {
                let number = bridge.name_context(ctx.clone());
                bridge.begin(start.function(), &ctx, number, config).await
            });
            body
        };
        let schema = Some(schema.clone()).filter(|it| !it.is_null());
        let def = PluginDef::dynamic(text("the name of a plugin", name)?, inject, schema, begin)
            .map_err(shown)?;
        let (mount, number) = (ctx.plugin(&def, config.clone()).map_err(shown)?, self.number());
        self.mounts.borrow_mut().insert(number, mount);
        Ok(number.into())
    }

    fn mount(&self, arg: &Value) -> Result<Mount, String> {
        let mount = number(arg).and_then(|it| self.mounts.borrow().get(&it).cloned());
        mount.ok_or_else(|| "this plugin is gone".to_owned())
    }

    fn with_mount(&self, arg: &Value, work: impl AsyncFnOnce(Mount) -> Done + 'static) -> Reply {
        match self.mount(arg) {
            Ok(mount) => Reply::Later(Box::pin(work(mount))),
            Err(problem) => Reply::Now(Err(problem)),
        }
    }

    fn run_next(&self, next: &Value) -> Reply {
        let next = number(next).and_then(|it| self.nexts.borrow().get(&it).cloned());
        match next {
            Some(next) => Reply::Later(next()),
            None => Reply::Now(Err("`next` was called after its call was over".to_owned())),
        }
    }

    fn cancel(&self, what: &Value) {
        let cancel = number(what).and_then(|it| self.cancels.borrow().get(&it).cloned());
        if let Some(cancel) = cancel {
            cancel.cancel();
        }
    }

    /// The script cannot reach this any more.
    fn release(&self, what: &Value) {
        // The plugin itself stays, whether its script keeps the context or not.
        let what = number(what).filter(|it| *it != super::ROOT).unwrap_or_default();
        let context = self.contexts.borrow_mut().remove(&what);
        let undo = self.undos.borrow_mut().remove(&what);
        let mount = self.mounts.borrow_mut().remove(&what);
        let shell = self.shells.borrow_mut().remove(&what);
        drop((context, undo, mount, shell));
    }

    /// Something failed in the script that nobody waits for.
    fn complain(&self, problem: &Value) -> Done {
        let Ok(ctx) = self.context(&super::ROOT.into()) else { return Ok(Value::Null) };
        let problem: BoxError = self.masked(text("a problem", problem)?).into();
        let failing = ctx.spawn::<Result<(), BoxError>>("script", async move |_| Err(problem));
        failing.map(|_| Value::Null).map_err(shown)
    }
}

/// A random number in the usual form.
fn uuid() -> Done {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the system has no random numbers")?;
    let cleared = u128::from_be_bytes(bytes) & !((0xf << 76) | (0x3 << 62));
    let number = cleared | (4 << 76) | (2 << 62);
    let hex = format!("{number:032x}");
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Ok(parts.join("-").into())
}
