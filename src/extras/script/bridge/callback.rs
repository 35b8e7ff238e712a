//! Part of `script`: what stands for something on the other side of the border, for as long as it is needed.

use std::{pin::pin, rc::Rc};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Bridge, Done, number};
use crate::{
    cordis::LocalBoxFuture,
    extras::script::{
        engine::{Function, Outcome},
        failure::Failure,
    },
    harness::env::{Env, mask::Mask},
};

/// The number of no signal.
pub(super) const NOTHING: u32 = 0;

/// A function of the script. When nobody can call it any more, the script forgets it.
pub(super) struct Callback {
    bridge: Rc<Bridge>,
    function: Function,
}

impl Callback {
    pub(super) fn call(&self, args: Vec<Value>) -> LocalBoxFuture<'static, Outcome> {
        self.bridge.call(self.function, args, NOTHING)
    }

    /// The same with a signal of its own, which ends with it.
    pub(super) fn call_with(
        &self,
        args: Vec<Value>,
        signal: u32,
    ) -> LocalBoxFuture<'static, Outcome> {
        self.bridge.call(self.function, args, signal)
    }

    pub(super) fn function(&self) -> Function {
        self.function
    }

    /// The script that it belongs to.
    pub(super) fn bridge(&self) -> &Rc<Bridge> {
        &self.bridge
    }

    /// Whether it is a function of this script.
    pub(super) fn is_of(&self, bridge: &Rc<Bridge>) -> bool {
        Rc::ptr_eq(&self.bridge, bridge)
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        self.bridge.tell("forget", self.function, Value::Null);
    }
}

/// A number that means something while a call is under way; afterwards it is taken back.
pub(super) struct Token {
    bridge: Rc<Bridge>,
    pub(super) number: u32,
}

impl Drop for Token {
    fn drop(&mut self) {
        let Self { bridge, number } = self;
        let next = bridge.nexts.borrow_mut().remove(number);
        let delta = bridge.deltas.borrow_mut().remove(number);
        drop((next, delta));
        bridge.runs.borrow_mut().remove(number);
        bridge.tell("over", *number, Value::Null);
    }
}

impl Bridge {
    /// Calls a function of the script. What comes back holds no text that a plugin called secret.
    pub(super) fn call(
        &self,
        function: Function,
        args: Vec<Value>,
        signal: u32,
    ) -> LocalBoxFuture<'static, Outcome> {
        let engine = self.engine.borrow();
        let Some(going) = engine.as_ref().map(|it| it.call(function, args, signal)) else {
            return Box::pin(async { Err(Failure::new("the script has ended")) });
        };
        let env = self.env.clone();
        Box::pin(async move { masked(going.await, &mask(env.as_deref())) })
    }

    /// A text without what a plugin called secret.
    pub(super) fn masked(&self, text: &str) -> String {
        mask(self.env.as_deref()).text(text).into_owned()
    }

    /// The function that an argument names, if it names one.
    pub(super) fn callback(self: &Rc<Self>, arg: &Value) -> Option<Rc<Callback>> {
        let function = number(arg)?;
        Some(Rc::new(Callback { bridge: self.clone(), function }))
    }

    /// The same, where there must be one.
    pub(super) fn function(self: &Rc<Self>, arg: &Value) -> Result<Rc<Callback>, String> {
        self.callback(arg).ok_or_else(|| format!("a function was expected, not {arg}"))
    }

    pub(super) fn token(self: &Rc<Self>) -> Token {
        Token { bridge: self.clone(), number: self.number() }
    }

    /// `next()`, for the time of one call.
    pub(super) fn next(
        self: &Rc<Self>,
        rest: impl Fn() -> LocalBoxFuture<'static, Done> + 'static,
    ) -> Token {
        let token = self.token();
        self.nexts.borrow_mut().insert(token.number, Rc::new(rest));
        token
    }

    /// A token that the script can pull.
    pub(super) fn cancellation(self: &Rc<Self>, arg: &Value) -> (Cancelling, CancellationToken) {
        let (number, cancel) = (number(arg).unwrap_or_default(), CancellationToken::new());
        self.cancels.borrow_mut().insert(number, cancel.clone());
        (Cancelling { bridge: self.clone(), number }, cancel)
    }

    /// Waits for work of the script, which hears of it when the token is pulled.
    pub(super) async fn with_signal<T>(
        &self,
        signal: u32,
        cancel: &CancellationToken,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = cancel.cancelled() => self.abort(signal),
        }
        work.await
    }

    pub(super) fn abort(&self, signal: u32) {
        self.tell("abort", signal, "it was cancelled".into());
    }
}

/// While it lives, the script can cancel what it asked for.
pub(super) struct Cancelling {
    bridge: Rc<Bridge>,
    number: u32,
}

impl Drop for Cancelling {
    fn drop(&mut self) {
        self.bridge.cancels.borrow_mut().remove(&self.number);
    }
}

fn mask(env: Option<&Env>) -> Mask {
    Mask::new(env.map(Env::secrets).unwrap_or_default())
}

fn masked(outcome: Outcome, mask: &Mask) -> Outcome {
    match outcome {
        Ok(mut value) => {
            mask.value(&mut value);
            Ok(value)
        }
        Err(failure) => {
            let problem = mask.text(&failure.problem).into_owned();
            Err(Failure { problem, ..failure })
        }
    }
}
