//! What the guards here share: a call that a person is to be asked about, whoever else asks or not.
//!
//! Listens to `tools/pre-execute` and `approval/request`. Raises `approval/request`.
//! Full-size counterpart: none; there each policy asks by itself.
//! Watch for: who decides alone has spoken before anybody is asked, and nobody is asked twice about one call. So this is
//! a listener of its own, behind those who ask: by then it is known whether one of them did.

use std::{
    cell::{Cell, RefCell},
    rc::{Rc, Weak},
};

use crate::{
    cordis::{BoxError, Context, Error, Next},
    harness::{
        approval::{Answer, ApprovalRequest},
        tools::{Call, Order, PreExecute, Verdict},
    },
};

/// Before all who answer.
const FIRST: i32 = i32::MIN;
/// Behind all who ask.
const LAST: i32 = Order::ASKING + 1;

/// The calls that a plugin wants a person to be asked about.
#[derive(Default)]
pub(super) struct Asking {
    waiting: RefCell<Vec<Rc<Waiting>>>,
}

struct Waiting {
    call: Weak<Call>,
    why: String,
    was_asked: Cell<bool>,
}

impl Asking {
    /// Notices who else asks, and asks if nobody does.
    pub(super) fn watch(ctx: &Context) -> Result<Rc<Self>, Error> {
        let asking = Rc::new(Self::default());
        let (seen, last) = (asking.clone(), asking.clone());
        ctx.answer_at::<ApprovalRequest>(FIRST, async move |_, call| {
            if let Some(waiting) = seen.find(&call) {
                waiting.was_asked.set(true);
            }
            Ok(None)
        })?;
        ctx.intercept_at::<PreExecute>(LAST, async move |ctx, call, next| {
            match last.find(&call) {
                Some(waiting) => ask(&ctx, &waiting, call, next).await,
                None => next.run().await,
            }
        })?;
        Ok(asking)
    }

    /// This call needs a yes. Without one the model reads why.
    pub(super) fn wants(&self, call: &Rc<Call>, why: String) {
        let (call, was_asked) = (Rc::downgrade(call), Cell::new(false));
        let mut waiting = self.waiting.borrow_mut();
        waiting.retain(|it| it.call.strong_count() > 0);
        waiting.push(Rc::new(Waiting { call, why, was_asked }));
    }

    fn find(&self, call: &Rc<Call>) -> Option<Rc<Waiting>> {
        let waiting = self.waiting.borrow();
        waiting.iter().find(|it| it.call.as_ptr() == Rc::as_ptr(call)).cloned()
    }
}

async fn ask(
    ctx: &Context,
    waiting: &Waiting,
    call: Rc<Call>,
    next: Next<PreExecute>,
) -> Result<Verdict, BoxError> {
    // A question counts once: whoever runs the chain again is asked about again.
    if waiting.was_asked.take() {
        return next.run().await;
    }
    let answer = tokio::select! {
        biased;
        () = ctx.stopping() => Ok(None),
        answer = ctx.serial::<ApprovalRequest>(call) => answer,
    };
    waiting.was_asked.set(false);
    let refused = match answer {
        Ok(Some(Answer::Yes)) => return next.run().await,
        Ok(Some(Answer::No)) => "the user refused this call".to_owned(),
        Ok(Some(Answer::Nobody(why))) => format!("{why}, so this call was refused"),
        Ok(None) => "nobody was there to approve this call, so it was refused".to_owned(),
        Err(err) => format!("asking the user failed ({err}), so this call was refused"),
    };
    Ok(Verdict::Deny(format!("{refused}; {}", waiting.why)))
}
