//! Tools: the table of what the model may call, and the one pipeline that every call goes through.
//!
//! Provides `tools`. Raises `tools/pre-execute`, `tools/post-execute` and `tools/changed`.
//! Full-size counterpart: `packages/core/tools` of DeepSeek Harness.
//! Watch for: whatever goes wrong becomes a result that the model can read, never an error for the loop; and a call
//! runs only if the question "may it?" went through every listener and came out at the other end.

mod arguments;

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::BTreeMap,
    fmt::Display,
    rc::Rc,
    time::Duration,
};

use jsonschema::Validator;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::{
    cordis::{
        self, BoxError, Context, Emit, LocalBoxFuture, NoConfig, Service, Svc, Undo, Waterfall,
    },
    harness::session::{Session, message::ToolSchema},
};

/// How long something that was told to stop may take to say a last word before it is dropped.
const GRACE: Duration = Duration::from_millis(30);

/// The plugin: an empty table.
pub async fn apply(ctx: Context, _config: NoConfig) -> Result<(), BoxError> {
    ctx.provide(Rc::new(Tools::default()))?;
    Ok(())
}

/// Service `tools`. What the model is shown and what can be run are read from the same table.
#[derive(Default)]
pub struct Tools {
    table: RefCell<BTreeMap<String, Rc<Tool>>>,
}

impl Service for Tools {
    const NAME: &'static str = "tools";
}

impl Svc<Tools> {
    /// Adds a tool that lives as long as the plugin that calls this. A second tool of one name is refused.
    pub fn register(&self, tool: Tool) -> Result<Undo, ToolsError> {
        self.check(&tool)?;
        let (tools, ctx, name) = (self.shared(), self.ctx().clone(), tool.name.clone());
        let undo = self.ctx().effect(|| {
            self.table.borrow_mut().insert(name.clone(), Rc::new(tool));
            move || {
                tools.table.borrow_mut().remove(&name);
                ctx.emit(&ToolsChanged);
            }
        })?;
        self.ctx().emit(&ToolsChanged);
        Ok(undo)
    }

    /// Runs one call through the pipeline: read, pre-execute, body, post-execute. Never fails: see [`ToolResult`].
    pub async fn execute(&self, request: CallRequest) -> ToolResult {
        let tool = self.find(&request.name);
        let call = Rc::new(self.read(request, tool.as_deref()));
        let result = self.judge_and_run(tool, &call).await;
        self.finish(call, result).await
    }
}

impl Tools {
    /// What the model is shown, sorted by name, so that the order of mounting never changes a request.
    pub fn schemas(&self) -> Vec<ToolSchema> {
        let table = self.table.borrow();
        table.values().map(|tool| tool.schema()).collect()
    }

    /// The names of all tools, sorted.
    pub fn names(&self) -> Vec<String> {
        self.table.borrow().keys().cloned().collect()
    }
}

/// What the model may call.
pub struct Tool {
    /// Letters, digits, `_` and `-`, at most 64: what model services accept.
    pub name: String,
    /// Tells the model what the tool is for.
    pub description: String,
    /// JSON Schema of the arguments; a call that does not fit never reaches the body.
    pub parameters: Value,
    fits: OnceCell<Result<Validator, String>>,
    check: Box<dyn Fn(&Map<String, Value>) -> Result<(), String>>,
    run: Box<dyn Fn(Rc<Call>) -> LocalBoxFuture<'static, Result<ToolResult, BoxError>>>,
}

impl Tool {
    /// A tool with a body. An `Err` of the body becomes a result with `is_error`; so does a panic.
    /// When [`Call::cancel`] is pulled the body has a moment to end by itself, then its future is dropped:
    /// what must outlive that (stopping a process for good) belongs to a task of the plugin.
    pub fn new<O: Into<ToolResult>>(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: Value,
        run: impl AsyncFn(Rc<Call>) -> Result<O, BoxError> + 'static,
    ) -> Tool {
        let run = Rc::new(run);
        Tool {
            name: name.into(),
            description: description.into(),
            parameters,
            fits: OnceCell::new(),
            check: Box::new(|_| Ok(())),
            run: Box::new(move |call| {
                let run = run.clone();
                Box::pin(async move { run(call).await.map(Into::into) })
            }),
        }
    }

    /// A tool whose schema comes from the type of its arguments, doc comments included.
    pub fn typed<A: DeserializeOwned + JsonSchema, O: Into<ToolResult>>(
        name: impl Into<String>,
        description: impl Into<String>,
        run: impl AsyncFn(A, Rc<Call>) -> Result<O, BoxError> + 'static,
    ) -> Tool {
        Tool::new(name, description, arguments::schema_of::<A>(), async move |call: Rc<Call>| {
            let arguments = serde_json::from_value(Value::Object(call.arguments.clone()))?;
            run(arguments, call).await
        })
    }

    /// Adds what a schema cannot say. An `Err` is the problem of the call: it is not run, and nobody is asked about it.
    #[must_use]
    pub fn checked(
        self,
        check: impl Fn(&Map<String, Value>) -> Result<(), String> + 'static,
    ) -> Tool {
        Tool { check: Box::new(check), ..self }
    }

    fn schema(&self) -> ToolSchema {
        ToolSchema::new(&self.name, &self.description, self.parameters.clone())
    }
}

/// What the loop hands over: one call as the model made it.
pub struct CallRequest {
    /// Id of the call, unique in its session.
    pub id: String,
    /// Name of the tool, compared exactly.
    pub name: String,
    /// The argument text, untouched.
    pub arguments: String,
    /// Why this call must not run, if the caller knows a reason (the reply was cut).
    pub problem: Option<String>,
    /// Pulled when the turn is to end.
    pub cancel: CancellationToken,
    /// Where the call comes from; absent when no model made it.
    pub session: Option<Rc<Session>>,
    /// Number of the turn.
    pub turn: u32,
    /// Number of the step.
    pub step: u32,
}

/// A call as listeners and bodies see it. It cannot be changed: the log would no longer say what ran.
pub struct Call {
    /// Id of the call, unique in its session.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// The argument text as the model made it.
    pub raw: String,
    /// The arguments, parsed; empty when they cannot be read.
    pub arguments: Map<String, Value>,
    /// Why the body will not run, whatever the listeners say: unknown tool, bad arguments, cut reply.
    pub problem: Option<String>,
    /// Pulled when the turn is to end. Whoever waits (a question, a command) waits for this too.
    pub cancel: CancellationToken,
    /// Where the call comes from; absent when no model made it.
    pub session: Option<Rc<Session>>,
    /// Number of the turn.
    pub turn: u32,
    /// Number of the step.
    pub step: u32,
}

/// What the model reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The text.
    pub content: String,
    /// Whether the call failed or did not run; such text begins with `Error: `.
    pub is_error: bool,
    /// Whether a listener of `tools/pre-execute` refused the call.
    pub denied: bool,
}

impl ToolResult {
    /// A result of a call that worked.
    pub fn text(content: impl Into<String>) -> ToolResult {
        ToolResult { content: content.into(), is_error: false, denied: false }
    }

    /// A result of a call that failed.
    pub fn error(problem: impl Display) -> ToolResult {
        ToolResult { content: format!("Error: {problem}"), is_error: true, denied: false }
    }

    /// A result of a call that the turn's end overtook.
    pub fn aborted() -> ToolResult {
        ToolResult::error("aborted: the turn was stopped")
    }
}

impl<T: Into<String>> From<T> for ToolResult {
    fn from(content: T) -> ToolResult {
        ToolResult::text(content)
    }
}

/// `tools/pre-execute`: may this call run? A listener that only watches must call `next`.
/// Saying [`Verdict::Allow`] without calling `next` refuses the call: nobody allows what others did not see.
pub struct PreExecute;

impl Waterfall for PreExecute {
    const NAME: &'static str = "tools/pre-execute";
    type Input = Call;
    type Output = Verdict;
}

/// The answer to `tools/pre-execute`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The body runs.
    Allow,
    /// The body does not run; the model reads the reason.
    Deny(String),
}

/// `tools/post-execute`: the result on its way to the log, refused calls included. Listeners may rewrite it.
pub struct PostExecute;

impl Waterfall for PostExecute {
    const NAME: &'static str = "tools/post-execute";
    type Input = Finished;
    type Output = ToolResult;
}

/// A call and what came of it.
pub struct Finished {
    /// The call.
    pub call: Rc<Call>,
    /// Its result so far.
    pub result: ToolResult,
}

/// `tools/changed`: a tool came or went.
pub struct ToolsChanged;

impl Emit for ToolsChanged {
    const NAME: &'static str = "tools/changed";
}

/// Places among the listeners of `tools/pre-execute`: who can decide alone comes before who has to ask the user.
pub struct Order;

impl Order {
    /// Policies that decide.
    pub const DECIDING: i32 = -100;
    /// Policies that ask.
    pub const ASKING: i32 = 100;
}

/// Why a tool cannot be registered.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ToolsError {
    #[error("there is a tool named `{name}` already")]
    Duplicate { name: String },
    #[error("`{name}` is no name for a tool: 1 to 64 letters, digits, `_` and `-`")]
    Name { name: String },
    #[error("tool `{name}`: the parameters must be a JSON Schema object")]
    Parameters { name: String },
    #[error(transparent)]
    Kernel(#[from] cordis::Error),
}

impl Tools {
    fn check(&self, tool: &Tool) -> Result<(), ToolsError> {
        let name = tool.name.clone();
        let letter = |it: u8| it.is_ascii_alphanumeric() || it == b'_' || it == b'-';
        if !(1..=64).contains(&name.len()) || !name.bytes().all(letter) {
            return Err(ToolsError::Name { name });
        }
        if !tool.parameters.is_object() {
            return Err(ToolsError::Parameters { name });
        }
        if self.table.borrow().contains_key(&name) {
            return Err(ToolsError::Duplicate { name });
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Option<Rc<Tool>> {
        self.table.borrow().get(name).cloned()
    }

    /// Turns a request into a call: a call that cannot run says so in `problem` and goes on all the same (D-30).
    fn read(&self, request: CallRequest, tool: Option<&Tool>) -> Call {
        let (arguments, fault) = match arguments::parse(&request.arguments) {
            Ok(arguments) => (arguments, None),
            Err(fault) => (Map::new(), Some(fault)),
        };
        let problem = match tool {
            _ if request.problem.is_some() => request.problem,
            None => Some(self.unknown(&request.name)),
            Some(tool) => fault.or_else(|| arguments::problem(tool, &arguments)),
        };
        Call {
            id: request.id,
            name: request.name,
            raw: request.arguments,
            arguments,
            problem,
            cancel: request.cancel,
            session: request.session,
            turn: request.turn,
            step: request.step,
        }
    }

    fn unknown(&self, name: &str) -> String {
        match self.names().join(", ") {
            names if names.is_empty() => format!("unknown tool \"{name}\"; there are no tools"),
            names => format!("unknown tool \"{name}\"; the tools are: {names}"),
        }
    }
}

impl Svc<Tools> {
    async fn judge_and_run(&self, tool: Option<Rc<Tool>>, call: &Rc<Call>) -> ToolResult {
        match until_cancelled(&call.cancel, self.verdict(call)).await {
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
    /// come from there is a mistake or a trick, and refuses (D-31). So does a listener that fails.
    async fn verdict(&self, call: &Rc<Call>) -> Verdict {
        let passed = Rc::new(Cell::new(false));
        let innermost = {
            let (passed, call) = (passed.clone(), call.clone());
            async move |seen: Rc<Call>| {
                passed.set(passed.get() || Rc::ptr_eq(&seen, &call));
                Ok(Verdict::Allow)
            }
        };
        match self.ctx().waterfall::<PreExecute>(call.clone(), innermost).await {
            Ok(Verdict::Allow) if !passed.get() => {
                Verdict::Deny("a plugin allowed this call without calling next()".to_owned())
            }
            Ok(verdict) => verdict,
            Err(err) => {
                Verdict::Deny(format!("the call was not run because a plugin failed: {err}"))
            }
        }
    }

    /// Hands the result round. If that fails the unseen text is not passed on: a listener may be there to hide a part.
    async fn finish(&self, call: Rc<Call>, result: ToolResult) -> ToolResult {
        let (cancel, denied) = (call.cancel.clone(), result.denied);
        let finished = Rc::new(Finished { call, result });
        let innermost = async |finished: Rc<Finished>| Ok(finished.result.clone());
        let handed_round = self.ctx().waterfall::<PostExecute>(finished, innermost);
        match until_cancelled(&cancel, handed_round).await {
            Some(Ok(result)) => ToolResult { denied, ..result },
            Some(Err(err)) => ToolResult::error(format!(
                "the call is over, but a plugin failed on its result: {err}"
            )),
            None => ToolResult::aborted(),
        }
    }

    fn still_has(&self, tool: &Rc<Tool>) -> bool {
        self.find(&tool.name).is_some_and(|found| Rc::ptr_eq(&found, tool))
    }
}

async fn run_body(tool: &Tool, call: Rc<Call>) -> ToolResult {
    let cancel = call.cancel.clone();
    if cancel.is_cancelled() {
        return ToolResult::aborted();
    }
    match until_cancelled(&cancel, cordis::catch_panic((tool.run)(call))).await {
        Some(Ok(Ok(result))) => result,
        Some(Ok(Err(err))) => ToolResult::error(err),
        Some(Err(panic)) => ToolResult::error(format!("the tool {panic}")),
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
