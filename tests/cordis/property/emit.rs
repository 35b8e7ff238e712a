//! Listeners that come and go at random while an event is told, compared with a list that is copied and asked again.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use proptest::prop_oneof;

use nano_cordis::cordis::{Context, Undo};

use super::check;
use crate::support::{Journal, Ping, kernel};

const CASES: u32 = 300;
/// More than the list of listeners holds before it closes up.
const LISTENERS: usize = 40;

/// What a listener does at each call.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Undoes the one that was registered as the n-th, whoever that is.
    Undo(usize),
    Add(i32),
}

/// All that were ever registered: place, and undo while it is there.
struct World {
    root: Context,
    acts: Vec<Vec<Act>>,
    all: RefCell<Vec<(i32, Option<Undo>)>>,
    journal: Journal,
}

#[test]
fn random_changes_during_a_dispatch_equal_a_copied_list() {
    let act = prop_oneof![
        3 => (0..2 * LISTENERS).prop_map(Act::Undo),
        1 => (-2..=2).prop_map(Act::Add),
    ];
    let orders = vec(-2..=2, LISTENERS);
    let acts = vec((vec(act, 0..6), any::<bool>()), LISTENERS);
    check(CASES, &(orders, acts), |(orders, acts)| {
        kernel(async |test| {
            let acts = acts.into_iter();
            let acts = acts.map(|(acts, does_act)| if does_act { acts } else { Vec::new() });
            let (root, journal) = (test.root.clone(), test.journal.clone());
            let all = RefCell::default();
            let world = Rc::new(World { root, acts: acts.collect(), all, journal });
            for order in orders {
                add(&world, order);
            }

            for _ in 0..3 {
                let expected = model(&world);
                world.root.emit(&Ping);
                assert_eq!(world.journal.take(), expected);
            }
        });
    });
}

fn add(world: &Rc<World>, order: i32) {
    let (id, weak) = (world.all.borrow().len(), Rc::downgrade(world));
    let listener = move |_: &Context, _: &Ping| {
        let world = weak.upgrade().expect("the test holds the world");
        world.journal.push(id.to_string());
        for act in world.acts.get(id).cloned().unwrap_or_default() {
            match act {
                Act::Undo(id) => {
                    let undo = world.all.borrow_mut().get_mut(id).and_then(|it| it.1.take());
                    drop(undo.map(|undo| undo.call()));
                }
                Act::Add(order) => add(&world, order),
            }
        }
    };
    let undo = world.root.on_at(order, listener).unwrap();
    world.all.borrow_mut().push((order, Some(undo)));
}

/// Who is called: those that are there at the beginning and still at their turn.
fn model(world: &World) -> Vec<String> {
    let mut there: Vec<_> = world.all.borrow().iter().map(|it| it.1.is_some()).collect();
    let place = |id: &usize| (world.all.borrow()[*id].0, *id);
    let mut turns: Vec<_> = (0..there.len()).filter(|id| there[*id]).collect();
    turns.sort_by_key(place);
    let mut called = Vec::new();
    for id in turns {
        if !there[id] {
            continue;
        }
        called.push(id.to_string());
        for act in world.acts.get(id).into_iter().flatten() {
            match act {
                Act::Undo(id) if *id < there.len() => there[*id] = false,
                Act::Undo(_) => {}
                Act::Add(_) => there.push(true),
            }
        }
    }
    called
}
