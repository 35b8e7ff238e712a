//! Part of `trust`: whether a change may be the agent's own, and what was refused before.
//!
//! Watch for: what is told apart is only whether a person must be asked. In doubt one is.

use std::{
    cell::{Cell, RefCell},
    path::PathBuf,
    rc::Rc,
};

use tokio::sync::watch;

use super::{Confirm, ConfirmChange, danger::dangers};
use crate::{
    cordis::{
        Applied, BeforeApply, BoxError, Change, Context, EntryChange, Error, Loader, Service,
        loader::{Entry, files::Print},
    },
    harness::approval::Answer,
};

/// Service `trust`.
pub struct Trust {
    root: Context,
    turns: watch::Sender<usize>,
    left_behind: Cell<usize>,
    /// What was on disk and not in force when the agent began to act, and so is not its own.
    before: RefCell<Vec<(Print, PathBuf)>>,
    /// Something on disk is not what is in force, and may be the agent's.
    is_tainted: Cell<bool>,
    /// What somebody said no to. The file may still say it when it is saved the next time, by whomever.
    refused: RefCell<Vec<(String, Option<Entry>)>>,
}

impl Service for Trust {
    const NAME: &'static str = "trust";
}

impl Trust {
    /// Provides the service and begins to listen.
    pub fn watch(root: &Context) -> Result<(), Error> {
        let trust = Rc::new(Trust {
            root: root.clone(),
            turns: watch::Sender::new(0),
            left_behind: Cell::new(0),
            before: RefCell::default(),
            is_tainted: Cell::new(false),
            refused: RefCell::default(),
        });
        root.provide(trust.clone())?;
        let asking = trust.clone();
        root.on_parallel::<BeforeApply>(async move |_, change| asking.judge(&change).await)?;
        // What somebody saved while nothing of the agent's ran is not suspect for being broken.
        root.on(move |_, _: &Applied| {
            trust.is_tainted.set(trust.is_tainted.get() && trust.is_behind());
        })?;
        Ok(())
    }

    /// A turn runs until the mark is dropped.
    pub fn turn(self: &Rc<Self>) -> Acting {
        self.begin();
        self.turns.send_modify(|it| *it += 1);
        Acting { trust: self.clone(), is_turn: true }
    }

    /// Something that a turn started may outlive it, until the mark is dropped.
    pub fn left_behind(self: &Rc<Self>) -> Acting {
        self.begin();
        self.left_behind.set(self.left_behind.get() + 1);
        Acting { trust: self.clone(), is_turn: false }
    }

    /// Asks about a change that is suspect and dangerous. An error refuses it.
    async fn judge(&self, change: &Change) -> Result<(), BoxError> {
        let is_suspect =
            self.acts() || self.is_tainted.get() || self.holds_refused(&change.entries);
        // For what may still come before this one is applied.
        self.is_tainted.set(is_suspect);
        let dangers = dangers(&change.entries);
        if !is_suspect || dangers.is_empty() {
            return Ok(());
        }
        let text = format!("{} changed while a turn ran: {}", change.file, dangers.join("; "));
        let confirm = Confirm { text: text.clone(), turns: self.turns.subscribe() };
        let answer = self.root.serial::<ConfirmChange>(Rc::new(confirm)).await;
        let why = match answer {
            Ok(Some(Answer::Yes)) => {
                self.accept(&change.entries);
                return Ok(());
            }
            Ok(Some(Answer::No)) => "nobody said yes".to_owned(),
            Ok(Some(Answer::Nobody(why))) => why,
            Ok(None) => "there is nobody at a terminal to say yes".to_owned(),
            Err(err) => format!("asking failed ({err})"),
        };
        self.refuse(&change.entries);
        Err(format!("{}; {why}, so all stays as it was", text.replacen(&change.file, "it", 1))
            .into())
    }

    fn holds_refused(&self, changes: &[EntryChange]) -> bool {
        let refused = self.refused.borrow();
        changes
            .iter()
            .any(|it| refused.iter().any(|(id, after)| id == it.id() && *after == it.after))
    }

    fn accept(&self, changes: &[EntryChange]) {
        let is_other = |id: &str| changes.iter().all(|it| it.id() != id);
        self.refused.borrow_mut().retain(|(id, _)| is_other(id));
    }

    fn refuse(&self, changes: &[EntryChange]) {
        self.accept(changes);
        let refused = changes.iter().map(|it| (it.id().to_owned(), it.after.clone()));
        self.refused.borrow_mut().extend(refused);
        self.is_tainted.set(self.is_behind());
    }

    fn begin(&self) {
        if !self.acts() {
            let known = if self.is_tainted.get() { Vec::new() } else { self.behind() };
            self.before.replace(known);
        }
    }

    fn acts(&self) -> bool {
        *self.turns.borrow() > 0 || self.left_behind.get() > 0
    }

    /// Whether a file is not what is in force.
    fn is_behind(&self) -> bool {
        !self.behind().is_empty()
    }

    /// Whether one is that was not so before the agent began to act.
    fn has_fallen_behind(&self) -> bool {
        self.behind().iter().any(|it| !self.before.borrow().contains(it))
    }

    fn behind(&self) -> Vec<(Print, PathBuf)> {
        self.root.get::<Loader>().map(|it| it.behind()).unwrap_or_default()
    }
}

/// While this lives, every change may be the agent's own.
pub struct Acting {
    trust: Rc<Trust>,
    is_turn: bool,
}

impl Drop for Acting {
    fn drop(&mut self) {
        let trust = &self.trust;
        trust.is_tainted.set(trust.is_tainted.get() || trust.has_fallen_behind());
        if self.is_turn {
            trust.turns.send_modify(|it| *it -= 1);
        } else {
            trust.left_behind.set(trust.left_behind.get() - 1);
        }
    }
}
