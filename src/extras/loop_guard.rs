//! Loop guard: a model that makes the same call again and again is told so, and at last its turn is ended.
//!
//! Needs `tools`. Listens to `tools/pre-execute`, `tools/post-execute`, `agent/request`, `session/event`.
//! Full-size counterpart: the reminders of the agent bundle, which never end a turn.
//! Watch for: what counts is what the model asked for. A call that was refused, or could not run at all, is as much a
//! repetition as one that ran; and the order of the arguments makes no difference.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    num::NonZeroU32,
    rc::Rc,
};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    cordis::{BoxError, Context, Svc},
    harness::{
        agent_loop::{AgentRequest, EndTurn},
        session::{SessionEvent, event::EventBody},
        tools::{Call, Order, PostExecute, PreExecute, ToolResult, Tools, Verdict},
    },
};

/// Config of `loop-guard`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// From this many identical calls in a row on, the model reads that it repeats itself.
    #[serde(default = "default_advise_at")]
    advise_at: NonZeroU32,
    /// At this many its turn is ended.
    #[serde(default = "default_end_at")]
    end_at: NonZeroU32,
}

fn default_advise_at() -> NonZeroU32 {
    const { NonZeroU32::new(3).expect("3 is not zero") }
}

fn default_end_at() -> NonZeroU32 {
    const { NonZeroU32::new(8).expect("8 is not zero") }
}

/// The plugin. It counts where every call comes by, whoever refused it before anybody else was asked: at its result.
pub async fn apply(ctx: Context, config: Config, _tools: Svc<Tools>) -> Result<(), BoxError> {
    let guard = Rc::new(Guard { config, rows: RefCell::default() });
    let (before, after, requests) = (guard.clone(), guard.clone(), guard.clone());
    ctx.intercept_at::<PreExecute>(Order::DECIDING, async move |_, call, next| {
        match before.refusal(&call) {
            Some(why) => Ok(Verdict::Deny(why)),
            None => next.run().await,
        }
    })?;
    ctx.intercept_at::<PostExecute>(Order::DECIDING, async move |_, finished, next| {
        let count = after.count(&finished.call);
        let result = next.run().await?;
        Ok(after.advised(count, result))
    })?;
    ctx.intercept::<AgentRequest>(async move |_, draft, next| {
        match requests.end(draft.session.id(), draft.turn) {
            Some(why) => Err(EndTurn(why).into()),
            None => next.run().await,
        }
    })?;
    ctx.on(move |_, it: &SessionEvent| {
        if let EventBody::TurnEnd { .. } = it.event.body {
            guard.rows.borrow_mut().remove(it.session.id());
        }
    })?;
    Ok(())
}

struct Guard {
    config: Config,
    /// Of each session with an open turn.
    rows: RefCell<HashMap<String, Row>>,
}

/// The same call, so many times in a row.
#[derive(Default)]
struct Row {
    turn: u32,
    call: String,
    name: String,
    count: u32,
}

impl Row {
    fn is_of(&self, turn: u32, call: &str) -> bool {
        self.turn == turn && self.call == call
    }
}

impl Guard {
    /// Why a call must not run any more, if so. One reply may hold more of them than there are until the end.
    fn refusal(&self, call: &Call) -> Option<String> {
        let rows = self.rows.borrow();
        let row = rows.get(call.session.as_ref()?.id())?;
        let is_over =
            row.is_of(call.turn, &canonical(call)) && row.count >= self.config.end_at.get();
        let count = row.count;
        is_over
            .then(|| format!("the same call came {count} times before, so it is not run any more"))
    }

    /// How often this call came in a row, with this time. A call of no session is counted nowhere.
    fn count(&self, call: &Call) -> u32 {
        let Some(session) = &call.session else { return 0 };
        let text = canonical(call);
        let mut rows = self.rows.borrow_mut();
        let row = rows.entry(session.id().to_owned()).or_default();
        if !row.is_of(call.turn, &text) {
            *row = Row { turn: call.turn, call: text, name: call.name.clone(), count: 0 };
        }
        row.count = row.count.saturating_add(1);
        row.count
    }

    fn advised(&self, count: u32, result: ToolResult) -> ToolResult {
        if count < self.config.advise_at.get() {
            return result;
        }
        let advice = format!(
            "[loop guard] This was the same call {count} times in a row. Do something else, or tell the user what is in \
             the way; after {} the turn is ended.",
            self.config.end_at
        );
        ToolResult { content: format!("{}\n\n{advice}", result.content), ..result }
    }

    /// Why a turn is to end, if so.
    fn end(&self, session: &str, turn: u32) -> Option<String> {
        let rows = self.rows.borrow();
        let row = rows.get(session).filter(|row| row.turn == turn)?;
        (row.count >= self.config.end_at.get()).then(|| {
            format!(
                "loop-guard: `{}` was called {} times in a row with the same arguments",
                row.name, row.count
            )
        })
    }
}

/// A text that two calls share if they ask for the same.
fn canonical(call: &Call) -> String {
    // What could not be read is compared as it came.
    let arguments = if call.arguments.is_empty() {
        Value::String(call.raw.trim().to_owned())
    } else {
        sorted(&Value::Object(call.arguments.clone()))
    };
    format!("{}\n{arguments}", call.name)
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let fields: BTreeMap<_, _> =
                map.iter().map(|(key, it)| (key.clone(), sorted(it))).collect();
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}
