//! Plugin code that waits for any plugin at any place, its own, its parent and its providers included: whatever waits
//! for whatever, everything comes to rest.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy};
use proptest::prop_oneof;
use serde_json::{Value, json};

use nano_cordis::cordis::{BoxError, Cleanup, Context, Mount, PluginDef, State, Undo};

use super::check;
use crate::support::{Test, give, kernel, rest};

const PLUGINS: usize = 6;
const CASES: u32 = 600;

/// Where plugin code waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Body,
    Cleanup,
    Task,
    /// In a cleanup that the body itself runs by undoing an effect.
    Undo,
}

/// What it waits for.
#[derive(Clone, Copy, Debug)]
enum Wait {
    Dispose(usize),
    Ready(usize),
    Settled(usize),
    /// That the provision of a plugin is undone.
    Withdraw(usize),
    /// That an effect of a plugin is undone, whose cleanup waits, too.
    Undo(usize),
}

#[derive(Clone, Debug)]
struct Spec {
    parent: Option<usize>,
    /// A plugin whose service it needs; `PLUGINS` stands for the service of the root.
    needs: Option<usize>,
    waits: Vec<(Place, Wait)>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Mount(usize),
    Dispose(usize),
    Toggle,
    Rest,
}

#[test]
fn random_waits_come_to_rest() {
    check(CASES, &(vec(spec(), PLUGINS), vec(step(), 1..30)), |(mut specs, steps)| {
        for (id, spec) in specs.iter_mut().enumerate() {
            spec.parent = spec.parent.filter(|parent| *parent < id);
        }
        kernel(async |test| run(&test, specs, &steps).await);
    });
}

fn spec() -> impl Strategy<Value = Spec> {
    let place =
        prop_oneof![Just(Place::Body), Just(Place::Cleanup), Just(Place::Task), Just(Place::Undo),];
    let wait = prop_oneof![
        2 => (0..PLUGINS).prop_map(Wait::Dispose),
        2 => (0..PLUGINS).prop_map(Wait::Ready),
        2 => (0..PLUGINS).prop_map(Wait::Settled),
        1 => (0..PLUGINS).prop_map(Wait::Withdraw),
        1 => (0..PLUGINS).prop_map(Wait::Undo),
    ];
    (option::of(0..PLUGINS), option::of(0..=PLUGINS), vec((place, wait), 0..4))
        .prop_map(|(parent, needs, waits)| Spec { parent, needs, waits })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..PLUGINS).prop_map(Step::Mount),
        2 => (0..PLUGINS).prop_map(Step::Dispose),
        2 => Just(Step::Toggle),
        3 => Just(Step::Rest),
    ]
}

async fn run(test: &Test, specs: Vec<Spec>, steps: &[Step]) {
    let world = Rc::new(World {
        root: test.root.clone(),
        specs,
        mounts: RefCell::new(vec![None; PLUGINS]),
        provisions: RefCell::new(vec![None; PLUGINS + 1]),
        effects: RefCell::new(vec![None; PLUGINS]),
        waiting: Cell::new(0),
    });
    for step in steps {
        world.take(*step).await;
    }
    world.rest().await;
    let shutdown = test.root.shutdown(Duration::from_secs(1)).await;
    assert_eq!(shutdown.hung, Vec::<String>::new());
    world.rest().await;
    test.reports.take();
}

struct World {
    root: Context,
    specs: Vec<Spec>,
    mounts: RefCell<Vec<Option<Mount>>>,
    provisions: RefCell<Vec<Option<Undo>>>,
    effects: RefCell<Vec<Option<Undo>>>,
    waiting: Cell<usize>,
}

/// Counts one wait, also if it is aborted.
struct Waiting<'a>(&'a Cell<usize>);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl World {
    async fn take(self: &Rc<Self>, step: Step) {
        match step {
            Step::Mount(id) => self.mount_from_outside(id),
            Step::Dispose(id) => drop(self.mounted(id).map(|it| it.dispose())),
            Step::Toggle => self.toggle(),
            Step::Rest => self.rest().await,
        }
    }

    fn mounted(&self, id: usize) -> Option<Mount> {
        self.mounts.borrow()[id].clone()
    }

    fn mount_from_outside(self: &Rc<Self>, id: usize) {
        let free = self.mounted(id).is_none_or(|it| it.state() == State::Disposed);
        if self.specs[id].parent.is_none() && free {
            self.mount(&self.root, id).expect("the root accepts plugins");
        }
    }

    fn mount(self: &Rc<Self>, ctx: &Context, id: usize) -> Result<(), BoxError> {
        let mount = ctx.plugin(&self.def(id), Value::Null)?;
        self.mounts.borrow_mut()[id] = Some(mount);
        Ok(())
    }

    fn toggle(&self) {
        let held = self.provisions.borrow_mut()[PLUGINS].take();
        match held {
            Some(undo) => drop(undo.call()),
            None => self.provide(&self.root, PLUGINS).expect("a free name"),
        }
    }

    fn provide(&self, ctx: &Context, id: usize) -> Result<(), BoxError> {
        let undo = give(ctx, &format!("s{id}"), "service")?;
        self.provisions.borrow_mut()[id] = Some(undo);
        Ok(())
    }

    fn def(self: &Rc<Self>, id: usize) -> PluginDef {
        let world = self.clone();
        let needs: Vec<_> = self.specs[id].needs.iter().map(|it| format!("s{it}")).collect();
        let body = move |ctx, _| -> Pin<Box<dyn Future<Output = _>>> {
            Box::pin(world.clone().body(id, ctx))
        };
        PluginDef::dynamic(&format!("p{id}"), &json!(needs), None, body).expect("a list of names")
    }

    async fn body(self: Rc<Self>, id: usize, ctx: Context) -> Result<Option<Cleanup>, BoxError> {
        self.provide(&ctx, id)?;
        let world = self.clone();
        ctx.effect(move || async move || world.waits(id, Place::Cleanup).await)?;
        for child in (0..PLUGINS).filter(|child| self.specs[*child].parent == Some(id)) {
            self.mount(&ctx, child)?;
        }
        let world = self.clone();
        ctx.spawn("waits", async move |_| world.waits(id, Place::Task).await)?;
        let world = self.clone();
        let undo = ctx.effect(move || async move || world.waits(id, Place::Undo).await)?;
        self.effects.borrow_mut()[id] = Some(undo.clone());
        self.waits(id, Place::Body).await;
        undo.call().await?;
        Ok(None)
    }

    async fn waits(&self, id: usize, place: Place) {
        for (_, wait) in self.specs[id].waits.iter().filter(|it| it.0 == place) {
            self.waiting.set(self.waiting.get() + 1);
            let _waiting = Waiting(&self.waiting);
            self.wait(*wait).await;
        }
    }

    async fn wait(&self, wait: Wait) {
        match wait {
            Wait::Dispose(id) => {
                let Some(mount) = self.mounted(id) else { return };
                mount.dispose().await;
            }
            Wait::Ready(id) => {
                let Some(mount) = self.mounted(id) else { return };
                drop(mount.ready().await);
            }
            Wait::Settled(id) => {
                let Some(mount) = self.mounted(id) else { return };
                mount.settled().await;
            }
            Wait::Withdraw(id) => undo(&self.provisions, id).await,
            Wait::Undo(id) => undo(&self.effects, id).await,
        }
    }

    async fn rest(&self) {
        rest().await;
        let states: Vec<_> =
            self.mounts.borrow().iter().map(|it| it.as_ref().map(Mount::state)).collect();
        let busy = |it: &Option<State>| matches!(it, Some(State::Loading | State::Unloading));
        assert!(!states.iter().any(busy), "not at rest: {states:?}");
        assert_eq!(self.waiting.get(), 0, "somebody waits: {states:?}");
    }
}

async fn undo(undos: &RefCell<Vec<Option<Undo>>>, id: usize) {
    let undo = undos.borrow()[id].clone();
    if let Some(undo) = undo {
        drop(undo.call().await);
    }
}
