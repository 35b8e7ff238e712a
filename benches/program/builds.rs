//! Rows that take a compiler and minutes: the binary that is published, and a newcomer's first two commands.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::row;

/// Builds what is published, measures it, and follows the README in a fresh clone.
pub(crate) fn rows() {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--locked", "--quiet", "--profile", "dist"]).current_dir(root());
    assert!(cargo.status().is_ok_and(|it| it.success()), "the dist build failed");
    size_row();
    clone_row();
}

/// The published binary, where it has been built.
pub(crate) fn published() -> PathBuf {
    target().join("dist/nano-cordis")
}

/// Measures the published binary, if it has been built.
pub(crate) fn size_row() {
    match fs::metadata(published()) {
        #[expect(clippy::cast_precision_loss, reason = "no binary is that large")]
        Ok(it) => row("binary of the profile dist", it.len() as f64 / 1e6, "MB", 14.0),
        Err(_) => eprintln!("the binary's size: run with `-- --builds`, it is not there yet"),
    }
}

fn clone_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let clone = folder.path().join("nano-cordis");
    let mut git = Command::new("git");
    git.args(["clone", "--quiet"]).arg(root()).arg(&clone);
    assert!(git.status().is_ok_and(|it| it.success()), "the clone failed");
    let begin = Instant::now();
    let mut cargo = Command::new("cargo");
    cargo.args(["run", "--release", "--locked", "--quiet", "--", "Say hello"]);
    cargo.current_dir(&clone).env_remove("CARGO_TARGET_DIR").stdin(Stdio::null());
    let output = cargo.output().expect("cargo is here");
    assert!(output.status.success(), "the first run failed");
    row("fresh clone to first reply", begin.elapsed().as_secs_f64() / 60.0, "minutes", 4.0);
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of builds; the binary under test lies two folders deep in it.
fn target() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_nano-cordis"));
    binary.ancestors().nth(2).map(Path::to_path_buf).expect("it lies in target/release")
}
