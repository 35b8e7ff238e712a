//! What the kernel costs, row by row against its goals.
//!
//! Each line is `name`, `value`, `unit`, `goal`, and `ok` or `short`, separated by tabs. A value is the median of several
//! runs, each in a fresh kernel. Run it with `cargo bench --bench kernel`. The machine matters: compare ratios in one
//! run, never a single time with one of another machine.
//!
//! Watch for: memory is measured in a process of its own (this program again, with an argument), because what a row
//! before it has given back to the allocator would hide what it takes.
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use std::cell::Cell;
use std::env;
use std::fs;
use std::process::Command;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio::task::LocalSet;

use nano_cordis::cordis::{
    BoxError, Context, Emit, Mount, NoConfig, PluginDef, Service, State, Svc, Undo, plugin,
};

/// Enough for a median; the heavy rows have fewer.
const RUNS: usize = 11;
const HEAVY_RUNS: usize = 5;
const EFFECTS: usize = 100_000;

fn main() {
    match env::args().nth(1).as_deref() {
        Some("--idle-plugins") => in_kernel(async |root| print(idle_plugin_bytes(&root).await)),
        Some("--million-effects") => in_kernel(async |root| print(million_effects_bytes(&root))),
        _ => all_rows(),
    }
}

fn all_rows() {
    mount_rows();
    fan_row();
    chain_rows();
    emit_row();
    effect_rows();
    growth_rows();
    memory_rows();
}

fn row(name: &str, value: f64, unit: &str, goal: f64) {
    let verdict = if value <= goal { "ok" } else { "short" };
    println!("{name}\t{value:.3}\t{unit}\t<= {goal}\t{verdict}");
}

/// What costs the same however much there is already takes eight times as long for eight times as many.
fn growth_rows() {
    let ratio = |work: fn(usize) -> f64| {
        let fastest = |count| (0..RUNS).map(|_| work(count)).fold(f64::MAX, f64::min);
        fastest(8_000) / fastest(1_000)
    };
    row("waits for one plugin, 8,000 to 1,000", ratio(waits_seconds), "ratio", 12.0);
    row("services of one plugin, 8,000 to 1,000", ratio(services_seconds), "ratio", 12.0);
}

fn waits_seconds(count: usize) -> f64 {
    in_kernel(async move |root| {
        let gate = Rc::new(Notify::new());
        let held = gate.clone();
        let slow = plugin(move |_: Context, _: NoConfig| {
            let held = held.clone();
            async move {
                held.notified().await;
                Ok::<(), BoxError>(())
            }
        });
        let slow = root.plugin(&slow, Value::Null).expect("the root is running");
        let start = Instant::now();
        for _ in 0..count {
            let slow = slow.clone();
            let wait = root.spawn("wait", async move |_| {
                slow.settled().await;
            });
            wait.expect("the root is running");
        }
        tokio::task::yield_now().await;
        gate.notify_one();
        while root.effect_count() > 1 {
            tokio::task::yield_now().await;
        }
        start.elapsed().as_secs_f64()
    })
}

fn services_seconds(count: usize) -> f64 {
    in_kernel(async move |root| {
        let names: Vec<_> = (0..count).map(|it| it.to_string()).collect();
        let start = Instant::now();
        let give = |name: &String| root.provide_named(name, Rc::new(())).expect("a free name");
        let given: Vec<_> = names.iter().map(give).collect();
        for undo in given {
            drop(undo.call());
        }
        start.elapsed().as_secs_f64()
    })
}

fn print(bytes: f64) {
    println!("{bytes}");
}

#[expect(clippy::cast_precision_loss, reason = "no count here is that large")]
fn float(count: usize) -> f64 {
    count as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs in a fresh kernel on the thread that calls it.
fn in_kernel<T>(work: impl AsyncFnOnce(Context) -> T) -> T {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async { Box::pin(work(Context::root())).await })
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn all(mounts: &[Mount], state: State) -> bool {
    mounts.iter().all(|it| it.state() == state)
}

// ---- mount and dispose

fn mount_rows() {
    let same = mount_and_dispose(10_000, false, RUNS);
    let distinct = mount_and_dispose(10_000, true, RUNS);
    let many = mount_and_dispose(100_000, true, HEAVY_RUNS);
    row("mount 10,000, one plugin value", same.0, "ms", 14.0);
    row("mount 10,000, distinct values", distinct.0, "ms", 14.0);
    row("mount 100,000, distinct values", many.0, "ms", 140.0);
    // Ten times the plugins in ten times the time; half as much again is granted to caches and page faults.
    row("mount, 100,000 to 10,000", many.0 / distinct.0, "ratio", 15.0);
    row("dispose 10,000, one plugin value", same.1, "ms", 20.0);
    row("dispose 10,000, distinct values", distinct.1, "ms", 20.0);
    row("dispose 100,000, distinct values", many.1, "ms", 200.0);
    row("dispose, 100,000 to 10,000", many.1 / distinct.1, "ratio", 15.0);
}

/// Mounts until all are active, then shuts the root down: milliseconds of both.
fn mount_and_dispose(count: usize, distinct: bool, runs: usize) -> (f64, f64) {
    let times = (0..runs)
        .map(|_| in_kernel(async |root| mount_and_dispose_once(&root, count, distinct).await));
    let (mount, dispose) = times.unzip();
    (median(mount), median(dispose))
}

async fn mount_and_dispose_once(root: &Context, count: usize, distinct: bool) -> (f64, f64) {
    let begin = Instant::now();
    let mounts = mount_idle(root, count, distinct).await;
    let mount = milliseconds(begin);
    assert!(all(&mounts, State::Active));
    let begin = Instant::now();
    root.shutdown(Duration::from_mins(1)).await;
    let dispose = milliseconds(begin);
    assert!(all(&mounts, State::Disposed));
    (mount, dispose)
}

async fn mount_idle(root: &Context, count: usize, distinct: bool) -> Vec<Mount> {
    let shared = idle(0);
    let def = |number| if distinct { idle(number) } else { shared.clone() };
    let mounts: Vec<_> = (0..count).map(|number| mount(root, &def(number))).collect();
    rest(&mounts).await;
    mounts
}

/// A plugin that does nothing, with a closure of its own.
fn idle(number: usize) -> PluginDef {
    let body = move |_: Context, _: NoConfig| async move {
        std::hint::black_box(number);
        Ok::<(), BoxError>(())
    };
    plugin(body).named("idle")
}

fn mount(root: &Context, def: &PluginDef) -> Mount {
    root.plugin(def, Value::Null).expect("the root accepts plugins")
}

/// Waits for the last of them; that the others are there too is asserted where the clock does not run.
async fn rest(mounts: &[Mount]) {
    mounts.last().expect("some plugins").settled().await;
}

// ---- dependents

struct Number(usize);

impl Service for Number {
    const NAME: &'static str = "number";
}

fn fan_row() {
    const FAN: usize = 1_000;
    let each = in_kernel(async |root| {
        let starts = Rc::new(Cell::new(0));
        let mounts: Vec<_> = (0..FAN).map(|_| mount(&root, &dependent(&starts))).collect();
        let mut times = Vec::new();
        for round in 1..=RUNS * 3 {
            let begin = Instant::now();
            let undo = root.provide(Rc::new(Number(1))).expect("a free name");
            rest(&mounts).await;
            let up = begin.elapsed();
            assert_eq!(starts.get(), FAN * round);
            let begin = Instant::now();
            undo.call().await.expect("no cleanup fails");
            times.push((up + begin.elapsed()).as_secs_f64() * 1e6 / float(FAN));
            assert!(all(&mounts, State::Pending));
        }
        median(times)
    });
    row("1,000 dependents, provide and remove, each", each, "us", 1.0);
}

fn dependent(starts: &Rc<Cell<usize>>) -> PluginDef {
    let starts = starts.clone();
    let body = move |_: Context, _: NoConfig, number: Svc<Number>| {
        starts.set(starts.get() + number.0);
        async { Ok::<(), BoxError>(()) }
    };
    plugin(body).named("dependent")
}

// ---- chains

fn chain_rows() {
    let (up, down) = chain(1_000, RUNS);
    let (long_up, long_down) = on_a_small_stack(|| chain(100_000, HEAVY_RUNS));
    // A hundred times the length of the chain before it, in a hundred times the time.
    row("chain of 1,000, provide", up, "ms", 3.0);
    row("chain of 1,000, remove", down, "ms", 3.0);
    row("chain of 100,000 on a 2 MB stack, provide", long_up, "ms", 300.0);
    row("chain of 100,000 on a 2 MB stack, remove", long_down, "ms", 300.0);
}

fn on_a_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = thread::Builder::new().stack_size(2 << 20).spawn(work).expect("a thread");
    thread.join().expect("a chain needs no stack")
}

/// Number i needs `s(i)` and provides `s(i+1)`: milliseconds from `s0` to the last start, and back.
fn chain(length: usize, runs: usize) -> (f64, f64) {
    in_kernel(async |root| {
        let mounts: Vec<_> = (0..length).map(|number| mount(&root, &link(number))).collect();
        rest(&mounts).await;
        let (mut up, mut down) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            let begin = Instant::now();
            let undo = root.provide_named("s0", Rc::new(0_usize)).expect("a free name");
            while mounts[length - 1].state() != State::Active {
                tokio::task::yield_now().await;
            }
            up.push(milliseconds(begin));
            assert!(all(&mounts, State::Active));
            let begin = Instant::now();
            undo.call().await.expect("no cleanup fails");
            down.push(milliseconds(begin));
            assert!(all(&mounts, State::Pending));
        }
        (median(up), median(down))
    })
}

fn link(number: usize) -> PluginDef {
    let needs = json!([format!("s{number}")]);
    PluginDef::dynamic("link", &needs, None, move |ctx, _| {
        Box::pin(async move {
            ctx.provide_named(&format!("s{}", number + 1), Rc::new(number))?;
            Ok(None)
        })
    })
    .expect("a list of names")
}

// ---- events

struct Tick(usize);

impl Emit for Tick {
    const NAME: &'static str = "bench/tick";
}

fn emit_row() {
    const LISTENERS: usize = 1_000;
    const EMITS: usize = 300;
    let times = (0..RUNS).map(|_| {
        in_kernel(async |root| {
            let hits = Rc::new(Cell::new(0));
            for _ in 0..LISTENERS {
                let hits = hits.clone();
                let listener = move |_: &Context, tick: &Tick| hits.set(hits.get() + tick.0);
                root.on(listener).expect("the root accepts listeners");
            }
            let begin = Instant::now();
            for _ in 0..EMITS {
                root.emit(&Tick(1));
            }
            let each = nanoseconds_each(begin, LISTENERS * EMITS);
            assert_eq!(hits.get(), LISTENERS * EMITS);
            each
        })
    });
    row("emit, each of 1,000 listeners", median(times.collect()), "ns", 15.0);
}

fn nanoseconds_each(since: Instant, times: usize) -> f64 {
    since.elapsed().as_secs_f64() * 1e9 / float(times)
}

// ---- effects

fn effect_rows() {
    let alone = (0..RUNS).map(|_| in_kernel(async |root| pairs(&root, &Rc::default())));
    let crowded = (0..RUNS).map(|_| {
        in_kernel(async |root| {
            let hits = Rc::default();
            let _live = register(&root, &hits);
            pairs(&root, &hits)
        })
    });
    let each = (0..RUNS).map(|_| in_kernel(async |root| undo_each(&root)));
    row("register and undo one effect", median(alone.collect()), "ns", 150.0);
    row("register and undo one effect, 100,000 live", median(crowded.collect()), "ns", 150.0);
    row("undo one effect, 100,000 live", median(each.collect()), "ns", 150.0);
}

fn pairs(root: &Context, hits: &Rc<Cell<usize>>) -> f64 {
    let begin = Instant::now();
    for _ in 0..EFFECTS {
        drop(effect(root, hits).call());
    }
    let each = nanoseconds_each(begin, EFFECTS);
    assert_eq!(hits.get(), EFFECTS);
    each
}

/// Undoes the last first, while all before it are live.
fn undo_each(root: &Context) -> f64 {
    let hits = Rc::default();
    let undos = register(root, &hits);
    let begin = Instant::now();
    for undo in undos.iter().rev() {
        drop(undo.call());
    }
    let each = nanoseconds_each(begin, EFFECTS);
    assert_eq!(hits.get(), EFFECTS);
    each
}

fn register(root: &Context, hits: &Rc<Cell<usize>>) -> Vec<Undo> {
    (0..EFFECTS).map(|_| effect(root, hits)).collect()
}

fn effect(root: &Context, hits: &Rc<Cell<usize>>) -> Undo {
    let hits = hits.clone();
    root.effect(move || move || hits.set(hits.get() + 1)).expect("the root accepts effects")
}

// ---- memory

fn memory_rows() {
    let measured = |argument| {
        let runs = (0..HEAVY_RUNS).map(|_| in_a_process_of_its_own(argument));
        median(runs.collect())
    };
    row("resident bytes for each idle plugin", measured("--idle-plugins"), "bytes", 1024.0);
    // A quarter of a byte for each: the system counts pages in lots, and no exacter than that.
    row("growth after 1,000,000 effects", measured("--million-effects"), "bytes", 262_144.0);
}

fn in_a_process_of_its_own(argument: &str) -> f64 {
    let program = env::current_exe().expect("this program");
    let output = Command::new(program).arg(argument).output().expect("it starts again");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().expect("it prints a number")
}

async fn idle_plugin_bytes(root: &Context) -> f64 {
    const IDLE: usize = 10_000;
    let warm = mount_idle(root, 100, true).await;
    let before = resident();
    let mounts = mount_idle(root, IDLE, true).await;
    let each = (resident() - before) / float(IDLE);
    assert!(all(&warm, State::Active) && all(&mounts, State::Active));
    each
}

fn million_effects_bytes(root: &Context) -> f64 {
    let hits = Rc::default();
    let some = |times| (0..times).for_each(|_| drop(effect(root, &hits).call()));
    some(10_000);
    let before = resident();
    some(1_000_000);
    resident() - before
}

/// Resident memory of this process in bytes, where the system tells.
fn resident() -> f64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("a Linux system");
    let pages = statm.split_whitespace().nth(1).expect("the second number");
    pages.parse::<f64>().expect("a number") * 4096.0
}
