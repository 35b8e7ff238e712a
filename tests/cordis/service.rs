//! Caller-bound views: who owns what is registered through a service, and whose declarations count.

mod optional;
mod stale;

use std::cell::RefCell;
use std::rc::Rc;

use nano_cordis::cordis::{BoxError, Context, Error, Mount, PluginDef, Service, Svc, Undo, plugin};
use serde_json::Value;

use crate::support::{Gate, Test, define, kernel};

/// A service that others sign up at. It keeps the context it was built with.
struct Desk {
    names: RefCell<Vec<String>>,
    own: Context,
}

impl Service for Desk {
    const NAME: &'static str = "desk";
}

impl Desk {
    fn new(own: &Context) -> Rc<Desk> {
        Rc::new(Desk { names: RefCell::default(), own: own.clone() })
    }

    fn names(&self) -> Vec<String> {
        self.names.borrow().clone()
    }

    /// Registers on behalf of the desk itself, whoever asks.
    fn sign_up_for_good(self: &Rc<Self>, name: &str) -> Result<Undo, Error> {
        sign_up(self, &self.own, name)
    }
}

/// Adds a name that goes when the owner of the context goes.
fn sign_up(desk: &Rc<Desk>, ctx: &Context, name: &str) -> Result<Undo, Error> {
    let (desk, name) = (desk.clone(), name.to_owned());
    ctx.effect(move || {
        desk.names.borrow_mut().push(name.clone());
        move || desk.names.borrow_mut().retain(|it| *it != name)
    })
}

/// What a caller can do at the desk.
trait AtDesk {
    fn sign_up(&self, name: &str) -> Result<Undo, Error>;
    fn read_clock(&self) -> Result<u64, Error>;
    fn sign_up_with_time(&self, name: &str) -> Result<Undo, Error>;
    async fn sign_up_slowly(&self, gate: &Gate, name: &str) -> Result<Undo, Error>;
}

impl AtDesk for Svc<Desk> {
    fn sign_up(&self, name: &str) -> Result<Undo, Error> {
        sign_up(&self.shared(), self.ctx(), name)
    }

    fn read_clock(&self) -> Result<u64, Error> {
        Ok(self.ctx().service::<Clock>()?.0.borrow().len().try_into().unwrap())
    }

    /// Through a view of another service: the caller stays the owner.
    fn sign_up_with_time(&self, name: &str) -> Result<Undo, Error> {
        self.ctx().service::<Clock>()?.start(name)
    }

    async fn sign_up_slowly(&self, gate: &Gate, name: &str) -> Result<Undo, Error> {
        gate.pass().await;
        self.sign_up(name)
    }
}

/// A second service, which holds running alarms.
#[derive(Default)]
struct Clock(Rc<RefCell<Vec<String>>>);

impl Service for Clock {
    const NAME: &'static str = "clock";
}

trait AtClock {
    fn start(&self, name: &str) -> Result<Undo, Error>;
}

impl AtClock for Svc<Clock> {
    fn start(&self, name: &str) -> Result<Undo, Error> {
        let (alarms, name) = (self.0.clone(), name.to_owned());
        self.ctx().effect(move || {
            alarms.borrow_mut().push(name.clone());
            move || alarms.borrow_mut().retain(|it| *it != name)
        })
    }
}

/// Mounts a plugin that provides the desk and declares what is given here.
async fn mount_desk<const N: usize>(test: &Test, needs: [&str; N]) -> Mount {
    let body = async |ctx: Context| {
        ctx.provide(Desk::new(&ctx))?;
        Ok(())
    };
    mount(test, define("front", needs, body)).await
}

async fn mount_clock(test: &Test) -> Mount {
    let body = async |ctx: Context| {
        ctx.provide(Rc::new(Clock::default()))?;
        Ok(())
    };
    mount(test, define("tower", [], body)).await
}

/// Mounts a plugin that needs the desk and does something at it.
async fn mount_visitor(test: &Test, name: &'static str, visit: fn(&Svc<Desk>, &str)) -> Mount {
    let body = move |_: Context, _: Value, desk: Svc<Desk>| async move {
        visit(&desk, name);
        Ok::<(), BoxError>(())
    };
    mount(test, plugin(body).named(name)).await
}

async fn mount(test: &Test, def: PluginDef) -> Mount {
    let mount = test.mount(&def);
    mount.ready().await.unwrap();
    mount
}

/// The desk as the root sees it.
fn desk(test: &Test) -> Svc<Desk> {
    test.root.get::<Desk>().expect("the desk is provided")
}

fn alarms(test: &Test) -> Vec<String> {
    test.root.get::<Clock>().expect("the clock is provided").0.borrow().clone()
}

#[test]
fn k_131_what_a_caller_registers_goes_with_the_caller() {
    kernel(async |test| {
        let front = mount_desk(&test, []).await;
        let effects = front.effect_count();
        let visitor =
            mount_visitor(&test, "ada", |desk, name| drop(desk.sign_up(name).unwrap())).await;
        let present = desk(&test).names();

        visitor.dispose().await;

        assert_eq!(present, ["ada"]);
        assert_eq!(desk(&test).names(), Vec::<String>::new());
        assert_eq!(front.effect_count(), effects);
    });
}

#[test]
fn k_132_each_caller_owns_only_what_it_registered() {
    kernel(async |test| {
        mount_desk(&test, []).await;
        let ada = mount_visitor(&test, "ada", |desk, name| drop(desk.sign_up(name).unwrap())).await;
        mount_visitor(&test, "bob", |desk, name| drop(desk.sign_up(name).unwrap())).await;

        ada.dispose().await;

        assert_eq!(desk(&test).names(), ["bob"]);
    });
}

#[test]
fn k_133_inside_a_service_its_own_declarations_count() {
    kernel(async |test| {
        mount_clock(&test).await;
        mount_desk(&test, ["clock"]).await;

        let visit = |desk: &Svc<Desk>, _: &str| assert_eq!(desk.read_clock().unwrap(), 0);
        let visitor = mount_visitor(&test, "ada", visit).await;

        assert_eq!(visitor.state().to_string(), "ACTIVE");
    });
}

#[test]
fn k_134_inside_a_service_the_declarations_of_the_caller_do_not_count() {
    kernel(async |test| {
        mount_clock(&test).await;
        mount_desk(&test, []).await;
        let refused = Rc::new(RefCell::new(None));
        let result = refused.clone();
        let body = move |_: Context, _: Value, desk: Svc<Desk>, _: Svc<Clock>| {
            result.replace(desk.read_clock().err());
            async { Ok::<(), BoxError>(()) }
        };

        mount(&test, plugin(body).named("ada")).await;

        let error = refused.take();
        assert!(
            matches!(&error, Some(Error::Undeclared { service, plugin }) if service == "clock" && plugin == "front"),
            "{error:?}"
        );
    });
}

#[test]
fn k_135_ownership_passes_through_a_chain_of_services() {
    kernel(async |test| {
        let tower = mount_clock(&test).await;
        let front = mount_desk(&test, ["clock"]).await;
        let visit = |desk: &Svc<Desk>, name: &str| drop(desk.sign_up_with_time(name).unwrap());
        let visitor = mount_visitor(&test, "ada", visit).await;
        let present = alarms(&test);

        visitor.dispose().await;

        assert_eq!(present, ["ada"]);
        assert_eq!(alarms(&test), Vec::<String>::new());
        assert_eq!(tower.state().to_string(), "ACTIVE");
        assert_eq!(front.state().to_string(), "ACTIVE");
    });
}

#[test]
fn k_136_what_a_service_registers_for_itself_outlives_the_caller() {
    kernel(async |test| {
        let front = mount_desk(&test, []).await;
        let visit = |desk: &Svc<Desk>, name: &str| {
            drop(desk.shared().sign_up_for_good(name).unwrap());
        };
        let visitor = mount_visitor(&test, "ada", visit).await;
        let kept = desk(&test).shared();

        visitor.dispose().await;
        let after_caller = kept.names();
        front.dispose().await;

        assert_eq!(after_caller, ["ada"]);
        assert_eq!(kept.names(), Vec::<String>::new());
    });
}

#[test]
fn k_137_all_views_show_one_state() {
    kernel(async |test| {
        mount_desk(&test, []).await;
        let write = |desk: &Svc<Desk>, name: &str| desk.names.borrow_mut().push(name.to_owned());
        let read = |desk: &Svc<Desk>, name: &str| desk.names.borrow_mut()[0] += name;

        mount_visitor(&test, "ada", write).await;
        mount_visitor(&test, "bob", read).await;

        assert_eq!(desk(&test).names(), ["adabob"]);
    });
}

#[test]
fn k_138_a_view_outlives_its_caller_but_registers_nothing() {
    kernel(async |test| {
        mount_desk(&test, []).await;
        let (visitor, view) = stale::mount_keeping_view(&test).await;

        visitor.dispose().await;
        let refused = view.sign_up("late");

        assert!(matches!(refused, Err(Error::Inactive { .. })));
        assert_eq!(desk(&test).names(), Vec::<String>::new());
    });
}

#[test]
fn k_140_a_view_of_an_unloaded_service_answers_from_the_old_object() {
    kernel(async |test| {
        let tower = mount_clock(&test).await;
        let front = mount_desk(&test, ["clock"]).await;
        let (_visitor, view) = stale::mount_keeping_view(&test).await;
        view.names.borrow_mut().push("old".to_owned());

        front.dispose().await;
        tower.dispose().await;
        let signed_up = view.sign_up("late");
        let clock = view.read_clock();

        assert_eq!(view.names(), ["old"]);
        assert!(matches!(signed_up, Err(Error::Inactive { .. })));
        assert!(clock.is_err());
    });
}

#[test]
fn k_141_the_root_owns_what_it_registers_through_a_view() {
    kernel(async |test| {
        mount_desk(&test, []).await;
        let before = test.root.effect_count();

        let view = test.root.service::<Desk>().unwrap();
        let undo = view.sign_up("root").unwrap();
        let registered = (test.root.effect_count(), desk(&test).names());
        undo.call().await.unwrap();

        assert_eq!(registered, (before + 1, vec!["root".to_owned()]));
        assert_eq!(desk(&test).names(), Vec::<String>::new());
    });
}
