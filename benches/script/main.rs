//! What script plugins cost, row by row against their goals.
//!
//! Each line is `name`, `value`, `unit`, `goal`, and `ok` or `short`, separated by tabs. Run it with
//! `cargo bench --bench script`. The machine matters: compare ratios in one run, never a single time with one of another
//! machine. What has to do with memory and threads is measured in a process of its own, which is this program again.
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use std::{env, fs, path::Path, process::Command, rc::Rc, time::Instant};

use nano_cordis::{
    cordis::{Builtins, Context, ModuleSource, Mount, PluginDef, Svc, plugin},
    extras::script::Scripts,
    harness::tools::{self, CallRequest, Tool, Tools},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{runtime::Builder, task::LocalSet};
use tokio_util::sync::CancellationToken;

/// Enough for a median.
const RUNS: usize = 50;
const CALLS: u32 = 5_000;
/// Each of these is a process.
const FIRSTS: usize = 15;
/// As many as nobody has.
const MANY: u32 = 50;

const SOURCE: &str = "import type { Context } from 'cordis'

interface Config { format?: string }

export const name = 'tool-date'
export const inject = ['tools']

export function apply(ctx: Context, config: Config) {
  ctx.tools.register({
    name: config.format ?? 'probe',
    description: 'Says what it is told.',
    parameters: { type: 'object', properties: { text: { type: 'string' } } },
    async execute(args: { text: string }) {
      return args.text
    },
  })
}
";

fn main() {
    match env::args().nth(1).as_deref() {
        Some("--first") => in_kernel(async |root| print(first_ms(&root).await)),
        Some("--resident") => in_kernel(async |root| print(resident(&root).await)),
        Some("--threads") => in_kernel(async |root| print(threads_without(&root).await)),
        _ => all_rows(),
    }
}

fn all_rows() {
    in_kernel(async |root| {
        row("load of a script plugin", load_ms(), "ms", 2.0);
        let firsts = (0..FIRSTS).map(|_| apart("--first")).collect();
        row("load of the first of a process", median(firsts), "ms", 2.0);
        row("load and start of one", start_ms(&root).await, "ms", 2.0);
        let (native, script) = (native_us(&root).await, script_us(&root).await);
        row("tool round trip beyond the tool", script - native, "us", 20.0);
    });
    row("resident each, of 50", apart("--resident"), "KiB", 300.0);
    row("threads of an agent without a script", apart("--threads"), "threads", 1.0);
}

fn row(name: &str, value: f64, unit: &str, goal: f64) {
    let verdict = if value <= goal { "ok" } else { "short" };
    println!("{name}\t{value:.3}\t{unit}\t<= {goal}\t{verdict}");
}

fn print(value: f64) {
    println!("{value}");
}

/// What this program prints when it is told to measure one thing.
fn apart(what: &str) -> f64 {
    let output = Command::new(env::current_exe().expect("this program")).arg(what).output();
    let output = output.expect("it starts again").stdout;
    String::from_utf8_lossy(&output).trim().parse().expect("it prints a number")
}

fn in_kernel(work: impl AsyncFnOnce(Context)) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let root = Context::root();
        let tools = root.plugin(&plugin(tools::apply), Value::Null).expect("it is mounted once");
        tools.ready().await.expect("it starts");
        work(root).await;
    });
}

fn load(folder: &Path) -> PluginDef {
    let scripts = Scripts::new(Builtins::new());
    let key = scripts.resolve("./probe.ts", folder).expect("it is the name of a script");
    scripts.load(&key).expect("the script is good")
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("there is room");
    fs::write(folder.path().join("probe.ts"), SOURCE).expect("the folder is ours");
    folder
}

fn load_ms() -> f64 {
    let folder = folder();
    median((0..RUNS).map(|_| seconds(|| drop(load(folder.path()))) * 1e3).collect())
}

/// What all scripts share is made by the first. What other plugins share was made before, by their tools.
async fn first_ms(root: &Context) -> f64 {
    native_us(root).await;
    let folder = folder();
    seconds(|| drop(load(folder.path()))) * 1e3
}

async fn start_ms(root: &Context) -> f64 {
    let (folder, mut all) = (folder(), Vec::new());
    for _ in 0..RUNS {
        let begin = Instant::now();
        let mount = mount(root, &load(folder.path()), json!({})).await;
        all.push(begin.elapsed().as_secs_f64() * 1e3);
        mount.dispose().await;
    }
    median(all)
}

async fn mount(root: &Context, def: &PluginDef, config: Value) -> Mount {
    let mount = root.plugin(def, config).expect("the root takes plugins");
    mount.ready().await.expect("it starts");
    mount
}

async fn native_us(root: &Context) -> f64 {
    let tools: Svc<Tools> = root.get().expect("they are mounted");
    let says = async |call: Rc<tools::Call>| {
        Ok::<_, nano_cordis::cordis::BoxError>(
            call.arguments["text"].as_str().unwrap_or_default().to_owned(),
        )
    };
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let undo = tools.register(Tool::new("native", "Says what it is told.", schema, says));
    let each = each_us(&tools, "native").await;
    undo.expect("there is no other one").call().await.expect("it goes");
    each
}

async fn script_us(root: &Context) -> f64 {
    let folder = folder();
    let mount = mount(root, &load(folder.path()), json!({})).await;
    let tools: Svc<Tools> = root.get().expect("they are mounted");
    let each = each_us(&tools, "probe").await;
    mount.dispose().await;
    each
}

async fn each_us(tools: &Svc<Tools>, name: &str) -> f64 {
    let begin = Instant::now();
    for _ in 0..CALLS {
        let call = CallRequest {
            id: "1".into(),
            name: name.into(),
            arguments: "{\"text\":\"hello\"}".into(),
            problem: None,
            cancel: CancellationToken::default(),
            session: None,
            turn: 1,
            step: 1,
        };
        assert_eq!(tools.execute(call).await.content, "hello");
    }
    begin.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS)
}

/// KiB of each of many.
async fn resident(root: &Context) -> f64 {
    let folder = folder();
    // The first one brings what all share.
    mount(root, &load(folder.path()), json!({ "format": "first" })).await;
    let before = status("VmRSS:");
    for number in 0..MANY {
        mount(root, &load(folder.path()), json!({ "format": format!("tool-{number}") })).await;
    }
    (status("VmRSS:") - before) / f64::from(MANY)
}

async fn threads_without(_root: &Context) -> f64 {
    let scripts = Scripts::new(Builtins::new().with("tools", plugin(tools::apply)));
    let key = scripts.resolve("tools", Path::new(".")).expect("it is built in");
    drop(scripts.load(&key).expect("it is built in"));
    status("Threads:")
}

fn status(key: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find_map(|it| it.strip_prefix(key)).expect("it says that");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn seconds(work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
