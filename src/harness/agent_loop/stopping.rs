//! Part of `agent_loop`: the model calls nothing more. Is the turn over?
//!
//! Full-size counterpart: the event of the same name, whose listeners change a verdict that later ones see.
//! Watch for: an answer is logged as what the user says in the next step before it is sent, so it counts as a step, and
//! the limit of steps is the limit of those who never let a turn end.

use std::rc::Rc;

use tokio_util::sync::CancellationToken;

use super::{AgentLoop, failure::Failure, turn::Turn};
use crate::{
    cordis::Serial,
    harness::{session::Session, tools::pipeline::until_cancelled},
};

/// `agent/turn-stopping`: shall the turn end as it would? What a listener answers is what the model reads next.
pub struct TurnStopping;

impl Serial for TurnStopping {
    const NAME: &'static str = "agent/turn-stopping";
    type Input = Stopping;
    type Answer = Option<String>;
}

/// A turn that is about to end as `completed`.
pub struct Stopping {
    /// Whose turn it is.
    pub session: Rc<Session>,
    /// Number of the turn.
    pub turn: u32,
    /// Number of the step that was the last one.
    pub step: u32,
    /// What the model said last.
    pub text: String,
    /// Whether a listener has made this turn go on before.
    pub was_continued: bool,
    /// Pulled when the turn is to end at once.
    pub cancel: CancellationToken,
}

impl AgentLoop {
    /// What the model is to read instead of the turn's end. A blank text says nothing.
    pub(super) async fn may_stop(
        &self,
        turn: &Turn,
        was_continued: bool,
    ) -> Result<Option<String>, Failure> {
        // What came with the last word of a turn that is stopped is complete, and nobody is asked any more.
        if turn.stop.is_cancelled() {
            return Ok(None);
        }
        let stopping = Rc::new(Stopping {
            session: turn.session.clone(),
            turn: turn.number,
            step: turn.step,
            text: turn.text().to_owned(),
            was_continued,
            cancel: turn.stop.clone(),
        });
        let asked = self.ctx.serial::<TurnStopping>(stopping);
        let answer = until_cancelled(&turn.stop, asked).await.ok_or(Failure::Aborted)?;
        let answer = answer.map_err(Failure::Plugin)?;
        if turn.stop.is_cancelled() {
            return Err(Failure::Aborted);
        }
        Ok(answer.filter(|it| !it.trim().is_empty()))
    }
}
