//! What a plugin is: a name, what it needs, the shape of its config, and a body that runs when all of that is there.
//!
//! Three shapes come to one descriptor, [`PluginDef`]: a function (`plugin(apply)`), a value with an `apply` method
//! (`object(value)`), and a service type that provides itself (`service::<Tools>()`). The *signature* is the declaration:
//! `async fn apply(ctx: Context, config: Config, tools: Svc<Tools>)` needs the service `tools`, and reading a service
//! that is not among the arguments does not compile. How that works is in `plugin/body.rs`.
//! Full-size counterpart: cordis `packages/core/src/registry.ts`.
//!
//! Differs: NanoCordis tells functions, classes and objects apart when they are mounted. Here the compiler does.

mod body;
mod config;
mod effort;
mod fault;
mod nearest;
mod secrecy;
mod tidy;
mod typed;

use std::future::Future;
use std::rc::Rc;

use serde_json::Value;

pub use self::body::{Body, Declared, Needs};
use self::config::ConfigSpec;
pub use self::config::{Checked, ConfigType, NoConfig, Secret, UnknownKey, Unreadable};
pub(crate) use self::effort::is_checkable;
pub use self::nearest::nearest;
pub use self::secrecy::secrets_in;
use super::context::Context;
use super::effect::Cleanup;
use super::error::{BoxError, ConfigError};
use super::guard::Foreign;
use super::service::Service;

/// Everything the kernel knows of a plugin before it runs. Cloning is cheap; one descriptor can be mounted many times.
#[derive(Clone)]
pub struct PluginDef {
    name: Rc<str>,
    guard: bool,
    inner: Rc<Inner>,
}

struct Inner {
    needs: Vec<Declared>,
    config: ConfigSpec,
    start: Box<Start>,
}

type Start = dyn Fn(Context, Value) -> Foreign<Option<Cleanup>>;

/// Shape 1: a function. Its arguments after context and config are its needs. It is named after its module, as
/// `tool_date::apply` is `tool-date`; [`PluginDef::named`] says otherwise.
///
/// ```
/// use nano_cordis::cordis::{BoxError, Context, NoConfig, Service, Svc, plugin};
///
/// struct Clock;
///
/// impl Service for Clock {
///     const NAME: &'static str = "clock";
/// }
///
/// async fn apply(ctx: Context, _: NoConfig, clock: Svc<Clock>) -> Result<(), BoxError> {
///     ctx.effect(|| move || drop(clock))?;
///     Ok(())
/// }
///
/// assert_eq!(plugin(apply).needs()[0].name, "clock");
/// ```
///
/// A service that is not among the arguments is not there to be read:
///
/// ```compile_fail,E0425
/// # use nano_cordis::cordis::{BoxError, Context, NoConfig, plugin};
/// async fn apply(ctx: Context, _: NoConfig) -> Result<(), BoxError> {
///     ctx.effect(|| move || drop(clock))?;
///     Ok(())
/// }
/// ```
pub fn plugin<Args, B: Body<Args>>(body: B) -> PluginDef {
    let (name, needs, config) = (body::name_of::<B>(), B::needs(), ConfigSpec::of::<B::Config>());
    PluginDef::new(&name, needs, config, move |ctx, config| body.start(ctx, config))
}

/// Shape 2: a value with an `apply` method.
pub fn object<P: Plugin>(value: P) -> PluginDef {
    let value = Rc::new(value);
    let start = move |ctx: Context, config| -> Foreign<_> {
        let value = value.clone();
        Box::pin(async move {
            let (config, needs) = (P::Config::read(config)?, P::Needs::extract(&ctx)?);
            value.apply(ctx, config, needs).await.map(|()| None)
        })
    };
    PluginDef::new(P::NAME, P::Needs::declare(), ConfigSpec::of::<P::Config>(), start)
}

/// Shape 3: a service type that provides itself under its name.
pub fn service<S: ServicePlugin>() -> PluginDef {
    let start = |ctx: Context, config| -> Foreign<_> {
        Box::pin(async move {
            let (config, needs) = (S::Config::read(config)?, S::Needs::extract(&ctx)?);
            let service = S::start(ctx.clone(), config, needs).await?;
            ctx.provide(Rc::new(service))?;
            Ok(None)
        })
    };
    PluginDef::new(S::NAME, S::Needs::declare(), ConfigSpec::of::<S::Config>(), start)
}

/// A plugin as a value; see [`object`].
pub trait Plugin: 'static {
    /// Its name in paths and messages.
    const NAME: &'static str;
    /// Its config; [`NoConfig`] for none.
    type Config: ConfigType;
    /// A tuple of `Svc<T>` and `Optional<T>`.
    type Needs: Needs;

    /// The body. If it fails, the plugin is FAILED, and what it registered is undone.
    fn apply(
        &self,
        ctx: Context,
        config: Self::Config,
        needs: Self::Needs,
    ) -> impl Future<Output = Result<(), BoxError>>;
}

/// A service type that is a plugin; see [`service`].
pub trait ServicePlugin: Service + Sized {
    /// Its config; [`NoConfig`] for none.
    type Config: ConfigType;
    /// A tuple of `Svc<T>` and `Optional<T>`.
    type Needs: Needs;

    /// Builds the service, or fails. Keep `ctx` for what belongs to the service itself.
    fn start(
        ctx: Context,
        config: Self::Config,
        needs: Self::Needs,
    ) -> impl Future<Output = Result<Self, BoxError>>;
}

impl PluginDef {
    fn new(
        name: &str,
        mut needs: Vec<Declared>,
        config: ConfigSpec,
        start: impl Fn(Context, Value) -> Foreign<Option<Cleanup>> + 'static,
    ) -> Self {
        // A name that is declared twice is one need; required wins.
        needs.sort_by(|a, b| a.name.cmp(&b.name).then(b.required.cmp(&a.required)));
        needs.dedup_by(|later, kept| later.name == kept.name);
        let inner = Rc::new(Inner { needs, config, start: Box::new(start) });
        Self { name: name.into(), guard: false, inner }
    }

    /// A plugin that is made at run time, from a script or in a test. `inject` is a list of names or a map whose keys are
    /// the names; the config is checked against `schema`, a JSON Schema, and given to `start` with its defaults. The error
    /// says that `inject` is neither, or that the schema is none.
    pub fn dynamic(
        name: &str,
        inject: &Value,
        schema: Option<Value>,
        start: impl Fn(Context, Value) -> Foreign<Option<Cleanup>> + 'static,
    ) -> Result<Self, ConfigError> {
        let (needs, config) = (body::declared(name, inject)?, ConfigSpec::dynamic(name, schema)?);
        Ok(Self::new(name, needs, config, start))
    }

    /// The same plugin under another name.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Marks a plugin whose silence would be dangerous: it refuses config keys it does not know, and its entry cannot be
    /// optional.
    #[must_use]
    pub fn guard(self) -> Self {
        Self { guard: true, ..self }
    }

    /// Whether it is marked so.
    pub fn is_guard(&self) -> bool {
        self.guard
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn shared_name(&self) -> Rc<str> {
        self.name.clone()
    }

    /// What it declares.
    pub fn needs(&self) -> &[Declared] {
        &self.inner.needs
    }

    /// The JSON Schema of its config; none if anything goes.
    pub fn schema(&self) -> Option<&Value> {
        self.inner.config.schema()
    }

    /// Checks a config: fills in defaults, drops nulls, names unknown keys. The error holds all faults at once.
    pub fn check(&self, config: &Value) -> Result<Checked, ConfigError> {
        self.inner.config.check(&self.name, config, self.guard)
    }

    /// Begins a load, with a config that has been checked.
    pub(super) fn start(&self, ctx: Context, config: Value) -> Foreign<Option<Cleanup>> {
        (self.inner.start)(ctx, config)
    }
}
