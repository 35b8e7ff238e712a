//! Part of `agent_loop`: what a turn has opened in the log, and how it is closed on every way out.
//!
//! Watch for: `Drop` is the `finally` of this loop. A turn whose future is dropped (its caller was unloaded) or that
//! panics is closed like any other.

use std::{collections::VecDeque, rc::Rc};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{TurnOutcome, failure::Failure, secrecy};
use crate::harness::{
    env::mask::Mask,
    llm::{Reply, Request},
    session::{
        Session,
        error::SessionError,
        event::{EventBody, FORMAT, Reason, TurnError},
        message::{Header, Message, ToolCallRequest},
    },
    tools::ToolResult,
    trust::Acting,
};

/// A turn that is open in the log.
pub(super) struct Turn {
    pub(super) session: Rc<Session>,
    pub(super) number: u32,
    pub(super) step: u32,
    /// What everything in this turn waits for: pulled by the caller's token, and when the loop is unloaded.
    pub(super) stop: CancellationToken,
    cancel: CancellationToken,
    running: watch::Sender<usize>,
    _acting: Option<Acting>,
    /// What nobody may read but who typed it.
    pub(super) mask: Mask,
    is_open: bool,
    is_step_open: bool,
    /// Calls without a result, in order; `is_announced` says whether the first of them is in the log already.
    unanswered: VecDeque<ToolCallRequest>,
    is_announced: bool,
    text: String,
    tool_calls: u32,
    denied: u32,
}

impl Turn {
    /// Writes `turn/start`. `running` counts the turns that are open.
    pub(super) fn open(
        session: &Rc<Session>,
        cancel: CancellationToken,
        running: &watch::Sender<usize>,
        acting: Option<Acting>,
        mask: Mask,
    ) -> Result<Turn, SessionError> {
        let turn = session.turns().saturating_add(1);
        let cwd = std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned();
        session.append(EventBody::TurnStart { turn, format: FORMAT, cwd })?;
        running.send_modify(|count| *count += 1);
        Ok(Turn {
            session: session.clone(),
            number: turn,
            step: 0,
            stop: cancel.child_token(),
            cancel,
            running: running.clone(),
            _acting: acting,
            mask,
            is_open: true,
            is_step_open: false,
            unanswered: VecDeque::new(),
            is_announced: false,
            text: String::new(),
            tool_calls: 0,
            denied: 0,
        })
    }

    pub(super) fn begin_step(&mut self, step: u32) -> Result<(), SessionError> {
        self.session.append(EventBody::StepStart { turn: self.number, step })?;
        (self.step, self.is_step_open) = (step, true);
        Ok(())
    }

    pub(super) fn user_says(&self, text: &str) -> Result<(), SessionError> {
        let message = Message::user(text);
        self.session.append(EventBody::UserMessage {
            turn: self.number,
            step: self.step,
            message,
        })?;
        Ok(())
    }

    /// The header that holds from here on; written unless an equal one holds already.
    pub(super) fn header_in_force(&self, mut header: Header) -> Result<Header, SessionError> {
        secrecy::of_header(&self.mask, &mut header);
        if let Some(logged) = self.session.header().filter(|logged| *logged == header) {
            return Ok(logged);
        }
        let (turn, step) = (self.number, self.step);
        self.session.append(EventBody::RequestHeader { turn, step, header: header.clone() })?;
        Ok(header)
    }

    /// Writes the reply; its calls are open from here on.
    pub(super) fn model_replies(
        &mut self,
        reply: Reply,
        request: &Request,
        hash: String,
    ) -> Result<(), SessionError> {
        let Reply { mut message, finish_reason, usage } = reply;
        secrecy::of_reply(&self.mask, &mut message);
        request.settle_ids(&mut message.tool_calls);
        let (text, calls) = (message.content.clone(), message.tool_calls.clone());
        self.session.append(EventBody::AssistantMessage {
            turn: self.number,
            step: self.step,
            message: Rc::new(message),
            usage,
            finish_reason,
            request_hash: Some(hash),
            interrupted: false,
        })?;
        self.text = text.unwrap_or_default();
        self.unanswered = calls.into();
        Ok(())
    }

    /// The last text of the model.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn has_calls(&self) -> bool {
        !self.unanswered.is_empty()
    }

    /// The first call without a result; `tool/call` is in the log when this returns.
    pub(super) fn next_call(&mut self) -> Result<Option<ToolCallRequest>, SessionError> {
        let Some(call) = self.unanswered.front().cloned() else { return Ok(None) };
        if !self.is_announced {
            self.session.append(EventBody::ToolCall {
                turn: self.number,
                step: self.step,
                call_id: call.id.clone(),
                name: call.function.name.clone(),
                arguments: call.function.arguments.clone(),
            })?;
            self.is_announced = true;
        }
        Ok(Some(call))
    }

    /// Writes the result of the call that [`Turn::next_call`] gave.
    pub(super) fn answer(&mut self, result: &ToolResult) -> Result<(), SessionError> {
        let call = self.unanswered.front().expect("only an open call is answered");
        let (id, name) = (call.id.clone(), call.function.name.clone());
        self.session.append(EventBody::ToolResult {
            turn: self.number,
            step: self.step,
            message: Message::tool(&id, &self.mask.text(&result.content)),
            call_id: id,
            name,
            is_error: result.is_error,
        })?;
        self.unanswered.pop_front();
        self.is_announced = false;
        self.tool_calls += 1;
        self.denied += u32::from(result.denied);
        Ok(())
    }

    pub(super) fn end_step(&mut self) -> Result<(), SessionError> {
        self.session.append(EventBody::StepEnd { turn: self.number, step: self.step })?;
        self.is_step_open = false;
        Ok(())
    }

    /// Closes what is open and says how the turn ended.
    pub(super) fn close(mut self, end: Result<Reason, Failure>) -> TurnOutcome {
        self.shut(end)
    }

    fn shut(&mut self, end: Result<Reason, Failure>) -> TurnOutcome {
        let (mut reason, mut error) = self.reason_of(end);
        if let Some(error) = &mut error {
            error.message = self.mask.text(&error.message).into_owned();
        }
        if let Err(err) = self.close_log(reason, error.clone()) {
            (reason, error) = (Reason::Error, error.or(Some(Failure::Log(err).record())));
        }
        TurnOutcome {
            reason,
            error,
            text: std::mem::take(&mut self.text),
            steps: self.step,
            tool_calls: self.tool_calls,
            denied: self.denied,
        }
    }

    /// `aborted` is what the user did. A turn that lost its loop or its caller has failed.
    fn reason_of(&self, end: Result<Reason, Failure>) -> (Reason, Option<TurnError>) {
        match end {
            Ok(reason) => (reason, None),
            Err(Failure::Aborted) if self.cancel.is_cancelled() => (Reason::Aborted, None),
            Err(Failure::Aborted) => (Reason::Error, Some(Failure::Unloaded.record())),
            Err(failure) => (Reason::Error, Some(failure.record())),
        }
    }

    fn close_log(&mut self, reason: Reason, error: Option<TurnError>) -> Result<(), SessionError> {
        self.is_open = false;
        while self.next_call()?.is_some() {
            self.answer(&ToolResult::aborted())?;
        }
        if self.is_step_open {
            self.end_step()?;
        }
        self.session.append(EventBody::TurnEnd { turn: self.number, reason, error })?;
        Ok(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.is_open {
            self.shut(Err(Failure::Aborted));
        }
        self.running.send_modify(|count| *count -= 1);
    }
}
