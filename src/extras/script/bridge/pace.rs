//! Part of `script`: how far a script is behind with what it is only told, so that nobody waits for an answer.
//!
//! Watch for: what it would be told while it is too far behind is lost. That is said once, until it has caught up.

use std::{cell::Cell, rc::Rc};

use super::Bridge;
use crate::extras::script::{engine::Engine, failure::Failure};

/// So much of what a script was told may be unanswered.
const MOST: usize = 4096;

#[derive(Default)]
pub(super) struct Pace {
    unanswered: Cell<usize>,
    /// It is behind, and has caught up when no more than this is unanswered.
    until: Cell<Option<usize>>,
}

/// Something that a script was told, until it answers or nobody wants to know any more.
pub(super) struct Told(Rc<Pace>);

impl Pace {
    pub(super) fn tell(self: &Rc<Self>) -> Told {
        self.unanswered.set(self.unanswered.get() + 1);
        Told(self.clone())
    }

    fn admits(&self, has_room: bool) -> Result<bool, Failure> {
        let unanswered = self.unanswered.get();
        match self.until.get() {
            Some(until) if unanswered > until => Ok(false),
            _ if has_room && unanswered < MOST => {
                self.until.set(None);
                Ok(true)
            }
            Some(_) => Ok(false),
            None => {
                self.until.set(Some(unanswered / 2));
                Err(Failure::new(format!(
                    "it does not keep up: {unanswered} calls of it are waiting; what it is told until it has caught up \
                     is lost"
                )))
            }
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.0.unanswered.set(self.0.unanswered.get() - 1);
    }
}

impl Bridge {
    /// Whether it can be told more. The first time that it cannot is an error.
    pub(super) fn can_be_told(&self) -> Result<bool, Failure> {
        let has_room = self.engine.borrow().as_ref().is_none_or(Engine::has_room);
        self.pace.admits(has_room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_falls_behind_says_so_once_until_it_has_caught_up() {
        let pace = Rc::new(Pace::default());
        let mut told: Vec<_> = (0..MOST).map(|_| pace.tell()).collect();

        let full = [pace.admits(true), pace.admits(true)].map(|it| it.map_err(drop));
        told.truncate(MOST / 2 + 1);
        let nearly = pace.admits(true).map_err(drop);
        told.truncate(MOST / 2);
        let caught_up = [pace.admits(true), pace.admits(false), pace.admits(false)];

        assert_eq!(full, [Err(()), Ok(false)]);
        assert_eq!(nearly, Ok(false));
        assert_eq!(caught_up.map(|it| it.map_err(drop)), [Ok(true), Err(()), Ok(false)]);
    }
}
