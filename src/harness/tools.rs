//! Tools: the table of what the model may call, and the one pipeline that every call goes through.
//!
//! Provides `tools`. Raises `tools/pre-execute`, `tools/post-execute` and `tools/changed`.
//! Full-size counterpart: the core tools package.
//! Watch for: whatever goes wrong becomes a result that the model can read, never an error for the loop; and a call
//! runs only if the question "may it?" went through every listener and came out at the other end.

pub(crate) mod arguments;
mod call;
mod foresight;
pub(crate) mod pipeline;

use std::{
    cell::{OnceCell, RefCell},
    collections::BTreeMap,
    rc::Rc,
};

use jsonschema::Validator;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

pub use self::call::{Call, CallRequest, ToolResult};
use self::foresight::Foresight;
use crate::{
    cordis::{
        self, BoxError, Context, Emit, LocalBoxFuture, NoConfig, Service, Svc, Undo, Waterfall,
    },
    harness::session::message::ToolSchema,
};

/// The plugin: an empty table.
pub async fn apply(ctx: Context, _config: NoConfig) -> Result<(), BoxError> {
    ctx.provide(Rc::new(Tools::default()))?;
    Ok(())
}

/// Service `tools`; [`Svc::execute`] is in `tools/pipeline.rs`. What the model is shown and what can be run are read from the same table.
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
        let tool = Tool { owner: self.ctx().path(), ..tool };
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
}

impl Tools {
    /// What the model is shown, sorted by name, so that the order of mounting never changes a request.
    pub fn schemas(&self) -> Vec<ToolSchema> {
        let table = self.table.borrow();
        table.values().map(|tool| tool.schema()).collect()
    }

    /// The name of each tool and the path of the plugin that offers it.
    pub fn owners(&self) -> Vec<(String, String)> {
        let table = self.table.borrow();
        table.values().map(|tool| (tool.name.clone(), tool.owner.clone())).collect()
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
    /// Path of the plugin that registered it.
    owner: String,
    fits: OnceCell<Result<Validator, String>>,
    foresight: Foresight,
    run: Box<Run>,
}

type Run = dyn Fn(Rc<Call>) -> LocalBoxFuture<'static, Result<ToolResult, BoxError>>;

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
            owner: String::new(),
            fits: OnceCell::new(),
            foresight: Foresight::default(),
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

    fn schema(&self) -> ToolSchema {
        ToolSchema::new(&self.name, &self.description, self.parameters.clone())
    }
}

/// `tools/pre-execute`: may this call run? A listener that only watches must call `next`.
/// Saying [`Verdict::Allow`] without calling `next` refuses the call: nobody allows what others did not see. Nor does
/// anybody allow what one of the others has refused, or failed on.
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
}
