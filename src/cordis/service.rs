//! Services: what plugins offer each other, by name, and the view that binds a service to its caller.
//!
//! A plugin that takes `Svc<Tools>` gets the one `Tools` object, together with a context that belongs to the *plugin*. A
//! method that registers something stands on that view (`impl Svc<Tools> { pub fn register(…) }`) and registers through
//! `self.ctx()`, so what is registered belongs to whoever called, and goes when the caller goes, although the code is
//! the service's. What belongs to the service itself is registered with the context it kept from its own start.
//! Full-size counterpart: cordis `packages/core/src/service.ts`, `reflect.ts` and `utils.ts` (traceable).
//! Watch for: inside such a method a read is checked against what the *service* declares.

use std::ops::Deref;
use std::rc::Rc;

use super::context::Context;
use super::effect::Undo;
use super::error::Error;
use super::fiber::Fiber;
use super::refresh::Provision;

/// A type that is offered under a name. A replaceable capability is a trait object: `impl Service for dyn Shell`.
pub trait Service: 'static {
    /// The name of the service in declarations, YAML and messages.
    const NAME: &'static str;
}

/// A service as its caller sees it: the shared object, and the caller's context.
pub struct Svc<S: ?Sized> {
    value: Rc<S>,
    ctx: Context,
}

impl<S: ?Sized> Svc<S> {
    /// The context of the caller: what is registered through it belongs to the caller.
    pub fn ctx(&self) -> &Context {
        &self.ctx
    }

    /// The object itself, without a caller.
    pub fn shared(&self) -> Rc<S> {
        self.value.clone()
    }
}

impl<S: ?Sized> Clone for Svc<S> {
    fn clone(&self) -> Self {
        Self { value: self.value.clone(), ctx: self.ctx.clone() }
    }
}

impl<S: ?Sized> Deref for Svc<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.value
    }
}

/// A service that may be absent: declared, but never waited for, and looked up at each use.
pub struct Optional<S: ?Sized> {
    ctx: Context,
    of: std::marker::PhantomData<S>,
}

impl<S: Service + ?Sized> Optional<S> {
    /// The service as it is now, if its provider is running.
    pub fn get(&self) -> Option<Svc<S>> {
        self.ctx.get()
    }
}

/// What a plugin may take as an argument: `Svc<T>` or `Optional<T>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a plugin",
    note = "a plugin takes `Context`, its config, then any number of `Svc<T>` or `Optional<T>`"
)]
pub trait Need: Sized + 'static {
    /// Name of the service, and whether the plugin waits for it.
    fn declare() -> (&'static str, bool);
    /// The value for a load that is beginning.
    ///
    /// # Errors
    /// [`Error::TypeMismatch`], or [`Error::Unavailable`] outside a load.
    fn extract(ctx: &Context) -> Result<Self, Error>;
}

impl<S: Service + ?Sized> Need for Svc<S> {
    fn declare() -> (&'static str, bool) {
        (S::NAME, true)
    }

    fn extract(ctx: &Context) -> Result<Self, Error> {
        ctx.service()
    }
}

impl<S: Service + ?Sized> Need for Optional<S> {
    fn declare() -> (&'static str, bool) {
        (S::NAME, false)
    }

    fn extract(ctx: &Context) -> Result<Self, Error> {
        Ok(Self { ctx: ctx.clone(), of: std::marker::PhantomData })
    }
}

/// How the walk from a reader to the root ended.
enum Found {
    Provision(Rc<Provision>),
    Unavailable,
    Undeclared,
}

impl Context {
    /// Offers a service under its name, from when this plugin is ACTIVE until it unloads.
    ///
    /// # Errors
    /// [`Error::DuplicateService`] if the name is held, [`Error::ReservedName`], [`Error::Inactive`].
    pub fn provide<S: Service + ?Sized>(&self, value: Rc<S>) -> Result<Undo, Error> {
        self.provide_named(S::NAME, value)
    }

    /// As [`provide`](Self::provide), under any name.
    pub fn provide_named<S: ?Sized + 'static>(
        &self,
        name: &str,
        value: Rc<S>,
    ) -> Result<Undo, Error> {
        self.provide_any(name, Rc::new(value))
    }

    /// Reads a service that this plugin or one that encloses it declares or provides.
    ///
    /// # Errors
    /// [`Error::Undeclared`] if none does, [`Error::Unavailable`] if it is not there now, [`Error::TypeMismatch`].
    pub fn service<S: Service + ?Sized>(&self) -> Result<Svc<S>, Error> {
        self.service_named(S::NAME)
    }

    /// As [`service`](Self::service), under any name.
    pub fn service_named<S: ?Sized + 'static>(&self, name: &str) -> Result<Svc<S>, Error> {
        let plugin = || self.kernel.path(self.origin);
        match self.find(name) {
            Found::Provision(provision) => self
                .view(&provision)
                .ok_or_else(|| Error::TypeMismatch { service: name.into(), plugin: plugin() }),
            Found::Unavailable => {
                Err(Error::Unavailable { service: name.into(), plugin: plugin() })
            }
            Found::Undeclared => Err(Error::Undeclared { service: name.into(), plugin: plugin() }),
        }
    }

    /// A service that is there or not, whatever was declared: the way to read an optional one.
    pub fn get<S: Service + ?Sized>(&self) -> Option<Svc<S>> {
        self.get_named(S::NAME)
    }

    /// As [`get`](Self::get), under any name.
    pub fn get_named<S: ?Sized + 'static>(&self, name: &str) -> Option<Svc<S>> {
        let provision = self.kernel.known_slot(name)?.current()?;
        self.view(&provision)
    }

    /// Names of all services that are provided now, sorted.
    pub fn service_names(&self) -> Vec<String> {
        self.kernel.service_names()
    }

    /// The same object for this caller: owner as here, origin the provider.
    fn view<S: ?Sized + 'static>(&self, provision: &Provision) -> Option<Svc<S>> {
        let value = provision.value.downcast_ref::<Rc<S>>()?.clone();
        Some(Svc { value, ctx: Self { origin: provision.owner, ..self.clone() } })
    }

    fn find(&self, name: &str) -> Found {
        let Some(reader) = self.kernel.fiber(self.origin) else { return Found::Unavailable };
        if reader.parent.is_none() {
            let known = self.kernel.known_slot(name).and_then(|slot| slot.current());
            return known.map_or(Found::Unavailable, Found::Provision);
        }
        let mut next = Some(reader);
        while let Some(fiber) = next {
            if let Some(provision) = fiber.own(name) {
                return Found::Provision(provision);
            }
            if let Some(need) = fiber.needs.iter().find(|need| &*need.slot.name == name) {
                let optional = self
                    .kernel
                    .known_slot(name)
                    .filter(|_| !need.required)
                    .and_then(|slot| slot.current());
                return optional.map_or(Found::Unavailable, Found::Provision);
            }
            next = fiber.parent.and_then(|id| self.kernel.fiber(id));
        }
        Found::Undeclared
    }
}

impl Fiber {
    /// What this fiber has committed to, or provides itself, even while it still loads.
    fn own(&self, name: &str) -> Option<Rc<Provision>> {
        let named = |list: &[Rc<Provision>]| list.iter().find(|it| &*it.slot.name == name).cloned();
        named(&self.committed.borrow()).or_else(|| named(&self.provisions.borrow()))
    }
}
