//! Plugins that need, provide, nest, wait at gates and fail, mounted and disposed of at random: they always come to
//! rest, and then exactly those are active that the solver says.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;
use serde_json::{Value, json};

use nano_cordis::cordis::{BoxError, Cleanup, Context, Mount, PluginDef, State, Undo};

use super::check;
use super::journal::{Mark, replay};
use super::solver::{Facts, Need, Place, Seen, Spec};
use crate::support::{Gate, Journal, Test, give, hear, kernel, rest};

const PLUGINS: usize = 7;
const ROOTS: usize = 3;
const CASES: u32 = 400;

#[derive(Clone, Copy, Debug)]
enum Step {
    Mount(usize),
    Dispose(usize),
    Provide(usize),
    Withdraw(usize),
    Open(usize),
    Shut(usize),
    /// Without this between them, steps are taken in one synchronous block.
    Rest,
}

#[test]
fn random_sequences_come_to_rest_as_the_solver_says() {
    let case = (vec(spec(), PLUGINS), vec(step(), 1..60));
    check(CASES, &case, |(drafts, steps)| {
        kernel(async |test| run(&test, acyclic(drafts), &steps).await);
    });
}

fn spec() -> impl Strategy<Value = Spec> {
    let place = prop_oneof![
        3 => Just(Place::Nowhere),
        1 => Just(Place::Enter),
        1 => Just(Place::Loaded),
        1 => Just(Place::Leave),
        1 => Just(Place::Left),
    ];
    let need = prop_oneof![
        1 => (0..ROOTS).prop_map(Need::Root),
        2 => (0..PLUGINS).prop_map(Need::Plugin),
    ];
    let fails = (0..8u8).prop_map(|it| it == 7);
    (option::of(0..PLUGINS), vec(need, 0..3), place, fails)
        .prop_map(|(parent, needs, place, fails)| Spec { parent, needs, place, fails })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..PLUGINS).prop_map(Step::Mount),
        2 => (0..PLUGINS).prop_map(Step::Dispose),
        3 => (0..ROOTS).prop_map(Step::Provide),
        2 => (0..ROOTS).prop_map(Step::Withdraw),
        3 => (0..PLUGINS).prop_map(Step::Open),
        1 => (0..PLUGINS).prop_map(Step::Shut),
        4 => any::<()>().prop_map(|()| Step::Rest),
    ]
}

/// Parents come before their children; a draft that says otherwise has none.
fn acyclic(mut drafts: Vec<Spec>) -> Vec<Spec> {
    for (id, spec) in drafts.iter_mut().enumerate() {
        spec.parent = spec.parent.filter(|parent| *parent < id);
    }
    drafts
}

async fn run(test: &Test, specs: Vec<Spec>, steps: &[Step]) {
    let world = World::new(test, specs);
    for step in steps {
        world.take(*step).await;
    }
    world.rest().await;
    (0..PLUGINS).for_each(|id| world.open(id));
    world.rest().await;
    assert!(world.seen().iter().all(|it| !it.busy()), "with open gates nobody waits");
    world.shut_down().await;
    test.reports.take();
}

struct World {
    root: Context,
    specs: Vec<Spec>,
    plugins: Vec<Plugin>,
    roots: RefCell<Vec<Option<Undo>>>,
    journal: RefCell<Vec<(usize, Mark)>>,
}

struct Plugin {
    mount: RefCell<Option<Mount>>,
    wanted: Cell<bool>,
    gate: RefCell<Gate>,
    is_open: Cell<bool>,
    at_gate: Cell<bool>,
}

impl World {
    fn new(test: &Test, specs: Vec<Spec>) -> Rc<World> {
        let plugin = |_| Plugin {
            mount: RefCell::default(),
            wanted: Cell::new(false),
            gate: RefCell::new(Gate::shut()),
            is_open: Cell::new(false),
            at_gate: Cell::new(false),
        };
        Rc::new(World {
            root: test.root.clone(),
            specs,
            plugins: (0..PLUGINS).map(plugin).collect(),
            roots: RefCell::new(vec![None; ROOTS]),
            journal: RefCell::default(),
        })
    }

    async fn take(self: &Rc<Self>, step: Step) {
        match step {
            Step::Mount(id) => self.mount_from_outside(id),
            Step::Dispose(id) => self.dispose(id),
            Step::Provide(number) => self.provide(number),
            Step::Withdraw(number) => self.withdraw(number),
            Step::Open(id) => self.open(id),
            Step::Shut(id) => self.shut(id),
            Step::Rest => self.rest().await,
        }
    }

    /// Only once the last mount of it is gone: one plugin a service name.
    fn mount_from_outside(self: &Rc<Self>, id: usize) {
        let free = matches!(self.seen()[id].state, None | Some(State::Disposed));
        if self.specs[id].parent.is_none() && free {
            self.mount(&self.root, id).expect("the root accepts plugins");
        }
    }

    fn mount(self: &Rc<Self>, ctx: &Context, id: usize) -> Result<(), BoxError> {
        let mount = ctx.plugin(&self.def(id), Value::Null)?;
        self.plugins[id].mount.replace(Some(mount));
        self.plugins[id].wanted.set(true);
        Ok(())
    }

    fn dispose(&self, id: usize) {
        let mount = self.plugins[id].mount.borrow().clone();
        self.plugins[id].wanted.set(false);
        drop(mount.map(|it| it.dispose()));
    }

    fn provide(&self, number: usize) {
        let held = self.roots.borrow()[number].is_some();
        if !held {
            let undo = give(&self.root, &Need::Root(number).name(), "root").expect("a free name");
            self.roots.borrow_mut()[number] = Some(undo);
        }
    }

    fn withdraw(&self, number: usize) {
        let undo = self.roots.borrow_mut()[number].take();
        drop(undo.map(|it| it.call()));
    }

    fn open(&self, id: usize) {
        self.plugins[id].is_open.set(true);
        self.plugins[id].gate.borrow().open();
    }

    /// Whoever waits at the old gate goes on waiting there.
    fn shut(&self, id: usize) {
        if self.plugins[id].is_open.replace(false) {
            self.plugins[id].gate.replace(Gate::shut());
        }
    }

    fn def(self: &Rc<Self>, id: usize) -> PluginDef {
        let world = self.clone();
        let needs: Vec<_> = self.specs[id].needs.iter().map(|it| it.name()).collect();
        PluginDef::dynamic(&format!("p{id}"), &json!(needs), None, move |ctx, _| {
            Box::pin(world.clone().body(id, ctx))
        })
        .expect("a list of names")
    }

    async fn body(self: Rc<Self>, id: usize, ctx: Context) -> Result<Option<Cleanup>, BoxError> {
        let Spec { place, fails, .. } = self.specs[id];
        self.note(id, Mark::Start);
        let world = self.clone();
        ctx.effect(move || move || world.note(id, Mark::Stop))?;
        hear(&ctx, &Journal::default(), "heard")?;
        self.wait_if(id, place == Place::Enter).await;
        give(&ctx, &Need::Plugin(id).name(), "plugin")?;
        let world = self.clone();
        ctx.effect(move || async move || world.wait_if(id, place == Place::Left).await)?;
        for child in (0..PLUGINS).filter(|child| self.specs[*child].parent == Some(id)) {
            self.mount(&ctx, child)?;
        }
        self.wait_if(id, place == Place::Loaded).await;
        if fails {
            return Err("it fails".into());
        }
        self.note(id, Mark::Ready);
        Ok(Some(Cleanup::future(async move || {
            self.note(id, Mark::Leave);
            self.wait_if(id, place == Place::Leave).await;
            Ok(())
        })))
    }

    fn note(&self, id: usize, mark: Mark) {
        self.journal.borrow_mut().push((id, mark));
    }

    async fn wait_if(&self, id: usize, waits: bool) {
        if waits {
            self.plugins[id].at_gate.set(true);
            let gate = self.plugins[id].gate.borrow().clone();
            gate.pass().await;
            self.plugins[id].at_gate.set(false);
        }
    }

    fn seen(&self) -> Vec<Seen> {
        let seen = |it: &Plugin| Seen {
            state: it.mount.borrow().as_ref().map(Mount::state),
            wanted: it.wanted.get(),
            at_gate: it.at_gate.get(),
        };
        self.plugins.iter().map(seen).collect()
    }

    /// Lets everything move that can, then compares what is there with the facts.
    async fn rest(&self) {
        rest().await;
        let seen = self.seen();
        let roots: Vec<_> = self.roots.borrow().iter().map(Option::is_some).collect();
        let facts = Facts { specs: &self.specs, roots: &roots, seen: &seen };
        let is_active: Vec<_> = seen.iter().map(|it| it.state == Some(State::Active)).collect();
        assert_eq!(facts.stuck(), Vec::<usize>::new(), "who could move: {seen:?}");
        assert_eq!(is_active, facts.active(), "who is active: {seen:?}");
        for (spec, seen) in self.specs.iter().zip(&seen) {
            assert!(spec.fails || seen.state != Some(State::Failed), "{spec:?} failed");
        }
        let last = replay(&self.specs, &self.journal.borrow());
        let running = last.iter().filter(|mark| **mark != Mark::Stop).count();
        assert_eq!(self.root.listener_count("test/ping"), running);
    }

    /// At the end every start has its stop, and nothing is left in any table.
    async fn shut_down(&self) {
        let shutdown = self.root.shutdown(Duration::from_secs(1)).await;
        assert_eq!(shutdown.hung, Vec::<String>::new());
        let last = replay(&self.specs, &self.journal.borrow());
        assert_eq!(last, vec![Mark::Stop; PLUGINS]);
        assert_eq!(self.root.listener_count("test/ping"), 0);
        assert_eq!(self.root.service_names(), Vec::<String>::new());
        assert_eq!(self.root.effect_count(), 0);
        let mounted = self.plugins.iter().filter_map(|it| it.mount.borrow().clone());
        assert!(mounted.into_iter().all(|it| it.state() == State::Disposed));
    }
}
