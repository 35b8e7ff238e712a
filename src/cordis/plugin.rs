//! What a plugin is: a name, what it needs, the shape of its config, and a body that runs when all of that is there.
//!
//! Three shapes come to one descriptor, [`PluginDef`]: a function (`plugin(apply)`), a value with an `apply` method
//! (`object(value)`), and a service type that provides itself (`service::<Tools>()`). The *signature* is the declaration:
//! `async fn apply(ctx: Context, config: Config, tools: Svc<Tools>)` needs the service `tools`, and reading a service
//! that is not among the arguments does not compile.
//! Full-size counterpart: cordis `packages/core/src/registry.ts`.
//! Watch for: the `body!` macro at the end is the whole trick; it reads the needs from the types of the arguments.
//!
//! Differs: NanoCordis tells functions, classes and objects apart when they are mounted. Here the compiler does.

mod config;

use std::borrow::Cow;
use std::future::Future;
use std::rc::Rc;

use serde_json::Value;

use self::config::ConfigSpec;
pub use self::config::{Checked, ConfigType, NoConfig, Secret, UnknownKey, nearest};
use super::context::Context;
use super::effect::{Cleanup, IntoCleanup};
use super::error::{BoxError, ConfigError, Error};
use super::guard::LocalBoxFuture;
use super::service::{Need, Service};

type BodyFuture = LocalBoxFuture<'static, Result<Option<Cleanup>, BoxError>>;

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
    start: Box<dyn Fn(Context, Value) -> BodyFuture>,
}

/// A service that a plugin declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// Name of the service.
    pub name: Cow<'static, str>,
    /// Whether the plugin waits for it.
    pub required: bool,
}

/// Shape 1: a function. Its arguments after context and config are its needs. It is named after its module, as
/// `tool_date::apply` is `tool-date`; [`PluginDef::named`] says otherwise.
pub fn plugin<Args, B: Body<Args>>(body: B) -> PluginDef {
    PluginDef::new(
        &name_of::<B>(),
        B::needs(),
        ConfigSpec::of::<B::Config>(),
        move |ctx, config| body.start(ctx, config),
    )
}

/// Shape 2: a value with an `apply` method.
pub fn object<P: Plugin>(value: P) -> PluginDef {
    let value = Rc::new(value);
    let start = move |ctx: Context, config| -> BodyFuture {
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
    let start = |ctx: Context, config| -> BodyFuture {
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

    /// The body.
    ///
    /// # Errors
    /// Whatever keeps the plugin from running; it is FAILED then, and what it registered is undone.
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

    /// Builds the service. Keep `ctx` for what belongs to the service itself.
    ///
    /// # Errors
    /// Whatever keeps the service from running.
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
        start: impl Fn(Context, Value) -> BodyFuture + 'static,
    ) -> Self {
        // A name that is declared twice is one need; required wins.
        needs.sort_by(|a, b| a.name.cmp(&b.name).then(b.required.cmp(&a.required)));
        needs.dedup_by(|later, kept| later.name == kept.name);
        Self {
            name: name.into(),
            guard: false,
            inner: Rc::new(Inner { needs, config, start: Box::new(start) }),
        }
    }

    /// A plugin that is made at run time, from a script or in a test. `inject` is a list of names or a map whose keys are
    /// the names; the config is checked against `schema`, a JSON Schema, and given to `start` with its defaults.
    ///
    /// # Errors
    /// [`ConfigError`] if `inject` is neither, or the schema is none.
    pub fn dynamic(
        name: &str,
        inject: &Value,
        schema: Option<Value>,
        start: impl Fn(Context, Value) -> LocalBoxFuture<'static, Result<Option<Cleanup>, BoxError>>
        + 'static,
    ) -> Result<Self, ConfigError> {
        Ok(Self::new(
            name,
            config::declared(name, inject)?,
            ConfigSpec::dynamic(name, schema)?,
            start,
        ))
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

    /// Checks a config: fills in defaults, drops nulls, names unknown keys.
    ///
    /// # Errors
    /// All faults at once, each with its path.
    pub fn check(&self, config: &Value) -> Result<Checked, ConfigError> {
        self.inner.config.check(&self.name, config, self.guard)
    }

    /// Begins a load, with a config that has been checked.
    pub(super) fn start(&self, ctx: Context, config: Value) -> BodyFuture {
        (self.inner.start)(ctx, config)
    }
}

/// `my_app::tool_date::apply` is called `tool-date`.
fn name_of<B>() -> String {
    let path = std::any::type_name::<B>();
    let module = path.rsplit("::").find(|part| !part.starts_with('{') && *part != "apply");
    module.unwrap_or("anonymous").replace('_', "-")
}

/// A tuple of needs.
pub trait Needs: Sized + 'static {
    /// What they declare.
    fn declare() -> Vec<Declared>;
    /// Their values.
    ///
    /// # Errors
    /// As [`Need::extract`].
    fn extract(ctx: &Context) -> Result<Self, Error>;
}

/// A function that can be a plugin; see [`plugin`]. `Args` only tells the compiler how many needs it has.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a plugin",
    note = "a plugin is an `async fn(ctx: Context, config: Config, …) -> Result<(), E>`; each further argument is a \
            `Svc<T>` or an `Optional<T>`, at most eight of them; `Config` derives `Deserialize` and `JsonSchema`"
)]
pub trait Body<Args>: 'static {
    /// The type of its config.
    type Config: ConfigType;
    /// What its arguments declare.
    fn needs() -> Vec<Declared>;
    /// Begins a load.
    fn start(
        &self,
        ctx: Context,
        config: Value,
    ) -> LocalBoxFuture<'static, Result<Option<Cleanup>, BoxError>>;
}

fn declare<N: Need>() -> Declared {
    let (name, required) = N::declare();
    Declared { name: name.into(), required }
}

macro_rules! body {
    ($($need:ident)*) => {
        impl<$($need: Need),*> Needs for ($($need,)*) {
            fn declare() -> Vec<Declared> {
                vec![$(declare::<$need>()),*]
            }

            #[allow(unused_variables, reason = "a tuple of none reads nothing")]
            fn extract(ctx: &Context) -> Result<Self, Error> {
                Ok(($($need::extract(ctx)?,)*))
            }
        }

        impl<Fun, Fut, Conf, Ret, Mark, $($need),*> Body<(Conf, Ret, Mark, $($need,)*)> for Fun
        where
            Fun: Fn(Context, Conf, $($need),*) -> Fut + 'static,
            Fut: Future<Output = Ret> + 'static,
            Ret: IntoCleanup<Mark>,
            Conf: ConfigType,
            $($need: Need,)*
        {
            type Config = Conf;

            fn needs() -> Vec<Declared> {
                vec![$(declare::<$need>()),*]
            }

            #[allow(non_snake_case, reason = "the arguments are called as their types")]
            fn start(&self, ctx: Context, config: Value) -> BodyFuture {
                let prepared = Conf::read(config).map_err(BoxError::from).and_then(|config| {
                    $(let $need = $need::extract(&ctx)?;)*
                    Ok(self(ctx, config, $($need),*))
                });
                match prepared {
                    Ok(body) => Box::pin(async move { body.await.into_cleanup() }),
                    Err(err) => Box::pin(std::future::ready(Err(err))),
                }
            }
        }
    };
}

body!();
body!(A);
body!(A B);
body!(A B C);
body!(A B C D);
body!(A B C D E);
body!(A B C D E F);
body!(A B C D E F G);
body!(A B C D E F G H);
