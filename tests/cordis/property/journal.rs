//! The journal of a random run: every start has one matching stop, and a run lies within the runs that it
//! depends on.

use super::solver::{Need, Spec};

/// What a plugin notes, in the order in which one run of it must do so. `Ready` and `Leave` may both be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Start,
    Ready,
    Leave,
    Stop,
}

/// Replays a journal and returns the last mark of each plugin; fails at a mark that must not come here.
pub(super) fn replay(specs: &[Spec], journal: &[(usize, Mark)]) -> Vec<Mark> {
    let mut last = vec![Mark::Stop; specs.len()];
    for (at, (id, mark)) in journal.iter().copied().enumerate() {
        let fault = fault(specs, &last, id, mark);
        assert_eq!(fault, None, "entry {at}, {mark:?} of {id}: {journal:?}");
        last[id] = mark;
    }
    last
}

/// What is wrong with a mark after the marks before it. A run lies within the runs of its parent and its providers.
fn fault(specs: &[Spec], last: &[Mark], id: usize, mark: Mark) -> Option<&'static str> {
    let running = |other: &usize| last[*other] != Mark::Stop;
    let others = || (0..specs.len()).filter(running);
    let parent = specs[id].parent;
    let ready = |need: &Need| !matches!(*need, Need::Plugin(id) if last[id] != Mark::Ready);
    match mark {
        _ if !follows(last[id], mark) => Some("marks of one run must come in order"),
        _ if !parent.iter().all(running) => Some("its parent is gone"),
        Mark::Start if !specs[id].needs.iter().all(ready) => Some("a provider is not active"),
        Mark::Leave if others().any(|it| specs[it].needs.contains(&Need::Plugin(id))) => {
            Some("somebody still uses what it provides")
        }
        Mark::Stop if others().any(|it| specs[it].parent == Some(id)) => Some("a child is left"),
        _ => None,
    }
}

fn follows(last: Mark, mark: Mark) -> bool {
    match mark {
        Mark::Start => last == Mark::Stop,
        Mark::Ready => last == Mark::Start,
        Mark::Leave => last == Mark::Ready,
        Mark::Stop => matches!(last, Mark::Start | Mark::Leave),
    }
}
