//! Part of `script`: what the agent speaks of, as JSON, and back.
//!
//! Watch for: whatever a script says where a decision is asked for is read strictly. What it does not say is a no.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    cordis::{Applied, BoxError, Emit, Notice, Serial, Warning, Waterfall},
    harness::{
        agent_loop::{
            AgentRequest, AssistantDelta, RequestConfig, RequestDraft, Stopping, TurnStopping,
        },
        approval::{Answer, ApprovalRequest},
        llm::Delta,
        session::{Session, SessionEvent},
        tools::{Call, Finished, PostExecute, PreExecute, ToolResult, ToolsChanged, Verdict},
    },
};

/// An event that is told, for a script.
pub(super) trait Told: Emit {
    /// The arguments of a listener.
    fn args(&self) -> Vec<Value>;
}

/// An event that is asked or wrapped, for a script.
pub(super) trait Asked {
    type Input;
    type Output;
    /// The arguments of a listener; `signal` stands for the cancel.
    fn args(input: &Self::Input, signal: u32) -> Vec<Value>;
    /// Pulled when nobody wants the answer any more.
    fn cancel(input: &Self::Input) -> CancellationToken;
    /// What a listener said.
    fn read(said: &Value) -> Result<Self::Output, BoxError>;
}

/// What `next()` gives a script.
pub(super) trait Wrapped:
    Waterfall + Asked<Input = <Self as Waterfall>::Input, Output = <Self as Waterfall>::Output>
{
    fn said(output: &<Self as Waterfall>::Output) -> Value;
}

impl Told for SessionEvent {
    fn args(&self) -> Vec<Value> {
        let event = serde_json::from_str(&self.event.to_line());
        vec![session(&self.session), event.expect("an event is written as JSON")]
    }
}

impl Told for AssistantDelta {
    fn args(&self) -> Vec<Value> {
        vec![session(&self.session), delta(&self.delta)]
    }
}

impl Told for ToolsChanged {
    fn args(&self) -> Vec<Value> {
        Vec::new()
    }
}

impl Told for Notice {
    fn args(&self) -> Vec<Value> {
        vec![self.0.clone().into()]
    }
}

impl Told for Warning {
    fn args(&self) -> Vec<Value> {
        vec![self.0.clone().into()]
    }
}

impl Told for Applied {
    fn args(&self) -> Vec<Value> {
        let failed = self.failed.iter().map(|(id, reason)| json!({ "id": id, "reason": reason }));
        let failed: Vec<_> = failed.collect();
        vec![json!({ "file": self.file, "changed": self.changed, "failed": failed })]
    }
}

impl Asked for PreExecute {
    type Input = Call;
    type Output = Verdict;

    fn args(call: &Call, signal: u32) -> Vec<Value> {
        vec![self::call(call, signal)]
    }

    fn cancel(call: &Call) -> CancellationToken {
        call.cancel.clone()
    }

    /// Only what clearly allows does (D-31).
    fn read(said: &Value) -> Result<Verdict, BoxError> {
        Ok(match (said["kind"].as_str(), said["reason"].as_str()) {
            (Some("allow"), _) => Verdict::Allow,
            (Some("deny"), Some(reason)) => Verdict::Deny(reason.to_owned()),
            (Some("deny"), None) => Verdict::Deny("a plugin refused this call".to_owned()),
            _ => {
                Verdict::Deny("a plugin gave no verdict on this call, so it was refused".to_owned())
            }
        })
    }
}

impl Wrapped for PreExecute {
    fn said(verdict: &Verdict) -> Value {
        match verdict {
            Verdict::Allow => json!({ "kind": "allow" }),
            Verdict::Deny(reason) => json!({ "kind": "deny", "reason": reason }),
        }
    }
}

impl Asked for PostExecute {
    type Input = Finished;
    type Output = ToolResult;

    fn args(finished: &Finished, signal: u32) -> Vec<Value> {
        vec![call(&finished.call, signal), Self::said(&finished.result)]
    }

    fn cancel(finished: &Finished) -> CancellationToken {
        finished.call.cancel.clone()
    }

    fn read(said: &Value) -> Result<ToolResult, BoxError> {
        let content = said["content"].as_str();
        let content =
            content.ok_or("a result is `{ content, isError }`, and `content` is a text")?;
        let is_error = said["isError"].as_bool().unwrap_or_default();
        Ok(ToolResult { content: content.to_owned(), is_error, denied: false })
    }
}

impl Wrapped for PostExecute {
    fn said(result: &ToolResult) -> Value {
        json!({ "content": result.content, "isError": result.is_error })
    }
}

impl Asked for AgentRequest {
    type Input = RequestDraft;
    type Output = RequestConfig;

    fn args(draft: &RequestDraft, _: u32) -> Vec<Value> {
        let RequestDraft { session, turn, step, config } = draft;
        let (session, config) = (self::session(session), Self::said(config));
        vec![json!({ "session": session, "turn": turn, "step": step, "config": config })]
    }

    // The loop drops what it waits for.
    fn cancel(_: &RequestDraft) -> CancellationToken {
        CancellationToken::new()
    }

    fn read(said: &Value) -> Result<RequestConfig, BoxError> {
        match (said["model"].as_str(), said["system"].as_str()) {
            (Some(model), Some(system)) => {
                Ok(RequestConfig { model: model.to_owned(), system: system.to_owned() })
            }
            _ => Err("`agent/request` wants `{ model, system }`, two texts".into()),
        }
    }
}

impl Wrapped for AgentRequest {
    fn said(config: &RequestConfig) -> Value {
        json!({ "model": config.model, "system": config.system })
    }
}

impl Asked for ApprovalRequest {
    type Input = Call;
    type Output = <Self as Serial>::Answer;

    fn args(call: &Call, signal: u32) -> Vec<Value> {
        vec![self::call(call, signal)]
    }

    fn cancel(call: &Call) -> CancellationToken {
        call.cancel.clone()
    }

    fn read(said: &Value) -> Result<Option<Answer>, BoxError> {
        Ok(Answer::from_json(said))
    }
}

impl Asked for TurnStopping {
    type Input = Stopping;
    type Output = <Self as Serial>::Answer;

    fn args(it: &Stopping, signal: u32) -> Vec<Value> {
        vec![json!({
            "session": session(&it.session),
            "turn": it.turn,
            "step": it.step,
            "text": it.text,
            "wasContinued": it.was_continued,
            "signal": signal,
        })]
    }

    fn cancel(it: &Stopping) -> CancellationToken {
        it.cancel.clone()
    }

    fn read(said: &Value) -> Result<Option<String>, BoxError> {
        match said {
            Value::Null | Value::Bool(false) => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            _ => Err("`agent/turn-stopping` wants a text for the model, or nothing".into()),
        }
    }
}

/// A session is known to scripts by its id.
pub(super) fn session(it: &Session) -> Value {
    json!({ "id": it.id() })
}

/// A call as listeners and tools of scripts see it.
pub(super) fn call(it: &Call, signal: u32) -> Value {
    json!({
        "id": it.id,
        "name": it.name,
        "arguments": it.arguments,
        "raw": it.raw,
        "problem": it.problem,
        "preview": it.preview,
        "session": it.session.as_ref().map(|it| session(it)),
        "turn": it.turn,
        "step": it.step,
        "signal": signal,
    })
}

/// What a tool of a script returned, as a result.
pub(super) fn result(value: Value) -> ToolResult {
    match value {
        Value::String(text) => ToolResult::text(text),
        Value::Null => ToolResult::text(""),
        Value::Object(it) if it.get("content").is_some_and(Value::is_string) => {
            let content = it["content"].as_str().unwrap_or_default();
            if it.get("isError") != Some(&Value::Bool(true)) {
                return ToolResult::text(content);
            }
            ToolResult::error(content.strip_prefix("Error: ").unwrap_or(content))
        }
        other => ToolResult::text(other.to_string()),
    }
}

pub(super) fn delta(it: &Delta) -> Value {
    match it {
        Delta::Text(text) => json!({ "type": "text", "text": text }),
        Delta::Reasoning(text) => json!({ "type": "reasoning", "text": text }),
        Delta::Retry { why, after, attempt, of } => json!({
            "type": "retry",
            "why": why,
            "afterMs": u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
            "attempt": attempt,
            "of": of,
        }),
    }
}

/// A message of a session or a request, as it is sent.
pub(super) fn json<T: serde::Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// A value that a script made.
pub(super) fn parsed<T: serde::de::DeserializeOwned>(
    what: &str,
    value: &Value,
) -> Result<T, String> {
    T::deserialize(value).map_err(|err| format!("{what}: {err}"))
}
