//! One run of the program and what it used: this program starts itself, that one starts the other and asks the system.
//!
//! Watch for: the system counts what *ended* children used, their own children among them, so a run gets a parent of its own.

use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// What one run used.
#[derive(Debug, Default)]
pub(crate) struct Cost {
    /// Of the program and the commands it ran.
    pub(crate) cpu_ms: f64,
    pub(crate) wall_ms: f64,
    /// Of the program or of a command, whichever was larger.
    pub(crate) peak_mib: f64,
}

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// From now on another build of the program is measured than the one that cargo has just made.
pub(crate) fn choose(program: PathBuf) {
    PROGRAM.set(program).expect("it is chosen once");
}

fn program() -> &'static Path {
    PROGRAM.get_or_init(|| env!("CARGO_BIN_EXE_nano-cordis").into())
}

/// Runs the program in a folder with an input; it must end well.
pub(crate) fn measured(folder: &Path, input: &str, arguments: &[&str]) -> Cost {
    let input_file = folder.join("input");
    std::fs::write(&input_file, input).expect("the folder is ours");
    let this = env::current_exe().expect("this program");
    let mut command = Command::new(this);
    command.arg("--measure").arg(program()).args(arguments).current_dir(folder);
    let input = File::open(&input_file).expect("it was just written");
    let output = command.stdin(input).output().expect("it starts again");
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|it| it.parse().ok()).collect();
    let [cpu_ms, wall_ms, peak_mib] = numbers[..] else {
        let told = String::from_utf8_lossy(&output.stderr);
        unreachable!("the run {arguments:?} failed: {told}")
    };
    Cost { cpu_ms, wall_ms, peak_mib }
}

/// The other side of [`measured`].
pub(crate) fn run(arguments: &[String]) {
    let begin = Instant::now();
    let (program, arguments) = arguments.split_first().expect("the other side names it");
    let mut command = Command::new(program);
    let status =
        command.args(arguments).stdout(Stdio::null()).status().expect("the program starts");
    let wall = begin.elapsed();
    if !status.success() {
        return eprintln!("{status}");
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the system keeps count");
    let cpu = duration(usage.user_time()) + duration(usage.system_time());
    #[expect(clippy::cast_precision_loss, reason = "no process is that large")]
    let peak_mib = usage.max_rss() as f64 / 1024.0;
    println!("{} {} {peak_mib}", cpu.as_secs_f64() * 1e3, wall.as_secs_f64() * 1e3);
}

fn duration(time: TimeVal) -> Duration {
    let seconds = Duration::from_secs(time.tv_sec().unsigned_abs());
    seconds + Duration::from_micros(time.tv_usec().unsigned_abs())
}
