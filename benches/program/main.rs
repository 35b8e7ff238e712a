//! What the whole program costs, row by row against its goals.
//!
//! Each line is `name`, `value`, `unit`, `goal`, and `ok` or `short`, separated by tabs. Every run is a process of its own
//! in an empty folder, against a server on the loopback interface; CPU is that of the process and of the commands it ran.
//! Run it with `cargo bench --bench program`; with `-- --builds` it also makes the small binary and a fresh clone, which
//! takes minutes; with `-- --published` all rows are those of the small binary, as `cargo build --profile dist` has left it;
//! with `-- --search` it searches a tree of 100,000 files instead, beside ripgrep if there is an `rg`.
//! The machine matters: compare ratios in one run, never a single time with one of another machine.
//!
//! Watch for: each run is started by this program again (`measure.rs`), because the system adds up what all children used.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its output is its purpose")]

mod builds;
mod extras;
mod folder;
mod measure;
mod search;
mod server;

use std::env;

use self::folder::Folder;
use self::measure::{Cost, measured};
use self::server::Server;

/// Enough for a median; the heavy rows have fewer.
const RUNS: usize = 15;
const HEAVY_RUNS: usize = 5;
/// Of a conversation with ten times as much in it: half as much again is granted to caches and page faults.
const TEN_TIMES: f64 = 15.0;

fn main() {
    let arguments: Vec<_> = env::args().skip(1).collect();
    if arguments.first().is_some_and(|it| it == "--measure") {
        return measure::run(&arguments[1..]);
    }
    if arguments.iter().any(|it| it == "--published") {
        measure::choose(builds::published());
    }
    if arguments.iter().any(|it| it == "--search") {
        return search::rows();
    }
    let server = Server::start();
    start_row();
    turn_rows(&server);
    step_rows(&server);
    resume_rows(&server);
    stream_rows(&server);
    large_log_rows(&server);
    extras::rows(&server);
    if arguments.iter().any(|it| it == "--builds") {
        builds::rows();
    } else {
        builds::size_row();
    }
}

fn row(name: &str, value: f64, unit: &str, goal: f64) {
    let verdict = if value <= goal { "ok" } else { "short" };
    println!("{name}\t{value:.3}\t{unit}\t<= {goal}\t{verdict}");
}

fn start_row() {
    let folder = Folder::new("http://127.0.0.1:9");
    let costs = (0..RUNS).map(|_| measured(folder.path(), "", &["--version"]));
    row("--version, CPU", median(costs.map(|it| it.cpu_ms).collect()), "ms", 3.0);
}

fn turn_rows(server: &Server) {
    let cost = turn(server, "calls=1", RUNS);
    row("one-shot with one tool call, CPU", cost.cpu_ms, "ms", 15.0);
    row("one-shot with one tool call, peak memory", cost.peak_mib, "MiB", 15.0);
    server.forget();
    turn(server, "hello", 1);
    row("first request for \"hello\"", server.first_request_bytes() / 1024.0, "KiB", 2.0);
}

fn step_rows(server: &Server) {
    let at = |calls: usize, runs| turn(server, &format!("calls={calls}"), runs).cpu_ms;
    let (one, some, many) = (at(1, RUNS), at(21, HEAVY_RUNS), at(201, HEAVY_RUNS));
    let each = (some - one) / 20.0;
    row("each further tool step, CPU", each, "ms", 4.0);
    row("200 further tool steps to 20", (many - one) / (some - one), "ratio", TEN_TIMES);
}

fn resume_rows(server: &Server) {
    let at = |messages: usize| {
        let folder = Folder::new(server.address());
        let id =
            folder.log(messages / 2, "An answer of the usual length, a line or two of plain text.");
        median((0..HEAVY_RUNS).map(|_| resume(&folder, &id).cpu_ms).collect())
    };
    let (short, long) = (at(1_000), at(10_000));
    row("resume 1,000 messages and one turn, CPU", short, "ms", 15.0);
    row("resume 10,000 messages and one turn, CPU", long, "ms", 100.0);
    row("resume, 10,000 messages to 1,000", long / short, "ratio", TEN_TIMES);
}

fn stream_rows(server: &Server) {
    let at = |prompt: &str, events: usize| {
        turn(server, &format!("{prompt}={events}"), HEAVY_RUNS).cpu_ms
    };
    let (none, some, many) = (at("deltas", 1), at("deltas", 10_001), at("deltas", 100_001));
    row("one streamed event, CPU", (some - none) / 10_000.0 * 1e3, "us", 8.0);
    row("100,000 streamed events to 10,000", (many - none) / (some - none), "ratio", TEN_TIMES);
    let apart = at("apart", 10_001);
    row("one streamed event 20 us after another, CPU", (apart - none) / 10_000.0 * 1e3, "us", 8.0);
}

/// Weeks in one session: 20,000 turns with 10 KB each.
fn large_log_rows(server: &Server) {
    let folder = Folder::new(server.address());
    let id = folder.log(20_000, &"0123456789".repeat(1_000));
    let size = folder.log_mib(&id);
    let cost = resume(&folder, &id);
    // The request is as large as the log; it is made while it is sent.
    row("resume a log of 200 MB and one turn with a server", cost.wall_ms / 1e3, "s", 5.0);
    row("peak memory of that to the log", cost.peak_mib / size, "ratio", 2.0);
    let scripted = measured(folder.path(), "", &["--config", "scripted.yml", "-r", &id, "more"]);
    row("resume it and one turn with the scripted model", scripted.wall_ms / 1e3, "s", 5.0);
    row("peak memory of that to the log, scripted", scripted.peak_mib / size, "ratio", 2.0);
    let beside = measured(folder.path(), "y\n", &["calls=1"]);
    row("a new session beside that log, CPU", beside.cpu_ms, "ms", 15.0);
}

/// One turn in a folder of its own: the median of several runs.
fn turn(server: &Server, prompt: &str, runs: usize) -> Cost {
    let folder = Folder::new(server.address());
    let yes = "y\n".repeat(201);
    let costs = (0..runs).map(|_| measured(folder.path(), &yes, &[prompt])).collect::<Vec<_>>();
    let of = |part: fn(&Cost) -> f64| median(costs.iter().map(part).collect());
    Cost {
        cpu_ms: of(|it| it.cpu_ms),
        wall_ms: of(|it| it.wall_ms),
        peak_mib: of(|it| it.peak_mib),
    }
}

fn resume(folder: &Folder, id: &str) -> Cost {
    measured(folder.path(), "", &["--resume", id, "one more"])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
