//! Services: what plugins offer each other, by name, and the view that binds a service to its caller.
//!
//! A plugin that takes `Svc<Tools>` gets the one `Tools` object, together with a context that belongs to the *plugin*. A
//! method that registers something stands on that view (`impl Svc<Tools> { pub fn register(…) }`) and registers through
//! `self.ctx()`, so what is registered belongs to whoever called, and goes when the caller goes, although the code is
//! the service's. What belongs to the service itself is registered with the context it kept from its own start.
//! Full-size counterpart: cordis `packages/core/src/service.ts`, `reflect.ts` and `utils.ts` (traceable).
//! Watch for: inside such a method a read is checked against what the *service* declares.
//!
//! Omitted: services that can be called like functions, and a predicate by which a service says when it can be used.

mod named;
mod table;

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::Deref;
use std::rc::Rc;

pub(super) use self::table::{Provision, Requirement, ServiceSlot};
use super::context::Context;
use super::effect::{Cleanup, Undo};
use super::error::{BoxError, Error};
use super::fiber::{Fiber, Phase};
use super::kernel::Kernel;

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
    of: PhantomData<S>,
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
    /// The value for a load that is beginning. Fails with [`Error::TypeMismatch`], or [`Error::Unavailable`] outside a load.
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
        Ok(Self { ctx: ctx.clone(), of: PhantomData })
    }
}

impl Context {
    // Omitted: `ctx.set`, accessors and mixins, by which Cordis puts other things on a context.

    /// Offers a service under its name, from when this plugin is ACTIVE until it unloads. Fails with
    /// [`Error::DuplicateService`] if the name is held, [`Error::ReservedName`], or [`Error::Inactive`].
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

    fn provide_any(&self, name: &str, value: Rc<dyn Any>) -> Result<Undo, Error> {
        let owner = self.running()?;
        // In a script these would hide a part of the context.
        if let "answer" | "effect" | "emit" | "get" | "intercept" | "on" | "parallel" | "path"
        | "plugin" | "provide" | "serial" | "service" | "spawn" | "stopping" | "waterfall" = name
        {
            return Err(Error::ReservedName { service: name.into() });
        }
        let slot = self.kernel.slot(name);
        let holder = slot.provision.borrow().as_ref().map(|holder| self.kernel.path(holder.owner));
        if let Some(owner) = holder {
            return Err(Error::DuplicateService { service: name.into(), owner });
        }
        let provision = Provision::new(self.kernel.number(), owner.id, slot, value);
        owner.provisions.borrow_mut().insert(provision.id, provision.clone());
        if owner.phase.get() == Phase::Active {
            self.kernel.announce(&provision, true);
        }
        let kernel = self.kernel.clone();
        let withdraw = Cleanup::future(move || withdraw(kernel, provision));
        let key = owner.effects.borrow_mut().add(withdraw);
        Ok(Undo::new(&self.kernel, owner.id, key))
    }

    /// Reads a service that this plugin or one that encloses it declares or provides. Fails with [`Error::Undeclared`] if
    /// none does, [`Error::Unavailable`] if it is not there now, or [`Error::TypeMismatch`].
    pub fn service<S: Service + ?Sized>(&self) -> Result<Svc<S>, Error> {
        self.service_named(S::NAME)
    }

    /// As [`service`](Self::service), under any name.
    pub fn service_named<S: ?Sized + 'static>(&self, name: &str) -> Result<Svc<S>, Error> {
        let provision = self.find(name)?;
        let mismatch = || Error::TypeMismatch { service: name.into(), plugin: self.reader() };
        self.view(&provision).ok_or_else(mismatch)
    }

    /// A service that is there or not, whatever was declared: the way to read an optional one.
    pub fn get<S: Service + ?Sized>(&self) -> Option<Svc<S>> {
        self.get_named(S::NAME)
    }

    /// As [`get`](Self::get), under any name.
    pub fn get_named<S: ?Sized + 'static>(&self, name: &str) -> Option<Svc<S>> {
        self.view(&*self.kernel.current(name)?)
    }

    /// The same object for this caller: owner as here, origin the provider.
    fn view<S: ?Sized + 'static>(&self, provision: &Provision) -> Option<Svc<S>> {
        let value = provision.value.downcast_ref::<Rc<S>>()?.clone();
        Some(Svc { value, ctx: Self { origin: provision.owner, ..self.clone() } })
    }

    /// Goes up from the reader to the first plugin that has the service or declares it. The root reads whatever is there.
    fn find(&self, name: &str) -> Result<Rc<Provision>, Error> {
        let unavailable = || Error::Unavailable { service: name.into(), plugin: self.reader() };
        let reader = self.kernel.fiber(self.origin).ok_or_else(unavailable)?;
        if reader.parent.is_none() {
            return self.kernel.current(name).ok_or_else(unavailable);
        }
        let mut next = Some(reader);
        while let Some(fiber) = next {
            if let Some(provision) = fiber.own(name) {
                return Ok(provision);
            }
            if let Some(need) = fiber.needs.iter().find(|need| &*need.slot.name == name) {
                let optional = self.kernel.current(name).filter(|_| !need.required);
                return optional.ok_or_else(unavailable);
            }
            next = fiber.parent.and_then(|id| self.kernel.fiber(id));
        }
        Err(Error::Undeclared { service: name.into(), plugin: self.reader() })
    }

    fn reader(&self) -> String {
        self.kernel.path(self.origin)
    }
}

impl Fiber {
    /// What this fiber has committed to, or provides itself, even while it still loads.
    fn own(&self, name: &str) -> Option<Rc<Provision>> {
        let named = |it: &&Rc<Provision>| &*it.slot.name == name;
        let committed = self.committed.borrow().iter().find(named).cloned();
        committed.or_else(|| {
            self.provisions.borrow().iter().find(|it| named(it) && it.has_name()).cloned()
        })
    }
}

/// Frees the name, tells those who used it, and waits until they have stopped. During an unload they have stopped before.
fn withdraw(
    kernel: Rc<Kernel>,
    provision: Rc<Provision>,
) -> impl Future<Output = Result<(), BoxError>> {
    provision.slot.provision.replace(None);
    kernel.announce(&provision, false);
    async move {
        provision.unused(&kernel).await;
        // Until here an unload of the provider finds it, and waits for its users before the first cleanup.
        if let Some(owner) = kernel.fiber(provision.owner) {
            owner.provisions.borrow_mut().remove(provision.id);
        }
        kernel.prune(&provision.slot);
        Ok(())
    }
}
