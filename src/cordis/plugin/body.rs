//! The signature is the declaration: how an `async fn` becomes a plugin, and how its arguments say what it needs.
//!
//! Watch for: the `body!` macro is the whole trick. It is written out for each number of arguments, because Rust has no
//! other way to speak of functions of any number of them.

use std::borrow::Cow;
use std::future::Future;

use serde_json::Value;

use super::config::{self, ConfigType};
use crate::cordis::context::Context;
use crate::cordis::effect::{Cleanup, IntoCleanup};
use crate::cordis::error::{BoxError, ConfigError, Error};
use crate::cordis::guard::LocalBoxFuture;
use crate::cordis::service::Need;

/// A service that a plugin declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// Name of the service.
    pub name: Cow<'static, str>,
    /// Whether the plugin waits for it.
    pub required: bool,
}

/// A tuple of needs.
pub trait Needs: Sized + 'static {
    /// What they declare.
    fn declare() -> Vec<Declared>;
    /// Their values, or the error of the first that is not there; see [`Need::extract`].
    fn extract(ctx: &Context) -> Result<Self, Error>;
}

/// A function that can be a plugin; see [`plugin`](super::plugin()). `Args` only tells the compiler how many needs it has.
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
                <($($need,)*)>::declare()
            }

            #[allow(non_snake_case, reason = "the arguments are called as their types")]
            fn start(
                &self,
                ctx: Context,
                config: Value,
            ) -> LocalBoxFuture<'static, Result<Option<Cleanup>, BoxError>> {
                let prepared = Conf::read(config).map_err(BoxError::from).and_then(|config| {
                    let ($($need,)*) = Needs::extract(&ctx)?;
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

/// `my_app::tool_date::apply` is called `tool-date`.
pub(super) fn name_of<B>() -> String {
    let path = std::any::type_name::<B>();
    let module = path.rsplit("::").find(|part| !part.starts_with('{') && *part != "apply");
    module.unwrap_or("anonymous").replace('_', "-")
}

/// Reads `inject`: a list of names, or a map whose keys are the names.
pub(super) fn declared(plugin: &str, inject: &Value) -> Result<Vec<Declared>, ConfigError> {
    // Omitted: the values of the map, a config for each service in Cordis, are not used.
    let names: Option<Vec<&str>> = match inject {
        Value::Null => Some(Vec::new()),
        Value::Array(names) => names.iter().map(Value::as_str).collect(),
        Value::Object(map) => Some(map.keys().map(String::as_str).collect()),
        _ => None,
    };
    let names = names.ok_or_else(|| {
        config::refused(plugin, "inject", "must be a list of names or a map whose keys are names")
    })?;
    let declared = names.into_iter().map(|name| Cow::Owned(name.to_owned()));
    Ok(declared.map(|name| Declared { name, required: true }).collect())
}
