//! What the plugins of `src/extras` cost that everybody can have mounted: while they are idle, and at a long conversation.

use crate::folder::Folder;
use crate::measure::{Cost, measured};
use crate::server::Server;
use crate::{RUNS, median, row};

/// All that need nothing but their entry.
const IDLE: &str = "
- {id: files, name: tool-files}
- {id: rules, name: approval-rules, config: {allow: [read]}}
- {id: hooks, name: hooks, config: {Stop: []}}
- {id: sandbox, name: sandbox}
- {id: instructions, name: instructions}
- {id: compaction, name: compaction, config: {contextWindow: 1000000}}
- {id: cost, name: cost}
- {id: guard, name: loop-guard}
";

/// A conversation of this length is shortened at once.
const COMPACTING: &str = "
- {id: compaction, name: compaction, config: {contextWindow: 10000}}
";

/// So many turns are 10,000 events.
const TURNS: usize = 1_667;

pub(crate) fn rows(server: &Server) {
    idle_rows(server);
    long_rows(server);
}

/// One run of each after the other, so that both find the same machine.
fn idle_rows(server: &Server) {
    let (without, with) = (Folder::new(server.address()), Folder::new(server.address()));
    with.mount(IDLE);
    let turn = |folder: &Folder| measured(folder.path(), "", &["hello"]);
    let (mut bare, mut full): (Vec<Cost>, Vec<Cost>) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        bare.push(turn(&without));
        full.push(turn(&with));
    }
    let more = |part: fn(&Cost) -> f64| {
        let of = |costs: &[Cost]| median(costs.iter().map(part).collect());
        of(&full) - of(&bare)
    };
    row("one turn with every extra idle, more than without", more(|it| it.wall_ms), "ms", 5.0);
    row("peak memory of that, more than without", more(|it| it.peak_mib), "MiB", 3.0);
}

fn long_rows(server: &Server) {
    let folder = Folder::new(server.address());
    let id = folder.log(TURNS, "An answer of the usual length, a line or two of plain text.");
    let cpu = |arguments: &[&str]| {
        let costs = (0..5).map(|_| measured(folder.path(), "", arguments).cpu_ms);
        median(costs.collect())
    };
    row("export of 10,000 events, CPU", cpu(&["--export", &id]), "ms", 200.0);
    row(
        "export of 10,000 events as HTML, CPU",
        cpu(&["--export", &id, "--format", "html"]),
        "ms",
        200.0,
    );
    row("replay of 10,000 events, CPU", cpu(&["--replay", &id]), "ms", 200.0);
    // Once: the next run finds a conversation that is short.
    folder.mount(COMPACTING);
    let cost = measured(folder.path(), "", &["--resume", &id, "one more"]);
    row("resume 10,000 events, compact them, one turn, CPU", cost.cpu_ms, "ms", 200.0);
}
