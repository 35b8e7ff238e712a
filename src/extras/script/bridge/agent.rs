//! Part of `script`: sessions, the loop, the loader and what is saved, for scripts.
//!
//! Watch for: a session is known by its id. What a script reads of it is a copy; the log has one writer.

use std::{rc::Rc, time::SystemTime};

use serde_json::{Value, json};

use super::{Bridge, Done, Reply, codec, services::view, shown, text};
use crate::{
    cordis::{Loader, Svc, loader::Standing},
    harness::{
        agent_loop::{AgentLoop, TurnOutcome},
        persistence::Persistence,
        session::{Session, Sessions, event::EventBody},
    },
};

impl Bridge {
    /// Operations on these services; none if it is not one of these.
    pub(super) fn agent(self: &Rc<Self>, operation: &str, args: &[Value]) -> Option<Reply> {
        Some(match (operation, args) {
            ("session.open", [ctx]) => Reply::Now(
                self.sessions(ctx)
                    .map(|it| it.open().iter().map(|it| codec::session(it)).collect()),
            ),
            ("session.create", [ctx]) => Reply::Now(
                self.sessions(ctx)
                    .and_then(|it| it.create().map(|it| codec::session(&it)).map_err(shown)),
            ),
            ("session.read", [id, what]) => Reply::Now(self.read_session(id, what)),
            ("session.append", [id, kind, data]) => Reply::Now(self.append(id, kind, data)),
            ("agentLoop.run", [cancel, ctx, id, text]) => self.run_turn(cancel, ctx, id, text),
            ("agentLoop.isBusy", [ctx, id]) => Reply::Now(self.is_busy(ctx, id)),
            ("loader.reload", [ctx]) => Reply::Now(self.loader(ctx).map(|it| {
                it.reload();
                Value::Null
            })),
            ("loader.entries", [ctx]) => Reply::Now(self.loader(ctx).map(|it| entries(&it))),
            ("loader.problem", [ctx]) => Reply::Now(self.loader(ctx).map(|it| it.problem().into())),
            ("persistence.list", [ctx]) => Reply::Now(self.saved(ctx)),
            _ => return None,
        })
    }

    fn sessions(&self, ctx: &Value) -> Result<Svc<Sessions>, String> {
        view(&self.context(ctx)?)
    }

    fn loader(&self, ctx: &Value) -> Result<Svc<Loader>, String> {
        view(&self.context(ctx)?)
    }

    fn session(&self, id: &Value) -> Result<Rc<Session>, String> {
        let (ctx, id) = (self.context(&super::ROOT.into())?, text("the id of a session", id)?);
        let session = ctx.get::<Sessions>().and_then(|it| it.get(id));
        session.ok_or_else(|| format!("the session {id} is not open"))
    }

    fn read_session(&self, id: &Value, what: &Value) -> Done {
        let session = self.session(id)?;
        Ok(match text("what is read", what)? {
            "events" => {
                let events = session.events();
                let lines = events.iter().map(|it| serde_json::from_str::<Value>(&it.to_line()));
                lines.collect::<Result<Value, _>>().map_err(shown)?
            }
            "messages" => codec::json(&session.messages()),
            "header" => codec::json(&session.header()),
            "turns" => session.turns().into(),
            _ => session.is_mid_turn().into(),
        })
    }

    /// A plugin may note facts of its own. What else is in the log is the loop's to say.
    fn append(&self, id: &Value, kind: &Value, data: &Value) -> Done {
        let body =
            EventBody::ignorable(text("the type of an event", kind)?, data).map_err(shown)?;
        let event = self.session(id)?.append(body).map_err(shown)?;
        Ok(event.seq.into())
    }

    fn run_turn(self: &Rc<Self>, cancel: &Value, ctx: &Value, id: &Value, said: &Value) -> Reply {
        let prepared = || -> Result<_, String> {
            let agent_loop = view::<AgentLoop>(&self.context(ctx)?)?;
            let said = text("what a turn begins with", said)?.to_owned();
            Ok((agent_loop, self.session(id)?, said, self.cancellation(cancel)))
        };
        match prepared() {
            Err(problem) => Reply::Now(Err(problem)),
            Ok((agent_loop, session, text, (held, cancel))) => Reply::Later(Box::pin(async move {
                let outcome = Box::pin(agent_loop.run(&session, &text, cancel)).await;
                drop(held);
                outcome.map(|it| told(&it)).map_err(shown)
            })),
        }
    }

    fn is_busy(&self, ctx: &Value, id: &Value) -> Done {
        let agent_loop = view::<AgentLoop>(&self.context(ctx)?)?;
        Ok(agent_loop.is_busy(&*self.session(id)?).into())
    }

    fn saved(&self, ctx: &Value) -> Done {
        let persistence = view::<Persistence>(&self.context(ctx)?)?;
        let saved = persistence.list().map_err(shown)?;
        let each = saved.iter().map(|it| {
            let changed = it.changed.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            json!({
                "id": it.id,
                "changed": u64::try_from(changed.as_millis()).unwrap_or_default(),
                "turns": it.turns,
                "state": format!("{:?}", it.state).to_lowercase(),
                "words": it.words,
            })
        });
        Ok(each.collect())
    }
}

fn told(outcome: &TurnOutcome) -> Value {
    json!({
        "reason": outcome.reason,
        "text": outcome.text,
        "error": outcome.error,
        "steps": outcome.steps,
        "toolCalls": outcome.tool_calls,
        "denied": outcome.denied,
    })
}

fn entries(loader: &Loader) -> Value {
    let each = loader.entries().into_iter().map(|it| {
        let state = match it.standing {
            Standing::Disabled => "DISABLED".to_owned(),
            Standing::NotLoaded => "NOT LOADED".to_owned(),
            Standing::Mounted(state) => state.to_string(),
        };
        json!({
            "id": it.id, "name": it.name, "state": state, "missing": it.missing, "error": it.error,
            "optional": it.optional, "guard": it.guard, "stale": it.stale,
        })
    });
    each.collect()
}
