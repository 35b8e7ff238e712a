//! Part of `tools`: the way of a call. Read, pre-execute, body, post-execute, in this order and never past one of them.
//!
//! Watch for: a call that cannot run goes the same way, so that policies see every name and every result. And each wait
//! ends when the turn is stopped, whether the one who is waited for listens or not.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{
    Call, CallRequest, Finished, PostExecute, PreExecute, Tool, ToolResult, Tools, Verdict,
    arguments,
};
use crate::{
    cordis::{BoxError, Svc, catch_panic},
    harness::session::Session,
};

/// How long something that was told to stop may take to say a last word before it is dropped.
const GRACE: Duration = Duration::from_millis(30);

impl Svc<Tools> {
    /// Runs one call. Never fails: whatever goes wrong is a result that the model reads.
    // Omitted: the full-size pipeline lets plugins wrap the body too (time limits, metrics) and tools mend their text.
    pub async fn execute(&self, request: CallRequest) -> ToolResult {
        let tool = self.find(&request.name);
        let call = Rc::new(self.read(request, tool.as_ref()).await);
        let result = self.judge_and_run(tool, &call).await;
        self.finish(call, result).await
    }

    async fn judge_and_run(&self, tool: Option<Rc<Tool>>, call: &Rc<Call>) -> ToolResult {
        let verdict = until_cancelled(&call.cancel, self.verdict(call)).await;
        // A no that was said because the turn ends is nobody's decision about the call.
        match verdict.filter(|_| !call.cancel.is_cancelled()) {
            None => return ToolResult::aborted(),
            Some(Verdict::Deny(reason)) => {
                return ToolResult { denied: true, ..ToolResult::error(reason) };
            }
            Some(Verdict::Allow) => {}
        }
        match (&call.problem, tool) {
            (Some(problem), _) => ToolResult::error(problem),
            (None, Some(tool)) if self.still_has(&tool) => run_body(&tool, call.clone()).await,
            _ => {
                ToolResult::error(format!("tool \"{}\" went away while the call waited", call.name))
            }
        }
    }

    /// Asks all listeners. Only the innermost default can allow, and only this very call: an `Allow` that did not
    /// come from there is a mistake or a trick, and refuses (D-31). So does a listener that fails, and what one has
    /// refused stays so, whatever those outside of it make of that.
    async fn verdict(&self, call: &Rc<Call>) -> Verdict {
        let (passed, refused) = (Rc::new(Cell::new(false)), Rc::new(RefCell::new(None)));
        let innermost = {
            let (passed, call) = (passed.clone(), call.clone());
            async move |seen: Rc<Call>| {
                passed.set(passed.get() || Rc::ptr_eq(&seen, &call));
                Ok(Verdict::Allow)
            }
        };
        let heard = {
            let (refused, call) = (refused.clone(), call.clone());
            move |seen: &Rc<Call>, said: &Result<Verdict, BoxError>| {
                if let (Some(why), true) = (refusal(said), Rc::ptr_eq(seen, &call)) {
                    refused.borrow_mut().get_or_insert(why);
                }
            }
        };
        let said = self.ctx().waterfall_heard::<PreExecute>(call.clone(), innermost, heard).await;
        match refusal(&said).or(refused.take()) {
            Some(why) => Verdict::Deny(why),
            None if passed.get() => Verdict::Allow,
            None => Verdict::Deny("a plugin allowed this call without calling next()".to_owned()),
        }
    }

    /// Hands the result round. If that fails the unseen text is not passed on: a listener may be there to hide a part.
    async fn finish(&self, call: Rc<Call>, result: ToolResult) -> ToolResult {
        let (cancel, denied) = (call.cancel.clone(), result.denied);
        let finished = Rc::new(Finished { call, result });
        let innermost = async |finished: Rc<Finished>| Ok(finished.result.clone());
        let handed_round = self.ctx().waterfall::<PostExecute>(finished, innermost);
        let result = match until_cancelled(&cancel, handed_round).await {
            Some(Ok(result)) => result,
            Some(Err(err)) => {
                ToolResult::error(format!("a plugin failed on the result, which is lost: {err}"))
            }
            None => ToolResult::aborted(),
        };
        ToolResult { denied, ..result }
    }

    fn still_has(&self, tool: &Rc<Tool>) -> bool {
        self.find(&tool.name).is_some_and(|found| Rc::ptr_eq(&found, tool))
    }
}

impl Tools {
    fn find(&self, name: &str) -> Option<Rc<Tool>> {
        self.table.borrow().get(name).cloned()
    }

    /// Turns a request into a call: a call that cannot run says so in `problem` and goes on all the same (D-30).
    async fn read(&self, request: CallRequest, tool: Option<&Rc<Tool>>) -> Call {
        let (arguments, fault) = match arguments::parse(&request.arguments) {
            Ok(arguments) => (arguments, None),
            Err(fault) => (Map::new(), Some(fault)),
        };
        let known = match tool {
            _ if request.problem.is_some() => Err(request.problem),
            None => Err(Some(self.unknown(&request.name))),
            Some(_) if fault.is_some() => Err(fault),
            Some(tool) => foreseen(tool, &arguments, request.session.as_ref()).await,
        };
        let (problem, preview) = known.map_or_else(|it| (it, None), |it| (None, it));
        Call {
            id: request.id,
            name: request.name,
            raw: request.arguments,
            arguments,
            problem,
            preview,
            cancel: request.cancel,
            session: request.session,
            turn: request.turn,
            step: request.step,
            must_ask: Cell::default(),
        }
    }

    fn unknown(&self, name: &str) -> String {
        match self.names().join(", ") {
            names if names.is_empty() => format!("unknown tool \"{name}\"; there are no tools"),
            names => format!("unknown tool \"{name}\"; the tools are: {names}"),
        }
    }
}

/// Why what a listener said is no yes.
fn refusal(said: &Result<Verdict, BoxError>) -> Option<String> {
    match said {
        Ok(Verdict::Allow) => None,
        Ok(Verdict::Deny(reason)) => Some(reason.clone()),
        Err(err) => Some(format!("the call was not run because a plugin failed: {err}")),
    }
}

/// What a call would change, or why it cannot run. Schemas and checks are the tool's own, so they may break like its body.
async fn foreseen(
    tool: &Rc<Tool>,
    arguments: &Map<String, Value>,
    session: Option<&Rc<Session>>,
) -> Result<Option<String>, Option<String>> {
    let (tool, arguments, session) = (tool.clone(), arguments.clone(), session.cloned());
    let look = async move {
        let session = session.as_deref();
        Ok(match arguments::problem(&tool, &arguments, session) {
            Some(problem) => Err(Some(problem)),
            None => Ok(tool.preview(&arguments, session)),
        })
    };
    catch_panic(look)
        .await
        .unwrap_or_else(|err| Err(Some(format!("cannot check the arguments: {err}"))))
}

async fn run_body(tool: &Tool, call: Rc<Call>) -> ToolResult {
    let cancel = call.cancel.clone();
    if cancel.is_cancelled() {
        return ToolResult::aborted();
    }
    match until_cancelled(&cancel, catch_panic((tool.run)(call))).await {
        Some(Ok(result)) => result,
        Some(Err(err)) => ToolResult::error(err),
        None => ToolResult::aborted(),
    }
}

/// Waits for `work`, but once the token is pulled only a moment longer; `None` means that the work was dropped.
pub(crate) async fn until_cancelled<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> Option<T> {
    let limit = async {
        cancel.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        biased;
        done = work => Some(done),
        () = limit => None,
    }
}
