//! Trust: a change of the configuration that may be the agent's own, and would give it more power, needs a person's yes.
//!
//! Provides `trust` on the root context, before the loader is mounted: a list that leaves it out is what it is there for.
//! Listens to `loader/before-apply` and `loader/applied`. Raises `trust/confirm`.
//! Full-size counterpart: none; there the settings of an application are out of the agent's reach.
//! Watch for: nobody can tell who wrote a file. So what counts is when: while a turn runs or something that it started
//! still does, and whatever of it is found afterwards. Each of them is a mark ([`Acting`]), and when one is dropped the
//! files are looked at before anything else can happen.

mod danger;
mod suspicion;

use tokio::sync::watch;

pub(crate) use self::danger::{program, settings};
pub use self::suspicion::{Acting, Trust};
use crate::{cordis::Serial, harness::approval::Answer};

/// `trust/confirm`: shall this be applied? Only a person may say [`Answer::Yes`]; nobody answering is a no.
pub struct ConfirmChange;

impl Serial for ConfirmChange {
    const NAME: &'static str = "trust/confirm";
    type Input = Confirm;
    type Answer = Option<Answer>;
}

/// What is to be confirmed.
pub struct Confirm {
    /// How messages call what was saved, and what it would do.
    pub text: String,
    turns: watch::Receiver<usize>,
}

impl Confirm {
    /// Resolves when no turn runs any more: then it can be asked.
    pub async fn is_due(&self) {
        // An error means that the program ends.
        self.turns.clone().wait_for(|running| *running == 0).await.ok();
    }
}
