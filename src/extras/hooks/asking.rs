//! Part of `hooks`: a hook that wants a person to be asked.
//!
//! Watch for: who decides alone has spoken before anybody is asked, and nobody is asked twice about one call.

use std::{
    cell::RefCell,
    rc::{Rc, Weak},
};

use super::hook::first_line;
use crate::{
    cordis::{BoxError, Context, Error, Next, Notice},
    harness::{
        approval::{Answer, ApprovalRequest},
        tools::{Call, PreExecute, Verdict},
    },
};

/// Before all who answer.
const FIRST: i32 = i32::MIN;

/// The calls that hooks want a person to be asked about.
#[derive(Default)]
pub(super) struct Asking {
    waiting: RefCell<Vec<Waiting>>,
}

struct Waiting {
    call: Weak<Call>,
    was_asked: bool,
}

impl Waiting {
    fn is(&self, call: &Rc<Call>) -> bool {
        self.call.as_ptr() == Rc::as_ptr(call)
    }
}

impl Asking {
    /// Notices who else asks.
    pub(super) fn watch(ctx: &Context) -> Result<Rc<Self>, Error> {
        let asking = Rc::new(Self::default());
        let seen = asking.clone();
        ctx.answer_at::<ApprovalRequest>(FIRST, async move |_, call| {
            seen.was_asked(&call);
            Ok(None)
        })?;
        Ok(asking)
    }

    /// Hears all others, and asks if none of them did.
    pub(super) async fn ask_after(
        &self,
        ctx: &Context,
        why: String,
        call: Rc<Call>,
        next: Next<PreExecute>,
    ) -> Result<Verdict, BoxError> {
        ctx.emit(&Notice(format!("a PreToolUse hook wants you to be asked: {}", first_line(&why))));
        self.wait_for(&call);
        let verdict = next.run().await;
        let was_asked = self.take(&call);
        if was_asked || !matches!(verdict, Ok(Verdict::Allow)) {
            return verdict;
        }
        let answer = tokio::select! {
            biased;
            () = ctx.stopping() => Ok(None),
            answer = ctx.serial::<ApprovalRequest>(call) => answer,
        };
        let refused = match answer {
            Ok(Some(Answer::Yes)) => return Ok(Verdict::Allow),
            Ok(Some(Answer::No)) => "the user refused this call".to_owned(),
            Ok(Some(Answer::Nobody(why))) => format!("{why}, so this call was refused"),
            Ok(None) => "nobody was there to approve this call, so it was refused".to_owned(),
            Err(err) => format!("asking the user failed ({err}), so this call was refused"),
        };
        Ok(Verdict::Deny(format!("{refused}; a PreToolUse hook wants it to be asked about: {why}")))
    }

    fn wait_for(&self, call: &Rc<Call>) {
        let mut waiting = self.waiting.borrow_mut();
        // Some were given up while they waited.
        waiting.retain(|it| it.call.strong_count() > 0);
        waiting.push(Waiting { call: Rc::downgrade(call), was_asked: false });
    }

    fn was_asked(&self, call: &Rc<Call>) {
        let mut waiting = self.waiting.borrow_mut();
        waiting.iter_mut().filter(|it| it.is(call)).for_each(|it| it.was_asked = true);
    }

    fn take(&self, call: &Rc<Call>) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        let place = waiting.iter().position(|it| it.is(call));
        place.is_some_and(|it| waiting.remove(it).was_asked)
    }
}
