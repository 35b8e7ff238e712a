//! Part of `script`: the agent's side of a running script. It does what the script asks for, in the name of its fiber.
//!
//! Watch for: a script can only name what it was given a number for. A number that means nothing any more is an error in
//! the script, never here.

mod core;
mod services;

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{sync::mpsc::Receiver, task::JoinSet, time::timeout};

use super::{
    engine::{Answer, Engine, Function, Outcome, Request},
    failure::Failure,
};
use crate::cordis::{BoxError, Cleanup, Context, LocalBoxFuture, Undo};

/// A cleanup of a script may take so long.
const CLEANUP: Duration = Duration::from_secs(5);
/// The context of the plugin itself; those of its children have other numbers.
const ROOT: u32 = 1;

/// A script that runs, and what the numbers mean that it knows.
pub(super) struct Bridge {
    engine: RefCell<Option<Engine>>,
    last: Cell<u32>,
    contexts: RefCell<HashMap<u32, Context>>,
    undos: RefCell<HashMap<u32, Undo>>,
}

/// What an operation comes to.
enum Reply {
    Now(Result<Value, String>),
    Later(LocalBoxFuture<'static, Result<Value, String>>),
}

impl Bridge {
    /// The body of the plugin.
    pub(super) async fn start(
        ctx: Context,
        engine: Engine,
        requests: Receiver<Request>,
        config: Value,
    ) -> Result<Option<Cleanup>, BoxError> {
        let bridge = Rc::new(Self {
            engine: RefCell::new(Some(engine)),
            last: Cell::new(ROOT),
            contexts: RefCell::new(HashMap::from([(ROOT, ctx.clone())])),
            undos: RefCell::default(),
        });
        // The first effects are the last to be undone: until then the script can still ask for something.
        let ending = bridge.clone();
        ctx.effect(|| async move || ending.end().await)?;
        let serving = bridge.clone();
        ctx.spawn("script", async move |_| serving.serve(requests).await)?;
        let cleanup = bridge.call(0, vec![ROOT.into(), config]).await?;
        let cleanup = cleanup.as_u64().and_then(|it| Function::try_from(it).ok());
        Ok(cleanup.map(|it| Cleanup::future(move || async move { bridge.clean_up(it).await })))
    }

    async fn end(&self) -> Result<(), BoxError> {
        let engine = self.engine.take();
        match engine {
            Some(engine) => Ok(engine.end().await?),
            None => Ok(()),
        }
    }

    /// Calls a function of the script.
    fn call(&self, function: Function, args: Vec<Value>) -> LocalBoxFuture<'static, Outcome> {
        match &*self.engine.borrow() {
            Some(engine) => Box::pin(engine.call(function, args)),
            None => Box::pin(async { Err(Failure::new("the script has ended")) }),
        }
    }

    fn tell(&self, topic: &'static str, number: u32, value: Value) {
        if let Some(engine) = &*self.engine.borrow() {
            engine.tell(topic, number, value);
        }
    }

    async fn clean_up(&self, function: Function) -> Result<(), BoxError> {
        let outcome = timeout(CLEANUP, self.call(function, Vec::new())).await;
        self.tell("forget", function, Value::Null);
        match outcome {
            Ok(outcome) => outcome.map(drop).map_err(Into::into),
            Err(_) => Err(format!("a cleanup did not end within {} s", CLEANUP.as_secs()).into()),
        }
    }

    /// Works off requests until the plugin unloads. What takes time goes on beside them.
    async fn serve(self: Rc<Self>, mut requests: Receiver<Request>) {
        let mut tasks = JoinSet::new();
        loop {
            let request = tokio::select! {
                biased;
                request = requests.recv() => request,
                Some(_) = tasks.join_next() => continue,
            };
            let Some(Request { operation, args, answer }) = request else { return };
            match self.handle(&operation, &args) {
                Reply::Now(outcome) => self.answer(answer, outcome),
                Reply::Later(work) => {
                    let bridge = self.clone();
                    tasks.spawn_local(async move { bridge.answer(answer, work.await) });
                }
            }
        }
    }

    fn answer(&self, answer: Answer, outcome: Result<Value, String>) {
        match answer {
            // Whoever asked may be gone.
            Answer::Now(answer) => drop(answer.send(outcome)),
            Answer::Later(promise) => {
                let (works, value) = match outcome {
                    Ok(value) => (true, value),
                    Err(problem) => (false, problem.into()),
                };
                self.tell("settle", promise, json!([works, value]));
            }
        }
    }

    fn handle(self: &Rc<Self>, operation: &str, args: &[Value]) -> Reply {
        let unknown = || Reply::Now(Err(format!("there is no operation `{operation}`")));
        self.core(operation, args)
            .or_else(|| self.services(operation, args))
            .unwrap_or_else(unknown)
    }

    fn number(&self) -> u32 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    /// The context that an argument names.
    fn context(&self, arg: &Value) -> Result<Context, String> {
        let context = number(arg).and_then(|it| self.contexts.borrow().get(&it).cloned());
        context.ok_or_else(|| "this context is gone".to_owned())
    }

    /// Notes an effect, so that the script can undo it.
    fn keep(&self, undo: Undo) -> Value {
        let number = self.number();
        self.undos.borrow_mut().insert(number, undo);
        number.into()
    }
}

fn number(arg: &Value) -> Option<u32> {
    arg.as_u64().and_then(|it| u32::try_from(it).ok())
}

fn text(arg: &Value) -> Result<&str, String> {
    arg.as_str().ok_or_else(|| format!("a text was expected, not {arg}"))
}
