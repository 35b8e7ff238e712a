//! The journal of a random run: every start has one matching stop, and children lie within their parents.

use super::solver::Spec;

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
        assert!(
            follows(last[id], mark),
            "entry {at}: {mark:?} of {id} after {:?}: {journal:?}",
            last[id]
        );
        let parent = specs[id].parent.map(|parent| last[parent]);
        assert_ne!(parent, Some(Mark::Stop), "entry {at}: {id} outlives its parent: {journal:?}");
        let alive = |child: usize| specs[child].parent == Some(id) && last[child] != Mark::Stop;
        let survivor = (0..specs.len()).find(|child| mark == Mark::Stop && alive(*child));
        assert_eq!(survivor, None, "entry {at}: {id} ends before its child: {journal:?}");
        last[id] = mark;
    }
    last
}

fn follows(last: Mark, mark: Mark) -> bool {
    match mark {
        Mark::Start => last == Mark::Stop,
        Mark::Ready => last == Mark::Start,
        Mark::Leave => last == Mark::Ready,
        Mark::Stop => matches!(last, Mark::Start | Mark::Leave),
    }
}
